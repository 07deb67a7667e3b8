#!/usr/bin/env python3
"""Checks that every include in src/ follows the layer rules of docs/TOUR.md; names the offending line."""
import pathlib
import re
import sys

# folder -> folders whose headers it may include (its own always). The closure is written out on purpose.
BASE = {"base"}
CORE = BASE | {"core"}
KERNELS = CORE | {"kernels"}
IR = CORE | {"ir"}
OPS = IR | KERNELS | {"ops"}
EVAL = OPS | {"plan", "eval"}
QUANT = EVAL | {"target", "io", "quant"}
NPU = QUANT | {"opt", "model", "npu"}
SIM = CORE | {"model", "kernels", "sim"}
ALLOWED = {
    "base": BASE, "core": CORE, "kernels": KERNELS, "io": CORE | {"io"}, "ir": IR, "ops": OPS, "plan": BASE | {"plan"},
    "eval": EVAL, "import": OPS | {"import"}, "opt": EVAL | {"opt"}, "target": CORE | {"target"}, "quant": QUANT,
    "model": CORE | {"model"}, "npu": NPU, "sim": SIM, "runtime": SIM | {"target", "io", "runtime"},
    "analysis": NPU | SIM | {"import", "analysis"}, "toolkit": NPU | SIM | {"import", "analysis", "toolkit"}, "cli": {"cli"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/')


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "src"
    bad = 0
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".h", ".inc"):
            continue
        folder = path.relative_to(root).parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match[1] == "openrknn":
                continue
            if match[1] not in ALLOWED.get(folder, set()):
                print(f"{path.relative_to(root.parent)}:{number}: {folder} may not include {match[1]}/: {line.strip()}")
                bad += 1
    print(f"layers: {bad} offending includes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
