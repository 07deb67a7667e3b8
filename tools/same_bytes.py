#!/usr/bin/env python3
"""Proves that nothing but the model and the options decides a byte: builds and runs networks with several builds of the
command (compilers, optimisation levels), with 1 and 2 threads, on every instruction set, and in strict mode; and runs
the networks themselves.

    build/venv/bin/python tools/same_bytes.py [--all] BINARY [BINARY...]

Without --all: the small networks. Exit status 1 and the differing run on the first difference."""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))
sys.dont_write_bytecode = True
import pytest  # noqa: E402

from networks import NETWORKS, bind  # noqa: E402

SMALL = ("digits_convnet", "digits_vit", "mnist", "ultraface_slim", "ppocr_cls", "mobilenetv2")


def call(binary, arguments, isa=""):
    environment = dict(os.environ, OPENRKNN_ISA=isa) if isa else os.environ
    done = subprocess.run([binary, *map(str, arguments), "--quiet"], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{binary} {' '.join(map(str, arguments))}\n{done.stderr[-2000:]}")


def digest(path):
    files = sorted(path.glob("*.npy")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("binary", nargs="+")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="same_bytes"))
    checked = 0
    for network in NETWORKS:
        if not options.all and network.name not in SMALL:
            continue
        try:
            path = network.file(folder)
            sample = network.sample(0)
        except pytest.skip.Exception as skipped:
            print(f"{network.name}: skipped: {skipped}")
            continue
        np.save(folder / "sample.npy", sample)
        (folder / "list.txt").write_text("sample.npy\n")
        variants = [(binary, threads, "") for binary in options.binary for threads in (1, 2)]
        variants += [(options.binary[0], 2, isa) for isa in ("scalar", "avx2", "avx512bw", "avx512vnni")]
        golden = {}
        for binary, threads, isa in variants:
            call(binary, ["run", path, "--input", folder / "sample.npy", "--outdir", folder / "golden", "--threads", threads], isa)
            golden.setdefault(digest(folder / "golden"), f"{binary} --threads {threads} {isa}")
            checked += 1
        if len(golden) > 1:
            print(f"{network.name}: the golden runs differ of\n  " + "\n  ".join(golden.values()))
            return 1
        for dtype in ("fp16", "w8a8"):
            seen = {}
            for number, (binary, threads, isa) in enumerate(variants):
                program, out = folder / f"{number}.rknn", folder / f"out{number}"
                call(binary, ["build", path, "-o", program, "--target", "rk3588", "--dtype", dtype, "--dataset", folder / "list.txt",
                              *bind(network, path), "--threads", threads], isa)
                runs = [[]] if isa or number else [[], ["--strict"]]
                for extra in runs:
                    call(binary, ["run", program, "--input", folder / "sample.npy", "--outdir", out, "--raw-output", "--threads", threads,
                                  *extra], isa)
                    for what, value in (("program", digest(program)), ("results", digest(out))):
                        who = f"{binary} --threads {threads} {' '.join(extra)} {isa}"
                        first = seen.setdefault(what, (value, who))
                        if first[0] != value:
                            print(f"{network.name} {dtype}: the {what} of\n  {who}\ndiffer from those of\n  {first[1]}")
                            return 1
                        checked += 1
            print(f"{network.name} {dtype}: same bytes in {len(variants)} variants", flush=True)
    print(f"{checked} comparisons, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
