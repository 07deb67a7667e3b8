#!/usr/bin/env python3
"""Builds and simulates every network of tests/python/networks.py in both number formats and prints a table a target.

    build/venv/bin/python tools/sweep.py [--target rk3588]... [--only NAME]... [--samples 8] [--keep FOLDER]

Per network and format: the lowest cosine of its outputs against the golden run (each output over all sample pictures
together; over the first one for networks with random weights; streaming networks take each step from the golden run's states), the share of multiply-adds on the NPU,
the tasks on the CPU, memory and file size in KiB, seconds for build and run. Exit status 1 if anything failed."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))
sys.dont_write_bytecode = True
import pytest  # noqa: E402

from conftest import BINARY  # noqa: E402
from networks import NETWORKS, STREAMING, Streaming, bind, cosine, load_outputs  # noqa: E402


class Failed(Exception):
    pass


def openrknn(*arguments):
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def golden_of_pictures(network, path, count, work):
    names = [f"sample{i}" for i in range(count)]
    for i, name in enumerate(names):
        np.save(work / f"{name}.npy", network.sample(i))
    (work / "list.txt").write_text("".join(f"{name}.npy\n" for name in names))
    measured = names if network.trained else names[:1]
    for name in measured:
        if not (work / "golden" / name / "outputs.json").is_file():
            openrknn("run", path, "--input", work / f"{name}.npy", "--outdir", work / "golden" / name, "--quiet")
    return {name: ["--input", work / f"{name}.npy"] for name in measured}


def golden_of_steps(network, path, count, work):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in session.get_inputs()}
    audio, = set(shapes) - set(network.states) - set(network.constants)
    feed = {name: np.zeros(shapes[name], np.float32) for name in network.states} | network.constants
    lines, measured = [], {}
    for step, frame in enumerate(network.steps(count)):
        feed[audio] = frame
        files = {name: f"step{step}_{k}.npy" for k, name in enumerate(shapes)}
        for name, file in files.items():
            np.save(work / file, feed[name])
        lines.append(" ".join(files.values()) + "\n")
        arguments = [part for name, file in files.items() for part in ("--input", f"{name}={work / file}")]
        golden = work / "golden" / f"step{step}"
        openrknn("run", path, *arguments, "--outdir", golden, "--quiet")
        outputs = dict(load_outputs(golden))
        feed |= {name: outputs[output] for name, output in network.states.items()}
        measured[f"step{step}"] = arguments
    (work / "list.txt").write_text("".join(lines))
    return measured, [part for name in shapes for part in ("--input", f"{name}:{','.join(map(str, feed[name].shape))}") if feed[name].ndim]


def prepare(network, samples, folder):
    """Model, work folder, options of the build, and by name of a sample the options that feed it to a run."""
    path = network.file(folder / "models")
    work = folder / network.name
    work.mkdir(exist_ok=True)
    if isinstance(network, Streaming):
        measured, shapes = golden_of_steps(network, path, samples, work)
        return path, work, shapes, measured
    return path, work, bind(network, path), golden_of_pictures(network, path, samples, work)


def measure(network, dtype, target, samples, folder):
    path, work, shapes, measured = prepare(network, samples, folder)
    program = work / f"{dtype}.rknn"
    begin = time.monotonic()
    openrknn("build", path, "-o", program, "--target", target, "--dtype", dtype, "--dataset", work / "list.txt",
             *shapes, "--quiet")
    built = time.monotonic()
    first = next(iter(measured))
    openrknn("run", program, *measured[first], "--outdir", work / "npu" / first, "--quiet")
    ran = time.monotonic()
    report = json.loads(openrknn("inspect", program, "--json", "-"))
    macs = {"npu": 0, "cpu": 0}
    for task in report["tasks"]:
        macs[task["engine"]] += task["macs"]
    return {
        "cos": worst_cosine(program, work, measured),
        "npu": macs["npu"] / max(1, macs["npu"] + macs["cpu"]),
        "cpu_tasks": sum(task["engine"] == "cpu" for task in report["tasks"]),
        "reasons": sorted({f"{task['op']}: {task['reason']}" for task in report["tasks"] if task["engine"] == "cpu"}),
        "memory": report["memory"]["internal"] // 1024,
        "file": program.stat().st_size // 1024,
        "build": built - begin,
        "run": ran - built,
    }


def worst_cosine(program, work, measured):
    """The lowest cosine of an output, each over all pictures together."""
    golden, npu = {}, {}
    for name, arguments in measured.items():
        openrknn("run", program, *arguments, "--outdir", work / "npu" / name, "--quiet")
        for found, folder in ((golden, "golden"), (npu, "npu")):
            for output, array in load_outputs(work / folder / name):
                found.setdefault(output, []).append(array.ravel())
    return min(cosine(np.concatenate(golden[output]), np.concatenate(npu[output])) for output in golden)


def lift(network, target, samples, folder, wanted=0.98):
    """The fewest of the worst layers (1, 2, 4, ...) that must be fp16, with the inputs, for every output to reach `wanted`."""
    path, work, shapes, measured = prepare(network, samples, folder)
    report = work / "compare.json"
    openrknn("compare", path, work / "w8a8.rknn", "--dataset", work / "list.txt", "--max-samples", "1", "--json", report, "--quiet")
    layers = json.loads(report.read_text())["layers"]
    orders = [sorted((layer for layer in layers if layer.get(kind)), key=lambda layer: layer[kind]["worst"]["cos"])
              for kind in ("entire", "single")]
    inspected = json.loads(openrknn("inspect", work / "w8a8.rknn", "--json", "-"))
    inputs = [i["name"] for i in inspected["inputs"]]
    # What the golden run has no tensor for (parts of rewritten operators) comes last.
    unseen = [t["name"] for t in inspected["tasks"] if t["op"] != "exDataConvert" and t["name"] not in {x["name"] for x in layers}]
    count = 1
    while True:
        for order in orders:
            names = [layer["name"] for layer in order[:count]] + (unseen if count >= len(layers) else [])
            options = [part for name in inputs + names for part in ("--layer-dtype", f"{name}=fp16")]
            program = work / "mixed.rknn"
            openrknn("build", path, "-o", program, "--target", target, "--dtype", "w8a8", "--dataset", work / "list.txt",
                     *shapes, *options, "--quiet")
            cos = worst_cosine(program, work, measured)
            if cos >= wanted or count >= len(layers):
                return count, len(layers), cos, [name[:40] for name in names[:5]]
        count = min(count * 2, len(layers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", default=[], help="may be repeated; default: rk3588")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--keep")
    options = parser.parse_args()
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="sweep"))
    (folder / "models").mkdir(parents=True, exist_ok=True)
    failed = sum(sweep(target, options, folder) for target in options.target or ["rk3588"])
    return 1 if failed else 0


def sweep(target, options, folder):
    """The table of one target; the number of failures."""
    known = {t["name"]: t["dtypes"] for t in json.loads(openrknn("targets", "--json", "-"))}
    print(f"{target:24}{'format':8}{'cosine':>10}{'NPU':>8}{'CPU':>5}{'memory':>9}{'file':>9}{'build s':>9}{'run s':>8}")
    failed = 0
    int8 = []
    for network in NETWORKS + STREAMING:
        if options.only and network.name not in options.only:
            continue
        for dtype in ("fp16", "w8a8"):
            if dtype not in known[target]:
                continue
            try:
                row = measure(network, dtype, target, options.samples, folder)
            except pytest.skip.Exception as skipped:
                print(f"{network.name:24}{dtype:8}  skipped: {skipped}")
                continue
            except Failed as error:
                print(f"{network.name:24}{dtype:8}  FAILED: {error}", flush=True)
                failed += 1
                continue
            if dtype == "w8a8" and network.trained:
                int8.append(row["cos"])
            print(f"{network.name:24}{dtype:8}{row['cos']:10.6f}{row['npu']:8.2%}{row['cpu_tasks']:5}{row['memory']:9}"
                  f"{row['file']:9}{row['build']:9.1f}{row['run']:8.1f}", flush=True)
            for reason in row["reasons"]:
                print(f"{'':32}CPU {reason}")
            if dtype == "w8a8" and row["cos"] < 0.98:
                try:
                    count, total, cos, names = lift(network, target, options.samples, folder)
                    print(f"{'':32}the worst {count} of {total} layers in fp16: {cos:.6f} ({', '.join(names)}"
                          f"{', ...' if count > len(names) else ''})", flush=True)
                except Failed as error:
                    print(f"{'':32}FAILED: {error}", flush=True)
                    failed += 1
    if int8:
        print(f"int8, trained networks: median cosine {np.median(int8):.6f}, lowest {min(int8):.6f}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
