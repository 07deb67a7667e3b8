"""Build and simulate for the RK3588: float16 against the golden run, the placement, the same bytes twice."""
import json

import numpy as np
import pytest

from networks import NETWORKS, cosine, load_outputs

SMALL = [n for n in NETWORKS if n.name in ("digits_convnet", "mnist", "ultraface_slim", "ppocr_cls")]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("network", SMALL, ids=str)
def test_float16_program_is_near_the_golden_run(network, openrknn, models, tmp_path):
    path = network.file(models)
    np.save(tmp_path / "input.npy", network.sample(0))
    openrknn("run", path, "--input", tmp_path / "input.npy", "--outdir", tmp_path / "golden", "--quiet")
    # Its dimensions are open in the file.
    bind = ("--input", "x:1,3,48,192") if network.name == "ppocr_cls" else ()
    program = tmp_path / "net.rknn"
    openrknn("build", path, "-o", program, "--target", "rk3588", "--dtype", "fp16", *bind, "--quiet")
    openrknn("run", program, "--input", tmp_path / "input.npy", "--outdir", tmp_path / "npu", "--quiet")
    for (name, golden), (npu_name, npu) in zip(load_outputs(tmp_path / "golden"), load_outputs(tmp_path / "npu")):
        assert name == npu_name
        assert golden.shape == npu.shape, name
        assert cosine(golden, npu) >= 0.999, name


def test_placement_and_determinism(openrknn, tmp_path):
    path = SMALL[0].file(tmp_path)
    files = [tmp_path / "a.rknn", tmp_path / "b.rknn"]
    for file, threads in zip(files, ("1", "2")):
        openrknn("build", path, "-o", file, "--target", "rk3588", "--dtype", "fp16", "--threads", threads, "--quiet")
    assert files[0].read_bytes() == files[1].read_bytes()
    report = json.loads(openrknn("inspect", files[0], "--json", "-").stdout)
    macs = {"npu": 0, "cpu": 0}
    for task in report["tasks"]:
        macs[task["engine"]] += task["macs"]
        if task["engine"] == "cpu":
            assert task["reason"], task["name"]
    assert macs["npu"] >= 0.99 * (macs["npu"] + macs["cpu"])
    assert report["memory"]["internal"] >= report["memory"]["lower_bound"]
