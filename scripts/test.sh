#!/usr/bin/env bash
# Builds and passes every test: scripts/test.sh [--quick]
#   --quick leaves out the sanitizer build, the bare-metal check and the install check.
set -euo pipefail
cd "$(dirname "$0")/.."
# From scratch, files are preprocessed once then instead of twice.
export CCACHE_DEPEND=1
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
  # All of it for the smaller core; firmware_test builds images for both.
  echo "== bare metal: Cortex-M4"
  cmake --preset cortex-m4 -Wno-dev >/dev/null
  cmake --build build/cortex-m4
  python3 scripts/check_symbols.py build/cortex-m4 --nm arm-none-eabi-nm
fi

echo "== tests, release build"
cmake --preset release -DBANTAM_TESTS=ON -DBANTAM_BENCHMARKS=OFF -DBANTAM_UNITY=ON -Wno-dev >/dev/null
if [ "$quick" -eq 1 ]; then
  cmake --build build/release
  ctest --preset release -j "$(nproc)"
else
  # Those of numerics and of the whole system, as they are shipped.
  cmake --build build/release --target optimised_tests
  ctest --preset release -j "$(nproc)" -L optimised
fi
python3 scripts/check_symbols.py build/release
[ "$(uname -m)" != x86_64 ] || python3 scripts/check_spills.py build/release

if [ "$quick" -eq 0 ]; then
  echo "== tests, AddressSanitizer and UndefinedBehaviorSanitizer"
  # Those of the layers, and of the whole system those that go through the most code. Without line numbers, and with an
  # illegal instruction for undefined behaviour: a rerun with the preset's own flags tells more, but compiles for minutes
  # longer.
  cmake --preset asan -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g0 -fsanitize-undefined-trap-on-error" -DBANTAM_UNITY=ON \
    -Wno-dev >/dev/null
  cmake --build build/asan --target sanitized_tests
  ctest --preset asan -j "$(nproc)" -L sanitized

  echo "== an outside project uses the installed library"
  scripts/check_install.sh
fi
echo "all tests passed"
