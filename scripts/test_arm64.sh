#!/usr/bin/env bash
# Builds all of Bantam for 64-bit Arm Linux and passes its tests in qemu's emulator of a processor that has every
# instruction set: scripts/test_arm64.sh [OPTION OF CTEST ...], e.g. -R ops_test. Not part of scripts/test.sh: what
# takes minutes there takes an hour or two here. Random tests run as few cases as under sanitizers; those against ONNX
# Runtime are skipped, which nothing brings for this processor. Kernels' tests go through all instruction sets.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/dependencies.sh build test arm64
scripts/arm64_sysroot.sh build/arm64-sysroot
cmake --preset aarch64 -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DBANTAM_UNITY=ON -Wno-dev >/dev/null
cmake --build build/aarch64
python3 scripts/check_symbols.py build/aarch64 --nm aarch64-linux-gnu-nm
python3 scripts/check_spills.py build/aarch64 --objdump aarch64-linux-gnu-objdump

ctest --preset aarch64 -j "$(nproc)" "$@"

echo "== networks on processors without products of matrices, and without dot products"
for processor in neoverse-n1 cortex-a53; do
  BANTAM_EMULATED_CPU="$processor" ctest --preset aarch64 -R '^(processor|conformance|models)_test$' -j "$(nproc)"
done
echo "all tests passed"
