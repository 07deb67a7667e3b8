#!/usr/bin/env bash
# The checks that compare with onnxruntime and numpy: build/release must be built, build/venv set up (tools/test.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
exec build/venv/bin/python -m pytest -q -rs -p no:cacheprovider "$@" tests/python
