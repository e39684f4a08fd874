#!/usr/bin/env bash
# Installs what is missing of Bantam's dependencies on Debian 12. Usage: scripts/dependencies.sh [--list] [GROUP ...]
# Groups: build (default: compiler and libraries), test, device (bare-metal cross compiler and emulator), arm64 (cross
# compiler and emulator for 64-bit Arm Linux), fuzz, lint, train, networks (what bench/make_networks.py needs).
#   --list  prints the packages of the groups and installs nothing
set -euo pipefail

build="cmake ninja-build g++ ccache pkg-config flatbuffers-compiler libflatbuffers-dev libhwy-dev libprotozero-dev
  libpthreadpool-dev libexpected-dev libtomlplusplus-dev libcli11-dev libfmt-dev nlohmann-json3-dev libsndfile1-dev
  libzip-dev libjpeg62-turbo-dev libpng-dev libkissfft-dev libspeexdsp-dev"
test="libgtest-dev libgmock-dev libbenchmark-dev libonnx-testdata python3 git"
device="gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm"
arm64="g++-aarch64-linux-gnu qemu-user"
fuzz="clang libclang-rt-14-dev"
lint="clang-format clang-tidy"
train="python3-torch python3-onnx python3-numpy python3-pil espeak-ng fonts-dejavu-core
  fonts-dejavu-extra libopenblas0-pthread"
networks="python3-torch python3-torchvision python3-onnx python3-numpy"

list=0
if [ "${1:-}" = "--list" ]; then
  list=1
  shift
fi
groups=("$@")
[ ${#groups[@]} -gt 0 ] || groups=(build)
wanted=()
for group in "${groups[@]}"; do
  case "$group" in
    build|test|device|arm64|fuzz|lint|train|networks) read -r -a packages -d '' <<<"${!group}" || true; wanted+=("${packages[@]}") ;;
    *) echo "dependencies.sh: there is no group '$group'; groups are build, test, device, arm64, fuzz, lint, train, networks" >&2; exit 2 ;;
  esac
done

if [ "$list" -eq 1 ]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "dependencies.sh: apt-get not found; install these packages by hand: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "dependencies.sh: these packages are missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi
echo "Installing: ${missing[*]}"
"${sudo[@]}" apt-get update -q
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
