#!/usr/bin/env bash
# The checks that compare with onnxruntime and numpy: build/release must be built, build/venv set up (tools/test.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
# Arguments go to pytest: tests/python/test_dump.py -k rk3588
[ $# -gt 0 ] || set -- tests/python
exec build/venv/bin/python -B -m pytest -q -rs -p no:cacheprovider "$@"
