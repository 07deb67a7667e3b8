"""The command line's contract: one clear error, exit status 1 for failed work and 2 for wrong usage, no partial file."""
import json

import pytest

from conftest import ROOT

MODEL = ROOT / "models/digits/convnet_digits.onnx"


def fails(openrknn, *arguments, status=1):
    done = openrknn(*arguments, check=False)
    assert done.returncode == status, done.stderr
    assert done.stderr.strip(), "an error needs a text"
    return done.stderr


def test_targets_lists_all_socs(openrknn):
    listed = json.loads(openrknn("targets", "--json", "-").stdout)
    names = {t["name"] for t in (listed if isinstance(listed, list) else listed["targets"])}
    assert {"rk3588", "rk3576", "rk3568", "rv1106", "rk2118"} <= names


def test_unknown_target_lists_the_known(openrknn, tmp_path):
    text = fails(openrknn, "build", MODEL, "-o", tmp_path / "x.rknn", "--target", "rk3399", "--dtype", "fp16")
    assert "rk3588" in text and "rk3399" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                                     b"\x00" * 64, b"RKNN" + b"\x01" * 200, b"hello"])
def test_unreadable_models(openrknn, tmp_path, content):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    text = fails(openrknn, "build", bad, "-o", tmp_path / "x.rknn", "--target", "rk3588", "--dtype", "fp16")
    assert "bad.onnx" in text
    assert [p.name for p in tmp_path.iterdir()] == ["bad.onnx"]


def test_missing_file_and_folder(openrknn, tmp_path):
    for path in (tmp_path / "none.onnx", tmp_path):
        assert str(path) in fails(openrknn, "build", path, "-o", tmp_path / "x.rknn", "--target", "rk3588", "--dtype", "fp16")


def test_calibration_list_names_all_missing_files(openrknn, tmp_path):
    (tmp_path / "list.txt").write_text("one.npy\ntwo.npy\n")
    text = fails(openrknn, "build", MODEL, "-o", tmp_path / "x.rknn", "--target", "rk3588", "--dataset", tmp_path / "list.txt")
    assert "one.npy" in text and "two.npy" in text
    assert not (tmp_path / "x.rknn").exists()


def test_wrong_usage(openrknn):
    fails(openrknn, "build", "--no-such-option", status=2)
    fails(openrknn, "no-such-command", status=2)
