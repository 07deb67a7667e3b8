#!/usr/bin/env python3
"""Checks the text of all tracked files: no leftover marks, no paths of somebody's machine, English in ASCII, no
trailing blanks. Names the offending line."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = {".onnx", ".npy", ".png", ".jpg", ".bmp", ".rknn", ".tflite", ".pt", ".pb", ".wav", ".bin"}
CORPUS = ROOT / "tests/fuzz/corpus"  # any bytes
LEFTOVER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b|^(<{7}|>{7}|={7})( |$)")
# Folders that only somebody's own machine has.
PATH = re.compile(r"(?<![\w.$}])/(home|root|mnt|media|srv|opt|work|workspace|Users)/[\w.-]")
# Symbols that formulas in the documents use.
SYMBOLS = set("×·≤≥≠±→√Σ−–—²³°µ…")


def tracked():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [ROOT / name for name in names.decode().split("\0") if name]


def problems(path, line):
    if LEFTOVER.search(line):
        yield "a leftover mark"
    if match := PATH.search(line):
        yield f"a path of one machine: /{match[1]}/"
    if path.suffix != ".patch" and line != line.rstrip():
        yield "blanks at the end"
    strange = {c for c in line if ord(c) > 126 and c not in SYMBOLS} | {c for c in line if ord(c) < 32 and c != "\t"}
    if strange:
        yield f"characters {sorted(strange)}"


def main():
    bad = 0
    for path in tracked():
        if path.suffix in BINARY or path.name == "LICENSE" or CORPUS in path.parents or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{path.relative_to(ROOT)}: not UTF-8")
            bad += 1
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for problem in problems(path, line):
                print(f"{path.relative_to(ROOT)}:{number}: {problem}")
                bad += 1
    print(f"text: {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
