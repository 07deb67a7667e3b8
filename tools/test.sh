#!/usr/bin/env bash
# Installs packages, builds everything, runs the C++ tests and then the Python checks.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== packages"
tools/setup.sh --test
echo "== build (build/release)"
cmake --preset release -DOPENRKNN_TESTS=ON >/dev/null
cmake --build --preset release -j "$(nproc)"
echo "== C++ tests"
ctest --test-dir build/release --output-on-failure -j "$(nproc)"
echo "== Python checks"
tools/test_python.sh
