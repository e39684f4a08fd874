#!/usr/bin/env bash
# Builds and passes every test: scripts/test.sh [--quick]
#   --quick leaves out the sanitizer build, the bare-metal check and the install check.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=0
[ "${1:-}" != "--quick" ] || quick=1

scripts/dependencies.sh build test
[ "$quick" -eq 1 ] || scripts/dependencies.sh device
scripts/build.sh

echo "== layers and files"
python3 scripts/check_layers.py
python3 scripts/check_files.py

if [ "$quick" -eq 0 ]; then
  # First, because the firmware that a test below builds then finds most objects in the compiler cache.
  echo "== bare metal: Cortex-M55 and Cortex-M4"
  for core in cortex-m55 cortex-m4; do
    cmake --preset "$core" -Wno-dev >/dev/null
    cmake --build "build/$core"
    python3 scripts/check_symbols.py "build/$core" --nm arm-none-eabi-nm
  done
fi

echo "== tests, release build"
cmake --preset release -DBANTAM_TESTS=ON -DBANTAM_BENCHMARKS=OFF -DBANTAM_UNITY=ON -Wno-dev >/dev/null
if [ "$quick" -eq 1 ]; then
  cmake --build build/release
  ctest --preset release -j "$(nproc)"
else
  # Those of numerics and of the whole system, as they are shipped. What takes long and gains little from either build
  # runs in the other one only.
  cmake --build build/release --target optimised_tests
  ctest --preset release -j "$(nproc)" -L optimised -E '^cli_transcribe_test$'
fi
python3 scripts/check_symbols.py build/release

if [ "$quick" -eq 0 ]; then
  echo "== tests, AddressSanitizer and UndefinedBehaviorSanitizer"
  # Without line numbers, which a rerun with the preset's own flags brings: they cost minutes of compilation.
  cmake --preset asan -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g0" -DBANTAM_UNITY=ON -Wno-dev >/dev/null
  cmake --build build/asan
  ctest --preset asan -j "$(nproc)" -E '^(budget|crash|memory)_test$'

  echo "== an outside project uses the installed library"
  scripts/check_install.sh
fi
echo "all tests passed"
