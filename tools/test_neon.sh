#!/usr/bin/env bash
# Builds the kernels and their tests for 64-bit Arm and runs them in an emulator, NEON and NEON with sdot: every property
# with so many cases for each function and instruction set. Optional.
#   tools/test_neon.sh [CASES [GTEST_FILTER]]      default: 2000 cases, all tests
# On Debian 12, once:
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu qemu-user-static \
#     libfmt-dev:arm64 libspdlog-dev:arm64 libtbb-dev:arm64 libxxhash-dev:arm64 libgtest-dev:arm64
set -euo pipefail
cd "$(dirname "$0")/.."
cases=${1:-2000}
filter=${2:-*}

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
for package in libfmt-dev libspdlog-dev libtbb-dev libxxhash-dev libgtest-dev; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package:arm64" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package:arm64")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "test_neon: install first (see the head of this script): ${missing[*]}" >&2
  exit 1
fi

build=build/neon
PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig \
  cmake --preset aarch64 -B "$build" -DOPENRKNN_KERNELS_ONLY=ON >/dev/null
cmake --build "$build" -j "$(nproc)" --target kernels_test
# Each process on one processor: threads that wait for each other in the emulator wait for minutes.
tools/kernel_sweep.sh --cases "$cases" --filter "$filter" --pin -- \
  qemu-aarch64-static -L /usr/aarch64-linux-gnu "$build/bin/kernels_test"
