#!/usr/bin/env bash
# Builds a firmware image of a fleet for a Cortex-M core, says what flash and RAM it takes, runs it in QEMU and compares
# its outputs with the host's.
#
# Usage: scripts/firmware.sh [FLEET] [--core cortex-m4|cortex-m55] [--rounds N] [--stack BYTES] [--json FILE]
#                            [--bantam COMMAND] [--folder DIR]
#   FLEET     fleet file or model; inputs that it does not name are random. Default: five int8 models of
#             ../shared/models, or bundled models where that folder is not there
#   --rounds  invokes per session, default 2: the second one tells kernels and executor apart
#   --stack   bytes reserved for the stack, default 8192
#   --json    also write the figures as JSON
#   --bantam  the command to pack with; default: the release build, built first
#   --folder  where everything is built, default build/firmware
set -euo pipefail
die() { echo "firmware.sh: $1" >&2; echo "  to mend it: $2" >&2; exit "${3:-1}"; }

fleet="" core=cortex-m4 rounds=2 stack=8192 json="" bantam="" folder=""
while [ $# -gt 0 ]; do
  case "$1" in
    --core|--rounds|--stack|--json|--bantam|--folder)
      [ $# -ge 2 ] || die "$1 needs a value" "see the head of this script" 2
      declare "${1#--}=$2"; shift ;;
    -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) die "there is no option $1" "see scripts/firmware.sh --help" 2 ;;
    *) [ -z "$fleet" ] || die "more than one fleet: $fleet and $1" "put the models into one fleet file" 2
       fleet=$(realpath -m "$1") ;;
  esac
  shift
done
case "$core" in cortex-m4|cortex-m55) ;; *) die "there is no board for core '$core'" "use cortex-m4 or cortex-m55" 2 ;; esac
[ -z "$json" ] || json=$(realpath -m "$json")
[ -z "$bantam" ] || bantam=$(realpath -m "$bantam")
[ -z "$folder" ] || folder=$(realpath -m "$folder")

cd "$(dirname "$0")/.."
scripts/dependencies.sh device
if [ -z "$bantam" ]; then
  scripts/build.sh
  bantam=$PWD/build/bantam
fi
if [ -z "$fleet" ]; then
  fleet=$PWD/ports/cortex-m/fleets/bundled.toml
  [ ! -d ../shared/models ] || fleet=$PWD/ports/cortex-m/fleets/tflm.toml
fi
folder=${folder:-$PWD/build/firmware}/$core
mkdir -p "$folder/image"

# The package for the device, and what the host makes of the same fleet with its own kernels.
"$bantam" pack "$fleet" --target "$core" -o "$folder/image/fleet.bantam" --kernels "$folder/image/kernels.inc.new" \
  --json >"$folder/image/plan.json"
cmp -s "$folder/image/kernels.inc.new" "$folder/image/kernels.inc" ||
  mv "$folder/image/kernels.inc.new" "$folder/image/kernels.inc"
rm -f "$folder/image/kernels.inc.new"
"$bantam" run "$fleet" --rounds "$rounds" --feed random:1 --record "$folder/image/recording.host" \
  --json >"$folder/image/host.json"

arena=$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$folder/image/plan.json")
cmake -G Ninja -S . -B "$folder/build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm-none-eabi.cmake" -DBANTAM_CORE="$core" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DBANTAM_FIRMWARE="$folder/image" \
  -DBANTAM_KERNELS="$folder/image/kernels.inc" -DBANTAM_ARENA_BYTES="$arena" -DBANTAM_STACK_BYTES="$stack" \
  -Wno-dev >"$folder/build.log" 2>&1 &&
  cmake --build "$folder/build" --target firmware >>"$folder/build.log" 2>&1 || {
  grep -E 'error|overflowed|FAILED' "$folder/build.log" >&2 || tail -20 "$folder/build.log" >&2
  die "the image does not build" "see $folder/build.log; an image that overflows a region needs a smaller fleet"
}

exec python3 scripts/firmware.py "$folder" --core "$core" ${json:+--json "$json"}
