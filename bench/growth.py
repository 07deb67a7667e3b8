#!/usr/bin/env python3
"""How time grows with work: chains of four 3x3 convolutions over a 100-fold range of multiply-adds, once by the size of
the picture and once by the number of channels. One thread, the least of `bench`'s runs.

    build/venv/bin/python bench/growth.py [--binary build/release/bin/openrknn]

A straight line in log-log has one slope; `steepest` is the steepest step between neighbouring sizes (2 is a cliff)."""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = 4


def chain(path, channels, extent):
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for i in range(LAYERS):
        scale = (2 / (9 * channels)) ** 0.5
        weights.append(numpy_helper.from_array(
            (scale * random.standard_normal((channels, channels, 3, 3))).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        last = f"r{i}"
    shape = [1, channels, extent, extent]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    np.save(path.with_suffix(".npy"), random.random(shape, dtype=np.float32))
    path.with_suffix(".txt").write_text(path.with_suffix(".npy").name + "\n")


def milliseconds(binary, model, engine):
    file = model
    if engine != "golden":
        file = model.with_suffix(".rknn")
        data = ["--dataset", model.with_suffix(".txt")] if engine == "w8a8" else []
        subprocess.run([binary, "build", model, "--target", "rk3588", "--dtype", engine, *data, "--out", file, "--quiet"],
                       check=True, capture_output=True)
    done = subprocess.run([binary, "bench", file, "--threads", "1", "--json", "-"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["min_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/openrknn")
    options = parser.parse_args()
    ranges = {"picture, 64 channels": [(64, e) for e in (8, 12, 16, 24, 32, 48, 64, 80)],
              "channels, 32x32": [(c, 32) for c in (16, 24, 32, 48, 64, 96, 128, 160)]}
    with tempfile.TemporaryDirectory() as folder:
        for title, sizes in ranges.items():
            for engine in ("w8a8", "fp16", "golden"):
                points = []
                for channels, extent in sizes:
                    model = pathlib.Path(folder) / f"c{channels}_{extent}.onnx"
                    if not model.is_file():
                        chain(model, channels, extent)
                    macs = LAYERS * channels * channels * 9 * extent * extent
                    points.append((macs, milliseconds(options.binary, model, engine)))
                steps = [math.log(b[1] / a[1]) / math.log(b[0] / a[0]) for a, b in zip(points, points[1:])]
                slope = math.log(points[-1][1] / points[0][1]) / math.log(points[-1][0] / points[0][0])
                print(f"{title:22s} {engine:7s} ms " + " ".join(f"{ms:8.3f}" for _, ms in points)
                      + f"  GMAC/s {points[0][0] / points[0][1] * 1e-6:6.1f} to {points[-1][0] / points[-1][1] * 1e-6:6.1f}"
                      + f"  slope {slope:.2f}, steepest {max(steps):.2f}", flush=True)


if __name__ == "__main__":
    main()
