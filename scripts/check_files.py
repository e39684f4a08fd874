#!/usr/bin/env python3
"""Checks tracked sources: length, unfinished marks, and that public headers stand alone."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 800
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def tracked():
    out = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    names = out.stdout.split("\0") if out.returncode == 0 else [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]
    return [ROOT / n for n in names if re.search(r"\.(h|cpp|py|sh|fbs|inc)$", n) and not n.startswith("build/")]


def check_text(path):
    lines = path.read_text(errors="replace").splitlines()
    problems = []
    if len(lines) > MAX_LINES:
        problems.append(f"{path.relative_to(ROOT)}: {len(lines)} lines, at most {MAX_LINES}")
    if path.name != "check_files.py":
        for number, line in enumerate(lines, 1):
            if MARKS.search(line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: an unfinished mark without an issue number")
    return problems


def check_header(header):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(f'#include "bantam/{header.name}"\n')
        source.flush()
        command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}/include", source.name]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    return [f"include/bantam/{header.name} does not compile alone:\n{result.stderr}"]


def check_headers():
    """Every public header compiles alone, without warnings."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(check_header, sorted((ROOT / "include/bantam").glob("*.h")))
        return [problem for problems in results for problem in problems]


def main():
    problems = [p for path in tracked() if path.is_file() for p in check_text(path)] + check_headers()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"files: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
