#!/usr/bin/env python3
"""Runs a model with onnxruntime on seeded or given inputs, and compares the results with those of `openrknn run`.

    golden.py MODEL.onnx --outdir GOLDEN                      writes GOLDEN/inputs/<input>.npy, GOLDEN/<output>.npy, GOLDEN/outputs.json
    openrknn run MODEL.onnx --input x=GOLDEN/inputs/x.npy --outdir RUN
    golden.py MODEL.onnx --outdir GOLDEN --compare RUN        cosine and largest error of every output; status 1 beyond --max-error

Needs numpy and onnxruntime from PyPI.
"""
import argparse
import json
import pathlib
import re
import sys

try:
    import numpy as np
    import onnxruntime
except ImportError as missing:
    sys.exit(f"golden.py: {missing.name} is not installed; run: pip install numpy onnx onnxruntime")

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
          "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--outdir", type=pathlib.Path, required=True)
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE.npy", help="an input's values; without a name in the model's order")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME:D,D,...", help="shape of a seeded input with open dimensions")
    parser.add_argument("--output", action="append", default=[], metavar="NAME", help="only these outputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--range", type=float, nargs=2, default=(-1.0, 1.0), metavar=("LOW", "HIGH"), help="of seeded float inputs")
    parser.add_argument("--compare", type=pathlib.Path, metavar="DIR", help="folder written by `openrknn run`")
    parser.add_argument("--max-error", type=float, default=1e-4, help="largest error allowed, over the largest value of the output")
    return parser.parse_args()


def safe_name(tensor, taken):
    """The file name that `openrknn run` gives to a tensor."""
    base = re.sub(r"[^A-Za-z0-9_.-]", "_", tensor) or "_"
    name, count = base, 0
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name


def given_inputs(arguments, inputs):
    names = [i.name for i in inputs]
    free = [n for n in names]
    given = {}
    for text in arguments.input:
        name = next((n for n in sorted(names, key=len, reverse=True) if text.startswith(n + "=")), None)
        path = text[len(name) + 1:] if name else text
        if name is None:
            if not free:
                sys.exit(f"golden.py: more --input files than the model has inputs ({', '.join(names)})")
            name = free[0]
        if name in free:
            free.remove(name)
        given[name] = np.load(path)
    return given


def seeded_input(info, shapes, generator, value_range):
    dims = shapes.get(info.name, info.shape)
    if not all(isinstance(d, int) and d > 0 for d in dims):
        sys.exit(f"golden.py: input '{info.name}' has open dimensions {dims}; give --shape {info.name}:D,D,...")
    dtype = DTYPES.get(info.type)
    if dtype is None:
        sys.exit(f"golden.py: input '{info.name}' has type {info.type}; give a file")
    if np.issubdtype(dtype, np.floating):
        return generator.uniform(*value_range, size=dims).astype(dtype)
    return generator.integers(0, 2, size=dims).astype(dtype)


def run_model(arguments):
    options = onnxruntime.SessionOptions()
    # The model as written: no fusions that change rounding.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(arguments.model), options, providers=["CPUExecutionProvider"])
    except Exception as failure:  # onnxruntime has no public base class of its own
        sys.exit(f"golden.py: onnxruntime cannot load {arguments.model}: {failure}")
    shapes = {}
    for text in arguments.shape:
        name, _, dims = text.rpartition(":")
        shapes[name] = [int(d) for d in dims.split(",")]
    feeds = given_inputs(arguments, session.get_inputs())
    generator = np.random.default_rng(arguments.seed)
    for info in session.get_inputs():
        seeded = info.name not in feeds
        if seeded:
            feeds[info.name] = seeded_input(info, shapes, generator, arguments.range)
    names = arguments.output or [o.name for o in session.get_outputs()]
    return feeds, dict(zip(names, session.run(names, feeds)))


def write_results(outdir, feeds, results):
    (outdir / "inputs").mkdir(parents=True, exist_ok=True)
    taken = set()
    for name, value in feeds.items():
        np.save(outdir / "inputs" / (safe_name(name, taken) + ".npy"), value)
    taken, listing = set(), []
    for name, value in results.items():
        file = safe_name(name, taken) + ".npy"
        np.save(outdir / file, value)
        listing.append({"name": name, "file": file, "dtype": str(value.dtype), "shape": list(value.shape)})
    (outdir / "outputs.json").write_text(json.dumps(listing, indent=1) + "\n")


def compare_one(name, golden, folder, listing):
    """A line of the table and the relative error; an error of None means that they cannot be compared."""
    if name not in listing:
        return f"{name}: not in {folder}/outputs.json", None
    other = np.load(folder / listing[name]["file"])
    if list(other.shape) != list(golden.shape):
        return f"{name}: shape {list(other.shape)}, expected {list(golden.shape)}", None
    a, b = golden.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return f"{name}: infinities or NaNs differ", None
    finite = np.isfinite(a)
    a, b = a[finite], b[finite]
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    cosine = float(a @ b / norm) if norm > 0 else float(np.array_equal(a, b))
    largest = float(np.abs(a).max(initial=0))
    error = float(np.abs(a - b).max(initial=0))
    relative = error / largest if largest > 0 else error
    return f"{name}: shape {list(golden.shape)}  cosine {cosine:.9f}  largest error {error:.3e}  over largest value {relative:.3e}", relative


def compare(arguments, results):
    path = arguments.compare / "outputs.json"
    if not path.is_file():
        sys.exit(f"golden.py: {path} is not there: give the --outdir of `openrknn run`")
    listing = {entry["name"]: entry for entry in json.loads(path.read_text())}
    worst = 0.0
    for name, golden in results.items():
        line, error = compare_one(name, golden, arguments.compare, listing)
        print(line)
        worst = max(worst, float("inf") if error is None else error)
    print(f"worst {worst:.3e}, allowed {arguments.max_error:.3e}")
    return 0 if worst <= arguments.max_error else 1


def main():
    arguments = parse_arguments()
    feeds, results = run_model(arguments)
    write_results(arguments.outdir, feeds, results)
    return compare(arguments, results) if arguments.compare else 0


if __name__ == "__main__":
    sys.exit(main())
