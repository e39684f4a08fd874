#!/usr/bin/env bash
# Installs the release build into a temporary prefix and builds an outside project against it, with CMake and with
# pkg-config, then runs both. The project is examples/classify.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --build build/release --target installed >/dev/null
cmake --install build/release --prefix "$work/prefix" >/dev/null

cp -r examples/classify "$work/project"
cmake -S "$work/project" -B "$work/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/project/build" >/dev/null
"$work/project/build/classify" models/sign.onnx | tee "$work/with-cmake"

libdir=$(dirname "$(find "$work/prefix" -name bantam.pc)")
export PKG_CONFIG_PATH=$libdir
# shellcheck disable=SC2046 # the flags are words
g++ "$work/project/classify.cpp" $(pkg-config --cflags --libs bantam) -o "$work/classify"
"$work/classify" models/sign.onnx >"$work/with-pkg-config"
cmp "$work/with-cmake" "$work/with-pkg-config"

"$work/prefix/bin/bantam" --version
echo "install: an outside project builds with CMake and with pkg-config"
cd "$root"
