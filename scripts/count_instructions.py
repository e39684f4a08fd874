#!/usr/bin/env python3
"""Counts the instructions of one invoke of models on 64-bit Arm, per instruction set, in qemu's emulator.

Usage: count_instructions.py [--sets NAME,NAME ...] [--store TYPE] [--build DIR] MODEL [MODEL ...]

Prints a table in Markdown: a row per model, a column per instruction set (BANTAM_CPU), in millions, and how many times
as many the first set takes as the last. scripts/test_arm64.sh builds what is run. One thread; the invoke with fewest
instructions is told, so what a first one does besides is not in it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INVOKE = "7Session6invoke"


def build_counter(folder):
    plugin = pathlib.Path(folder) / "instruction_counter.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", plugin, ROOT / "scripts/instruction_counter.c"], check=True)
    return plugin


def count(plugin, build, instruction_set, model, options):
    """Instructions of one invoke."""
    command = ["qemu-aarch64", "-cpu", "max", "-L", ROOT / "build/arm64-sysroot"]
    command += ["-plugin", f"{plugin},function={INVOKE}", "-d", "plugin"]
    command += [build / "tools/bantam/bantam", "bench", model, "--runs", "1", "--warmup", "0", *options]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BANTAM_CPU": instruction_set})
    counted = re.search(r"^calls: (\d+) instructions: (\d+)$", result.stderr, re.MULTILINE)
    if result.returncode != 0 or counted is None or int(counted[2]) == 0:
        sys.exit(f"count_instructions.py: {model} with {instruction_set}: exit code {result.returncode}\n{result.stderr}")
    return int(counted[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--sets", default="neon,neon-dotprod,neon-i8mm", help="values of BANTAM_CPU")
    parser.add_argument("--store", help="as `bantam bench --store`")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/aarch64")
    args = parser.parse_args()
    sets = args.sets.split(",")
    options = ["--store", args.store] if args.store else []
    with tempfile.TemporaryDirectory() as folder:
        plugin = build_counter(folder)
        print(f"| model | {' | '.join(sets)} | ratio |")
        print("| --- |" + " --: |" * (len(sets) + 1))
        for model in args.models:
            counts = [count(plugin, args.build, name, model, options) for name in sets]
            cells = " | ".join(f"{c / 1e6:.3f}" for c in counts)
            print(f"| {pathlib.Path(model).stem} | {cells} | {counts[0] / counts[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
