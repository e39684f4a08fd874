#!/usr/bin/env bash
# Fuzzes every reader of untrusted bytes: scripts/fuzz.sh [SECONDS_PER_TARGET=60] [TARGET ...]
#   Targets are the names in tests/fuzz/targets.h; default is all of them. Ends with an error on the first finding of
#   any target, after the others have run too. Corpora live in build/fuzz/corpus and grow from run to run.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-60}"
[ $# -eq 0 ] || shift
if ! [[ "$seconds" =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz.sh: '$seconds' is not a number of seconds; usage: scripts/fuzz.sh [SECONDS_PER_TARGET] [TARGET ...]" >&2
  exit 2
fi
known=$(sed -n 's/^ *{"\([a-z_]*\)", fuzz_.*/\1/p' tests/fuzz/targets.h)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || read -r -a targets -d '' <<<"$known" || true
for target in "${targets[@]}"; do
  if ! grep -qx "$target" <<<"$known"; then
    echo "fuzz.sh: there is no target '$target'; targets are:" $known >&2
    exit 2
  fi
done

build="${BANTAM_FUZZ_BUILD:-build/fuzz}"
if [ -z "${BANTAM_FUZZ_BUILD:-}" ]; then
  scripts/dependencies.sh build test fuzz
  cmake --preset fuzz -Wno-dev >/dev/null
fi
cmake --build "$build" --target fuzzers

# Seeds are made anew, so that they follow the formats; what earlier runs found stays beside them.
seeds="$build/seeds"
rm -rf "$seeds"
models=(models/*.onnx models/recogniser/*.onnx)
[ ! -d ../shared/models ] || models+=(../shared/models/*.onnx ../shared/models/*.tflite)
[ ! -d /usr/share/libonnx-testdata ] || mapfile -t -O ${#models[@]} models \
  < <(find /usr/share/libonnx-testdata/data/node -name model.onnx -size -16k | sort)
echo "== seeds from ${#models[@]} models"
"$build/tests/fuzz/make_fuzz_seeds" "$seeds" "${models[@]}"
for target in "${targets[@]}"; do
  mkdir -p "$seeds/$target" "$build/corpus/$target"
done
cp models/*.toml "$seeds/fleet_file/" 2>/dev/null || true
cp models/front-end.toml "$seeds/front_end_file/"
cp models/inputs/*.png "$seeds/image/" 2>/dev/null || true
cp ../shared/benchmarks/memory-planning/*.csv "$seeds/problem_csv/" 2>/dev/null || true
for known_failure in tests/fuzz/regressions/*/*; do
  folder="$seeds/$(basename "$(dirname "$known_failure")")"
  [ ! -d "$folder" ] || cp "$known_failure" "$folder/"
done

# The largest input worth mutating, by target; a model beyond it only slows the fuzzer down.
max_len() {
  case "$1" in
    onnx | tflite | package) echo 65536 ;;
    *) echo 8192 ;;
  esac
}

findings="$build/findings"
mkdir -p "$findings"
failed=()
for target in "${targets[@]}"; do
  echo "== $target, $seconds s"
  options=(-max_total_time="$seconds" -max_len="$(max_len "$target")" -timeout=10 -report_slow_units=2
    -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$findings/$target-")
  [ ! -f "tests/fuzz/$target.dict" ] || options+=(-dict="tests/fuzz/$target.dict")
  log="$findings/$target.log"
  if ! ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}" \
    "$build/tests/fuzz/${target}_fuzzer" "${options[@]}" "$build/corpus/$target" "$seeds/$target" >"$log" 2>&1; then
    failed+=("$target")
    grep -E 'ERROR|runtime error|broken promise|^ *#[0-9]' "$log" | head -30 || true
    reproducer=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    echo "fuzz.sh: $target: a finding; log: $log" >&2
    echo "  reproducer: ${reproducer:-none was written}" >&2
    echo "  rerun with: $build/tests/fuzz/${target}_fuzzer ${reproducer:-$build/corpus/$target}" >&2
  else
    sed -n 's/^stat::number_of_executed_units: */  runs: /p; s/^stat::new_units_added: */  new inputs: /p;
            s/^stat::slowest_unit_time_sec: */  slowest, s: /p; s/^stat::peak_rss_mb: */  peak memory, MiB: /p' "$log"
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "fuzz.sh: findings in: ${failed[*]}" >&2
  exit 1
fi
echo "no findings"
