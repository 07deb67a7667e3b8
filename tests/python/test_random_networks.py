"""Random networks over all operators: the golden run against onnxruntime, the float16 program against the golden run,
every rewrite (each pass alone, in random orders, all) against the network as it is.

The whole sweep: OPENRKNN_RANDOM_NETWORKS=2000 tools/test_python.sh tests/python/test_random_networks.py -s
"""
import collections
import json
import os
import subprocess

import numpy as np
import pytest

from conftest import BINARY
from random_onnx import Network, save

COUNT = int(os.environ.get("OPENRKNN_RANDOM_NETWORKS", "200"))
FIRST = int(os.environ.get("OPENRKNN_RANDOM_FIRST", "0"))
CHUNK = 50
MOST_REFUSED = 0.05
# What a float16 program may add to the golden run: the networks are well-conditioned, see random_onnx.
COSINE = 0.999


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    return 1.0 if scale == 0 and np.array_equal(a, b) else float(a @ b / scale) if scale else 0.0


def results(folder):
    return {o["name"]: np.load(folder / o["file"]) for o in json.loads((folder / "outputs.json").read_text())}


def check_golden(network, got):
    for name in network.outputs():
        wanted = network.values[name].exact
        assert got[name].shape == wanted.shape, f"{name}: {got[name].shape} instead of {wanted.shape}"
        assert got[name].dtype == wanted.dtype, name
        if wanted.dtype.kind != "f":
            assert np.array_equal(got[name], wanted), name
            continue
        assert cosine(got[name], wanted) >= 0.99999, f"{name}: cosine {cosine(got[name], wanted):.6f}"
        error = np.abs(got[name] - wanted).max() / np.abs(wanted).max()
        assert error <= 1e-3, f"{name}: error {error:.2e}"


def check_program(golden, got):
    for name, wanted in golden.items():
        assert got[name].shape == wanted.shape, name
        assert cosine(got[name], wanted) >= COSINE, f"{name}: cosine {cosine(got[name], wanted):.6f}"


def check(seed, openrknn, folder, target):
    """None, or what went wrong; a refusal is given as its error text."""
    network = Network(seed)
    model = folder / "model.onnx"
    save(network, model)
    inputs = []
    for name, array in network.inputs:
        np.save(folder / f"{name}.npy", array)
        inputs += ["--input", f"{name}={folder / name}.npy"]
    openrknn("run", model, *inputs, "--outdir", folder / "golden", "--threads", "1", "--quiet")
    golden = results(folder / "golden")
    check_golden(network, golden)
    program = folder / "model.rknn"
    built = openrknn("build", model, "-o", program, "--target", target, "--dtype", "fp16", "--threads", "1", "--quiet", check=False)
    if built.returncode:
        return built.stderr.strip()
    openrknn("run", program, *inputs, "--outdir", folder / "npu", "--threads", "1", "--quiet")
    check_program(golden, results(folder / "npu"))
    return None


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_random_networks(first, openrknn, tmp_path):
    failures, refusals = [], []
    for seed in range(first, min(first + CHUNK, FIRST + COUNT)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        target = ("rk3588", "rk3576", "rk3568", "rk3562")[seed % 4]
        try:
            refusal = check(seed, openrknn, folder, target)
            if refusal:
                refusals.append(f"{seed} on {target}: {refusal}")
        except AssertionError as error:
            failures.append(f"{seed} on {target}: {error}")
    kept = subprocess.run([BINARY.parent / "openrknn_pass_check", *sorted(tmp_path.glob("*/model.onnx"))], capture_output=True, text=True,
                          timeout=900, check=False)
    failures += [line for line in kept.stdout.splitlines()[:-1]] if kept.returncode else []
    for kind, count in collections.Counter(r.split(": ", 1)[1][:100] for r in refusals).most_common():
        print(f"refused {count}: {kind}")
    assert not failures, f"{len(failures)} wrong\n" + "\n".join(f[:600] for f in failures)
    assert len(refusals) <= MOST_REFUSED * CHUNK, "\n".join(refusals)
