#!/usr/bin/env bash
# The main job on bundled models and inputs: eight models in one arena, listening and looking.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh
echo
echo "== the plan, before anything runs"
build/bantam plan models/demo.toml --map build/demo-map.html
echo
echo "== the fleet at work"
build/bantam run models/demo.toml
echo
echo "The memory map is in build/demo-map.html"
