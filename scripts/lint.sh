#!/usr/bin/env bash
# Checks formatting (clang-format) and finds mistakes (clang-tidy): scripts/lint.sh [FILE.cpp ...]
# Without files: everything, about 25 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/dependencies.sh build test lint
cmake --preset dev -DBANTAM_TESTS=ON -Wno-dev >/dev/null
# The generated headers are all that clang-tidy needs of a build.
cmake --build build/dev --target bantam_package_schema bantam_tflite_schema >/dev/null

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files '*.cpp' '*.h')
fi
echo "== clang-format, ${#files[@]} files"
clang-format --dry-run --Werror "${files[@]}"

echo "== clang-tidy"
pattern='^$'
for file in "${files[@]}"; do
  [[ $file == *.cpp ]] && pattern+="|/${file#./}\$"
done
run-clang-tidy -quiet -j "$(nproc)" -p build/dev "$pattern" >build/lint.log 2>&1 || {
  grep -E '(warning|error): ' build/lint.log | sort -u >&2
  echo "lint: see build/lint.log" >&2
  exit 1
}
echo "lint: no findings"
