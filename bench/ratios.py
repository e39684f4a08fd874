#!/usr/bin/env python3
"""Measures how much faster networks are in int8 than in f32, or with several threads than with one.

Usage: ratios.py int8 [--networks build/networks] [--rounds 5] [NAME ...]
       ratios.py threads [--threads 2] [--rounds 5] MODEL.onnx ...

`bantam bench` runs both sides in turn, in processes of their own; the smallest time of each counts, since what else the
machine does only adds to it. Options for it follow behind `--`, such as `-- --dim batch=1`. Prints a Markdown table,
with --json the same for programs. BANTAM_CPU limits the instruction sets of both sides. Exit code 1 if a model failed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

BANTAM = "build/release/tools/bantam/bantam"


class Failure(Exception):
    """What bantam said."""


def microseconds(arguments, model, threads=1):
    command = [arguments.bantam, "bench", "--json", "--threads", str(threads), str(model), *arguments.options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failure(run.stderr.strip())
    return json.loads(run.stdout)["min_us"]


def least(rounds, *sides):
    """The smallest time of each side, which are called in turn."""
    times = [[side() for side in sides] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def int8_pairs(arguments):
    folder = pathlib.Path(arguments.networks)
    names = arguments.names or sorted(path.stem[:-len("-int8")] for path in folder.glob("*-int8.onnx"))
    for name in names:
        plain, quantised = folder / f"{name}.onnx", folder / f"{name}-int8.onnx"
        for path in (plain, quantised):
            if not path.is_file():
                sys.exit(f"there is no {path}\n  to mend it: bench/make_networks.py {name}")
        yield name, lambda p=plain: microseconds(arguments, p), \
            lambda q=quantised: microseconds(arguments, q)


def thread_pairs(arguments):
    for path in arguments.models:
        yield pathlib.Path(path).stem, lambda p=path: microseconds(arguments, p), \
            lambda p=path: microseconds(arguments, p, arguments.threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bantam", default=BANTAM, help="the program (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="for programs")
    kinds = parser.add_subparsers(dest="kind", required=True)
    int8 = kinds.add_parser("int8", help="f32 against int8")
    int8.add_argument("--networks", default="build/networks", help="folder (default: %(default)s)")
    int8.add_argument("names", nargs="*", metavar="NAME", help="networks (default: all that have an int8 form)")
    threads = kinds.add_parser("threads", help="one thread against several")
    threads.add_argument("--threads", type=int, default=2, help="how many (default: %(default)s)")
    threads.add_argument("models", nargs="+", metavar="MODEL.onnx")
    for kind in (int8, threads):
        kind.add_argument("--rounds", type=int, default=5, help="runs of each side (default: %(default)s)")
    words = sys.argv[1:]
    mine = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:mine])
    arguments.options = words[mine + 1:]
    if not os.access(arguments.bantam, os.X_OK):
        sys.exit(f"there is no program {arguments.bantam}\n  to mend it: cmake --build build/release, or --bantam")
    pairs = int8_pairs(arguments) if arguments.kind == "int8" else thread_pairs(arguments)
    labels = ("f32", "int8") if arguments.kind == "int8" else ("1 thread", f"{arguments.threads} threads")
    rows, failures = [], 0
    for name, slow, fast in pairs:
        try:
            before, after = least(arguments.rounds, slow, fast)
        except Failure as failure:
            failures += 1
            print(failure, file=sys.stderr)
            continue
        rows.append({"model": name, labels[0]: before, labels[1]: after, "ratio": before / after})
        if sys.stderr.isatty():
            print(f"{name}: {before / after:.2f}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return failures > 0
    print(f"| model | {labels[0]}, µs | {labels[1]}, µs | ratio |\n| --- | --: | --: | --: |")
    for row in sorted(rows, key=lambda row: -row["ratio"]):
        print(f"| {row['model']} | {row[labels[0]]:.1f} | {row[labels[1]]:.1f} | {row['ratio']:.2f} |")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
