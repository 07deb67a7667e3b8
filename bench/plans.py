#!/usr/bin/env python3
"""What the memory planning strategies need for the intermediate tensors of each network, in KiB, beside the lower bound.

    OPENRKNN_SHARED=... build/venv/bin/python bench/plans.py [--binary build/release/bin/openrknn] [--target rk3588]
        [--dtype fp16] [NETWORK...]

The networks of tests/python/networks.py; all of them when none is named. `more s`: how much longer a build with Optimal
takes than one with BestFit, the least of two each."""
import argparse
import json
import pathlib
import subprocess
import tempfile
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))

import pytest  # noqa: E402

from networks import NETWORKS, bind  # noqa: E402

STRATEGIES = ("BestFit", "GreedyBySize", "GreedyByLifetime", "SlowPeakGrowth", "Optimal")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/openrknn")
    parser.add_argument("--target", default="rk3588")
    parser.add_argument("--dtype", default="fp16")
    parser.add_argument("networks", nargs="*")
    options = parser.parse_args()
    chosen = [n for n in NETWORKS if not options.networks or n.name in options.networks]
    print(f"{options.target} {options.dtype}".ljust(20) + "".join(f"{s:>17s}" for s in STRATEGIES)
          + "       bound  proven  more s")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = folder / "p.rknn"
        for network in chosen:
            try:
                model = network.file(folder)
            except pytest.skip.Exception as reason:
                print(f"{network.name:20s} skipped: {reason}")
                continue
            sizes, seconds = [], []
            for strategy in STRATEGIES:
                times = []
                for _ in range(2):
                    start = time.perf_counter()
                    subprocess.run([options.binary, "build", model, *bind(network, model), "--target", options.target,
                                    "--dtype", options.dtype, "--memory-plan", strategy, "--out", program, "--quiet"],
                                   capture_output=True, check=True)
                    times.append(time.perf_counter() - start)
                seconds.append(min(times))
                report = subprocess.run([options.binary, "inspect", program, "--json", "-"], capture_output=True,
                                        text=True, check=True)
                memory = json.loads(report.stdout)["memory"]
                sizes.append(memory["internal"])
            print(f"{network.name:20s}" + "".join(f"{s / 1024:17.1f}" for s in sizes)
                  + f"{memory['lower_bound'] / 1024:12.1f}  {'yes' if memory['plan_is_smallest'] else 'no':6s}"
                  f"{seconds[-1] - seconds[0]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
