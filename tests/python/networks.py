"""The networks that the whole chain is measured on, and seeded inputs for them."""
import dataclasses
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT, require_shared


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    path: str  # in the project, or in the shared models
    shape: tuple  # of its only input
    scale: float = 1.0  # inputs are uniform in [0, scale)
    trained: bool = True

    def __str__(self):
        return self.name

    def file(self, folder):
        """The model file; made in `folder` when it has to be."""
        if self.path.startswith("models/digits/"):
            return ROOT / self.path
        if self.path.startswith("made/"):
            return made(self.path.removeprefix("made/"), folder)
        source = require_shared(self.path)
        return filled(source, folder) if "/onnx-light/" in self.path else source

    def sample(self, seed):
        """The same values on every machine: smooth pictures with some noise, since nets are trained on pictures."""
        random = np.random.RandomState(seed)
        coarse = random.uniform(0, 1, self.shape)
        smooth = coarse
        for axis in range(2, len(self.shape)):
            smooth = (smooth + np.roll(smooth, 1, axis) + np.roll(smooth, 2, axis)) / 3
        return (smooth * self.scale).astype(np.float32)


def filled(source, folder):
    """onnx-light models come without weights: they get seeded ones."""
    tool = ROOT / "tools/fill_light.py"
    if not tool.is_file():
        pytest.skip("tools/fill_light.py is not there")
    target = pathlib.Path(folder) / source.name
    if not target.is_file():
        subprocess.run([sys.executable, str(tool), str(source), str(target)], check=True)
    return target


def made(name, folder):
    """Standard networks with seeded weights."""
    target = pathlib.Path(folder) / name
    if not target.is_file():
        subprocess.run([sys.executable, str(require_shared("tools/make_models.py")), str(folder)], check=True)
    return target


NETWORKS = [
    Network("digits_convnet", "models/digits/convnet_digits.onnx", (1, 1, 8, 8)),
    Network("ultraface_rfb", "models/ultra-light-face/version-RFB-320.onnx", (1, 3, 240, 320)),
    Network("ultraface_slim", "models/ultra-light-face/version-slim-320_simplified.onnx", (1, 3, 240, 320)),
    Network("yunet", "models/libfacedetection-yunet/yunet_n_320_320.onnx", (1, 3, 320, 320), 255.0),
    Network("mnist", "models/onnx-models-via-libonnx/mnist_8_model.onnx", (1, 1, 28, 28), 255.0),
    Network("super_resolution", "models/onnx-models-via-libonnx/super_resolution_10_model.onnx", (1, 1, 224, 224)),
    Network("ppocr_det", "models/npm-gutenye-ppocr/ch_PP-OCRv4_det_infer.onnx", (1, 3, 320, 320)),
    Network("ppocr_cls", "models/npm-gutenye-ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
    Network("mlsd", "models/npm-keijiro-mlsd/mlsd_320x320_tiny.onnx", (1, 320, 320, 4), 255.0),
    Network("fastestdet", "models/fastestdet/FastestDet.onnx", (1, 3, 352, 352)),
    Network("resnet18", "made/resnet18.onnx", (1, 3, 224, 224), trained=False),
    Network("resnet50", "made/resnet50.onnx", (1, 3, 224, 224), trained=False),
    Network("mobilenetv2", "made/mobilenetv2.onnx", (1, 3, 224, 224), trained=False),
] + [
    Network(f"light_{name}", f"models/onnx-light/light_{name}.onnx", (1, 3, 224, 224), trained=False)
    for name in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet",
                 "vgg19", "zfnet512")
]


def only_input(session):
    """Name of the input that is no constant, from an onnxruntime session."""
    inputs = session.get_inputs()
    assert len(inputs) == 1, [i.name for i in inputs]
    return inputs[0].name


def cosine(a, b):
    a = np.asarray(a, np.float64).ravel()
    b = np.asarray(b, np.float64).ravel()
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return 1.0 if norm == 0 and np.array_equal(a, b) else float(a @ b / norm) if norm else 0.0


def load_outputs(folder):
    """Outputs of `openrknn run` in order: (name, array)."""
    import json
    folder = pathlib.Path(folder)
    return [(entry["name"], np.load(folder / entry["file"])) for entry in json.loads((folder / "outputs.json").read_text())]
