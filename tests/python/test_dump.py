"""A dump of a run recomputes to the same bytes in numpy."""
import numpy as np
import pytest

from conftest import ROOT
from recompute import Dump, rne

MODEL = ROOT / "models/digits/convnet_digits.onnx"


def test_rounding_is_to_nearest_even():
    for shift in range(0, 6):
        for p in range(-200, 200):
            assert rne(p, shift) == round(p / 2**shift), (p, shift)  # Python rounds ties to even


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    names = []
    for i, image in enumerate(np.load(ROOT / "models/digits/calib_images_f32.npy")[:20]):
        np.save(folder / f"{i}.npy", image[None])
        names.append(f"{i}.npy")
    (folder / "list.txt").write_text("\n".join(names) + "\n")
    return folder / "list.txt"


@pytest.mark.parametrize("target,dtype", [("rk3588", "w8a8"), ("rk3588", "fp16"), ("rk3568", "w8a8"), ("rv1106", "w8a8"),
                                          ("rk3576", "fp16")])
def test_dump_recomputes_to_the_same_bytes(openrknn, calibration, tmp_path, target, dtype):
    program = tmp_path / "net.rknn"
    openrknn("build", MODEL, "-o", program, "--target", target, "--dtype", dtype, "--dataset", calibration, "--quiet")
    np.save(tmp_path / "input.npy", np.load(ROOT / "models/digits/test_images_f32.npy")[:1])
    openrknn("run", program, "--input", tmp_path / "input.npy", "--outdir", tmp_path / "out", "--dump", tmp_path / "dump",
             "--quiet")
    dump = Dump(tmp_path / "dump")
    done, left = [], []
    for task in dump.tasks:
        try:
            got = dump.recompute(task)
        except NotImplementedError as why:
            left.append(f"{task['name']} ({why})")
            continue
        stored = dump.tensor(task["outputs"][0])
        assert np.array_equal(got.reshape(stored.shape), stored), f"{task['name']} ({task['op']})"
        done.append(task["op"])
    print(f"{target} {dtype}: {len(done)} tasks recomputed, left: {left}")
    assert "Conv" in done
    assert len(done) >= 0.9 * len(dump.tasks), left
