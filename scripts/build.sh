#!/usr/bin/env bash
# Builds the release of the command and the library; leaves the command at build/bantam.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/dependencies.sh build
cmake --preset release -DBANTAM_TESTS=OFF -DBANTAM_BENCHMARKS=OFF -DBANTAM_UNITY=ON -Wno-dev >build-configure.log 2>&1 || {
  cat build-configure.log >&2
  exit 1
}
rm -f build-configure.log
cmake --build build/release --target bantam
ln -sfn release/tools/bantam/bantam build/bantam
