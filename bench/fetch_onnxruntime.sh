#!/usr/bin/env bash
# Fetches ONNX Runtime, the peer of the comparison, from npm's package onnxruntime-node into build/onnxruntime.
# Nothing of Bantam needs it. An argument chooses a version (default: the newest).
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v npm >/dev/null; then
  echo "fetch_onnxruntime.sh: npm is missing; install it with: apt-get install --no-install-recommends nodejs npm" >&2
  exit 1
fi
mkdir -p build/onnxruntime
# The package's install script would fetch GPU libraries; the processor's library is in the package itself.
npm install --no-save --ignore-scripts --no-audit --no-fund --prefix build/onnxruntime "onnxruntime-node@${1:-latest}"
# Only this machine's library stays: tests that an emulator runs would load that of its processor, which crashes there.
case "$(uname -m)" in
  x86_64) architecture=x64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture="$(uname -m)" ;;
esac
find build/onnxruntime -type f -path '*/onnxruntime-node/bin/*' ! -path "*/linux/$architecture/*" -delete
find build/onnxruntime -name 'libonnxruntime.so.1' | sort
