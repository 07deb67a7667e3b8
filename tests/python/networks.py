"""The networks that the whole chain is measured on, and real pictures for them, prepared as their authors do."""
import dataclasses
import pathlib
import subprocess
import sys
import wave

import numpy as np
import pytest
from PIL import Image

from conftest import ROOT, require_shared

SCENES = ("skimage_chelsea.png", "coral_cat.bmp", "coral_parrot.jpg", "skimage_coffee.png", "coral_sunflower.bmp",
          "coral_owl.jpg", "skimage_rocket.jpg", "coral_dragonfly.bmp", "rktk2_dog_224x224.jpg", "coral_bird.bmp")
FACES = ("rkzoo_retinaface_test.jpg", "coral_face.jpg", "coral_grace_hopper.bmp", "skimage_astronaut.png",
         "rkzoo_bus.jpg", "coral_squat.bmp")
TEXTS = ("rkzoo_ppocr_11.jpg", "skimage_page.png", "skimage_text.png", "rkzoo_ppocr_rec_test.png", "rkzoo_lprnet_test.jpg")
ROOMS = ("skimage_motorcycle_left.png", "skimage_brick.png", "skimage_camera.png", "skimage_page.png", "rkzoo_bus.jpg")
IMAGENET = ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    path: str  # in the project, or in the shared models
    shape: tuple  # of its only input
    pictures: tuple = SCENES
    mean: tuple = (0.0,)
    std: tuple = (255.0,)
    bgr: bool = False
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

    def sample(self, index):
        """Picture number `index` (round and round) as the network takes it."""
        if self.path.startswith("models/digits/"):
            digits = np.load(ROOT / "models/digits/test_images_f32.npy")
            return digits[index % len(digits)].reshape(self.shape).astype(np.float32)
        nhwc = self.shape[1] > 4
        channels = self.shape[3] if nhwc else self.shape[1]
        height, width = self.shape[1:3] if nhwc else self.shape[2:4]
        picture = Image.open(require_shared("images/" + self.pictures[index % len(self.pictures)]))
        picture = picture.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels]).resize((width, height), Image.BILINEAR)
        pixels = np.asarray(picture, np.float32).reshape(height, width, channels)
        if self.bgr:
            pixels = pixels[:, :, ::-1]
        pixels = (pixels - np.float32(self.mean)) / np.float32(self.std)
        return np.ascontiguousarray(pixels[None] if nhwc else pixels.transpose(2, 0, 1)[None], np.float32)


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


FACE = dict(pictures=FACES, mean=(127.0,), std=(128.0,))
NETWORKS = [
    Network("digits_convnet", "models/digits/convnet_digits.onnx", (1, 1, 8, 8)),
    Network("digits_vit", "models/digits/vit_digits.onnx", (1, 1, 8, 8)),
    Network("ultraface_rfb", "models/ultra-light-face/version-RFB-320.onnx", (1, 3, 240, 320), **FACE),
    Network("ultraface_slim", "models/ultra-light-face/version-slim-320_simplified.onnx", (1, 3, 240, 320), **FACE),
    Network("yunet", "models/libfacedetection-yunet/yunet_n_320_320.onnx", (1, 3, 320, 320), FACES, std=(1.0,), bgr=True),
    Network("mnist", "models/onnx-models-via-libonnx/mnist_8_model.onnx", (1, 1, 28, 28), ("coral_mnist_nine.bmp",), std=(1.0,)),
    Network("super_resolution", "models/onnx-models-via-libonnx/super_resolution_10_model.onnx", (1, 1, 224, 224)),
    Network("ppocr_det", "models/npm-gutenye-ppocr/ch_PP-OCRv4_det_infer.onnx", (1, 3, 320, 320), TEXTS, *IMAGENET),
    Network("ppocr_cls", "models/npm-gutenye-ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192),
            TEXTS[3:] + TEXTS[:3], (127.5,), (127.5,)),
    Network("ppocr_rec", "models/npm-gutenye-ppocr/ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320),
            TEXTS[3:] + TEXTS[:3], (127.5,), (127.5,)),
    Network("mlsd", "models/npm-keijiro-mlsd/mlsd_320x320_tiny.onnx", (1, 320, 320, 4), ROOMS, std=(1.0,)),
    Network("fastestdet", "models/fastestdet/FastestDet.onnx", (1, 3, 352, 352), SCENES[:3] + FACES, bgr=True),
    Network("resnet18", "made/resnet18.onnx", (1, 3, 224, 224), SCENES, *IMAGENET, trained=False),
    Network("resnet50", "made/resnet50.onnx", (1, 3, 224, 224), SCENES, *IMAGENET, trained=False),
    Network("mobilenetv2", "made/mobilenetv2.onnx", (1, 3, 224, 224), SCENES, *IMAGENET, trained=False),
] + [
    Network(f"light_{name}", f"models/onnx-light/light_{name}.onnx", (1, 3, 224, 224), SCENES, *IMAGENET, trained=False)
    for name in ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet",
                 "vgg19", "zfnet512")
]


@dataclasses.dataclass(frozen=True)
class Streaming:
    """A network that is run step by step over audio, its states fed back."""
    name: str
    path: str  # in the shared models
    frames: object  # samples (float, [-1, 1]) -> the audio input of each step, by ascending time
    states: dict  # state input: the output that continues it
    constants: dict = dataclasses.field(default_factory=dict)  # input: its value in every step
    trained = True

    def __str__(self):
        return self.name

    def file(self, _):
        return require_shared(self.path)

    def steps(self, count):
        """The audio inputs of `count` steps, from where speech is."""
        with wave.open(str(require_shared("audio/short_wav_easy10s.wav"))) as file:
            assert file.getframerate() == 16000 and file.getsampwidth() == 2
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())[:, 0]
        return self.frames(samples[16000:].astype(np.float32) / 32768)[:count]


def dtln_spectrum(samples):
    return [np.abs(np.fft.rfft(samples[i:i + 512])).astype(np.float32).reshape(1, 1, 257) for i in range(0, 8192, 128)]


def dtln_block(samples):
    return [samples[i:i + 512].reshape(1, 1, 512) for i in range(0, 8192, 128)]


def gtcrn_spectrum(samples):
    window = np.sqrt(np.hanning(513)[:512])
    bins = [np.fft.rfft(samples[i:i + 512] * window) for i in range(0, 8192, 256)]
    return [np.stack([b.real, b.imag], -1).astype(np.float32).reshape(1, 257, 1, 2) for b in bins]


def silero_block(samples):
    """512 new samples behind the last 64 of the step before."""
    return [samples[i:i + 576].reshape(1, 576) for i in range(0, 8192, 512)]


STREAMING = [
    Streaming("dtln_1", "models/dtln/model_1.onnx", dtln_spectrum, {"input_3": "tf_op_layer_stack_2"}),
    Streaming("dtln_2", "models/dtln/model_2.onnx", dtln_block, {"input_5": "tf_op_layer_stack_5"}),
    Streaming("gtcrn", "models/gtcrn/gtcrn_simple.onnx", gtcrn_spectrum,
              {name: f"{name}_out" for name in ("conv_cache", "tra_cache", "inter_cache")}),
    Streaming("silero_vad", "models/silero-vad/silero_vad_16k_op15.onnx", silero_block, {"state": "stateN"},
              {"sr": np.array(16000, np.int64)}),
]


def bind(network, path):
    """The options that fix the shape of a file with open dimensions."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return ["--input", f"{only_input(session)}:{','.join(map(str, network.shape))}"]


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
