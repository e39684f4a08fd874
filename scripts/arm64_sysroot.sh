#!/usr/bin/env bash
# Unpacks the libraries that Bantam needs on 64-bit Arm, and the C library, into a folder:
# scripts/arm64_sysroot.sh FOLDER. Debian's packages of both architectures cannot all be installed side by side, so
# nothing is installed: apt resolves and downloads with lists of its own in FOLDER.apt, as any user.
set -euo pipefail
if [ $# -ne 1 ]; then
  echo "usage: scripts/arm64_sysroot.sh FOLDER" >&2
  exit 2
fi
scripts=$(cd "$(dirname "$0")" && pwd)
mapfile -t packages < <("$scripts/dependencies.sh" --list build test | grep -E -- '-dev$' | grep -v benchmark)
wanted=$(printf '%s\n' "${packages[@]}" | sha256sum)
[ "$(cat "$1/.packages" 2>/dev/null)" != "$wanted" ] || exit 0

mkdir -p "$1.apt"
apt=$(cd "$1.apt" && pwd)
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Dir::State="$apt/state"
  -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache")
apt-get "${options[@]}" update
apt-get "${options[@]}" install --download-only -y --no-install-recommends "${packages[@]}"

partial="$1.partial"
rm -rf "$partial"
mkdir -p "$partial"
for archive in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$archive" "$partial"; done
# Absolute links would lead out of the folder, to the host's files.
find "$partial" -type l -lname '/*' -printf '%l %p\n' | while read -r target link; do
  ln -sfr "$partial$target" "$link"
done
echo "$wanted" >"$partial/.packages"
rm -rf "$1"
mv "$partial" "$1"
