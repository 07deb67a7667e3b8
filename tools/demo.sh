#!/usr/bin/env bash
# Installs packages, builds openrknn, converts the digit networks for the RK3588 in float16 and int8 and runs the test
# pictures on the simulated NPU. A second run is quick.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== packages"
tools/setup.sh
echo "== build (build/release)"
cmake --preset release -DOPENRKNN_TESTS=OFF >/dev/null
cmake --build --preset release --target openrknn_cli digits -j "$(nproc)"
echo "== digit networks on the simulated RK3588"
build/release/bin/digits models/digits build/demo
