#!/usr/bin/env bash
# Builds the fuzz targets (clang, address and undefined behaviour sanitizers) and searches with each for a while.
#   tools/fuzz.sh [SECONDS [TARGET...]]     default: 60 seconds, all targets
# What is found stays in build/fuzz/found; new inputs of interest in build/fuzz/corpus. Prints executions per target.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
clangxx=$(command -v clang++-14 || command -v clang++)
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$clangxx" >/dev/null
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(import_onnx run_passes read_rknn read_npy read_image read_dataset)
cmake --build --preset fuzz -j "$(nproc)" --target "${targets[@]/#/fuzz_}"
mkdir -p build/fuzz/found
status=0
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target"
  log=build/fuzz/$target.log
  # One slow input is reported after 25 s; nothing may take more than 2 GB.
  build/fuzz/bin/fuzz_"$target" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" \
    "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || {
    status=1
    echo "$target: found something"
    grep -E "ERROR|SUMMARY|runtime error|Test unit written" "$log" | head -5
  }
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions in $seconds s"
done
exit $status
