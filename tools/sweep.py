#!/usr/bin/env python3
"""Builds and simulates every network of tests/python/networks.py in both number formats and prints one table.

    build/venv/bin/python tools/sweep.py [--target rk3588] [--only NAME]... [--samples 8] [--keep FOLDER]

Per network and format: the lowest cosine of its outputs against the golden run (each output over all sample pictures
together; over the first one for networks with random weights), the share of multiply-adds on the NPU,
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
from networks import NETWORKS, bind, cosine, load_outputs  # noqa: E402


class Failed(Exception):
    pass


def openrknn(*arguments):
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return done.stdout


def measure(network, dtype, target, samples, folder):
    path = network.file(folder / "models")
    work = folder / network.name
    work.mkdir(exist_ok=True)
    names = [f"sample{i}.npy" for i in range(samples)]
    for i, name in enumerate(names):
        np.save(work / name, network.sample(i))
    (work / "list.txt").write_text("\n".join(names) + "\n")
    measured = names if network.trained else names[:1]
    for name in measured:
        if not (work / "golden" / name / "outputs.json").is_file():
            openrknn("run", path, "--input", work / name, "--outdir", work / "golden" / name, "--quiet")
    program = work / f"{dtype}.rknn"
    begin = time.monotonic()
    openrknn("build", path, "-o", program, "--target", target, "--dtype", dtype, "--dataset", work / "list.txt",
             *bind(network, path), "--quiet")
    built = time.monotonic()
    openrknn("run", program, "--input", work / measured[0], "--outdir", work / "npu" / measured[0], "--quiet")
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


def worst_cosine(program, work, names):
    """The lowest cosine of an output, each over all pictures together."""
    golden, npu = {}, {}
    for name in names:
        openrknn("run", program, "--input", work / name, "--outdir", work / "npu" / name, "--quiet")
        for found, folder in ((golden, "golden"), (npu, "npu")):
            for output, array in load_outputs(work / folder / name):
                found.setdefault(output, []).append(array.ravel())
    return min(cosine(np.concatenate(golden[output]), np.concatenate(npu[output])) for output in golden)


def lift(network, target, folder, wanted=0.98):
    """The fewest of the worst layers (1, 2, 4, ...) that must be fp16 for every output to reach `wanted`."""
    path = network.file(folder / "models")
    work = folder / network.name
    report = work / "compare.json"
    openrknn("compare", path, work / "w8a8.rknn", "--dataset", work / "list.txt", "--max-samples", "1", "--json", report, "--quiet")
    layers = json.loads(report.read_text())["layers"]
    orders = [sorted((layer for layer in layers if layer.get(kind)), key=lambda layer: layer[kind]["worst"]["cos"])
              for kind in ("entire", "single")]
    count = 1
    while True:
        for order in orders:
            names = [layer["name"] for layer in order[:count]]
            options = [part for name in names for part in ("--layer-dtype", f"{name}=fp16")]
            program = work / "mixed.rknn"
            openrknn("build", path, "-o", program, "--target", target, "--dtype", "w8a8", "--dataset", work / "list.txt",
                     *bind(network, path), *options, "--quiet")
            cos = worst_cosine(program, work, [p.name for p in sorted(work.glob("sample*.npy"))])
            if cos >= wanted or count >= len(layers):
                return count, len(layers), cos, [name[:40] for name in names[:5]]
        count = min(count * 2, len(layers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="rk3588")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--keep")
    options = parser.parse_args()
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="sweep"))
    (folder / "models").mkdir(parents=True, exist_ok=True)
    print(f"{'network':24}{'format':8}{'cosine':>10}{'NPU':>8}{'CPU':>5}{'memory':>9}{'file':>9}{'build s':>9}{'run s':>8}")
    failed = 0
    int8 = []
    for network in NETWORKS:
        if options.only and network.name not in options.only:
            continue
        for dtype in ("fp16", "w8a8"):
            try:
                row = measure(network, dtype, options.target, options.samples, folder)
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
                    count, total, cos, names = lift(network, options.target, folder)
                    print(f"{'':32}the worst {count} of {total} layers in fp16: {cos:.6f} ({', '.join(names)}"
                          f"{', ...' if count > len(names) else ''})", flush=True)
                except Failed as error:
                    print(f"{'':32}FAILED: {error}", flush=True)
                    failed += 1
    if int8:
        print(f"int8, trained networks: median cosine {np.median(int8):.6f}, lowest {min(int8):.6f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
