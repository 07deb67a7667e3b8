#!/usr/bin/env bash
# Checks that docs/OPERATORS.md is what the operator table says; with --write, writes it.
# BUILD names the build folder (default build/release).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build/release}
document=$root/docs/OPERATORS.md

[ -f "$build/CMakeCache.txt" ] || { echo "no build in $build: run cmake --preset release, or set BUILD" >&2; exit 2; }
cmake --build "$build" --target openrknn_ops_table >/dev/null
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$build/bin/openrknn_ops_table" >"$made"
if [ "${1:-}" = --write ]; then
  cp "$made" "$document"
  chmod 644 "$document"
elif ! diff -u "$document" "$made"; then
  echo "docs/OPERATORS.md is out of date: run tools/check_ops_table.sh --write" >&2
  exit 1
fi
