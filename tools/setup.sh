#!/usr/bin/env bash
# Installs what the build needs, on Debian 12 or 13. Does nothing, quickly, when everything is there.
#   tools/setup.sh          packages of the build
#   tools/setup.sh --test   and of the tests, and a Python environment in build/venv
#   tools/setup.sh --ci     and of the checks of .ci/run
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build ccache pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libtbb-dev
  libprotobuf-dev protobuf-compiler libjpeg-dev libpng-dev libcli11-dev libxxhash-dev libzstd-dev libyaml-cpp-dev)
test_packages=(libgtest-dev python3 python3-venv)
ci_packages=(git clang clang-format clang-tidy libbenchmark-dev)

level=${1:-}
case "$level" in
  "") ;;
  --test) packages+=("${test_packages[@]}") ;;
  --ci) packages+=("${test_packages[@]}" "${ci_packages[@]}") ;;
  *) echo "usage: tools/setup.sh [--test|--ci]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed* ]] || missing+=("$package")  # once for each architecture
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "setup: this script installs Debian packages and there is no apt-get; needed: ${missing[*]}" >&2
    exit 1
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "setup: run this once as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# clang's sanitizer and fuzzer libraries are packages of its version.
if [ "$level" = --ci ] && clang=$(command -v clang++-14 || command -v clang++); then
  major=$("$clang" -dumpversion | cut -d. -f1)
  for package in "libclang-rt-$major-dev" "libfuzzer-$major-dev"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $state == installed* ]] && continue
    echo "setup: installing $package"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
  done
fi

[ -n "$level" ] || exit 0

# The Python environment, made again when its requirements change.
stamp=build/venv/requirements.sum
wanted=$(sha256sum tools/requirements.txt)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
  echo "setup: Python environment in build/venv"
  mkdir -p build
  python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check -r tools/requirements.txt
  echo "$wanted" > "$stamp"
fi
