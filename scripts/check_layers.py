#!/usr/bin/env python3
"""Checks that every #include follows the layer table of src/CMakeLists.txt, and that freestanding layers stay so."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Headers that bring the heap, the operating system, streams or locales into a freestanding layer.
FORBIDDEN = {
    "string", "vector", "map", "set", "unordered_map", "unordered_set", "deque", "list", "functional", "memory",
    "iostream", "ostream", "istream", "sstream", "fstream", "locale", "thread", "mutex", "future", "filesystem",
    "regex", "random", "exception", "stdexcept", "typeinfo", "any", "stdio.h", "cstdio", "unistd.h", "fcntl.h",
}


def read_layers():
    """Layer name -> (folder, excluded part, direct dependencies, freestanding)."""
    text = (SRC / "CMakeLists.txt").read_text()
    layers = {}
    for body in re.findall(r"bantam_layer\(([^)]*)\)", text):
        words = body.split()
        name, folder = words[0], words[1]
        excluded = re.findall(r'EXCLUDE\s+"([^"]*)"', body)
        depends = [w[len("bantam_"):] for w in words if w.startswith("bantam_")]
        layers[name] = (folder, excluded[0] if excluded else None, depends, "FREESTANDING" in words)
    return layers


def closure(layers, name, seen=None):
    seen = set() if seen is None else seen
    for dependency in layers[name][2]:
        if dependency in layers and dependency not in seen:
            seen.add(dependency)
            closure(layers, dependency, seen)
    return seen


def owner(layers, path):
    """The layer with the longest folder that contains a path relative to src/."""
    best = None
    for name, (folder, excluded, _, _) in layers.items():
        inside = str(path).startswith(folder + "/")
        if inside and not (excluded and excluded.strip("/") + "/" in str(path)):
            if best is None or len(folder) > len(layers[best][0]):
                best = name
    return best


def main():
    layers = read_layers()
    problems = []
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        relative = path.relative_to(SRC)
        name = owner(layers, relative)
        if name is None:
            problems.append(f"{relative}: belongs to no layer of src/CMakeLists.txt")
            continue
        allowed = closure(layers, name) | {name}
        test_code = "testing" in relative.parts or re.search(r"_(test|bench|fuzz)\.cpp$", path.name)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            quoted = re.match(r'\s*#include "([^"]+)"', line)
            if quoted and not quoted[1].startswith("bantam/"):
                target = owner(layers, quoted[1])
                if target and target not in allowed and not test_code:
                    problems.append(f"{relative}:{number}: layer '{name}' must not include '{quoted[1]}' of '{target}'")
            system = re.match(r"\s*#include <([^>]+)>", line)
            if system and layers[name][3] and not test_code and system[1] in FORBIDDEN:
                problems.append(f"{relative}:{number}: freestanding layer '{name}' must not include <{system[1]}>")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(layers)} layers, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
