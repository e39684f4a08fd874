#!/usr/bin/env python3
"""Arenas against those of TensorFlow Lite Micro for the same files, everything counted.

The figures are arena_used_bytes() on a 64-bit host, in ../shared/benchmarks/tflm-arenas.csv; where that file is absent
the tests say so and do nothing. Usage: arenas_test.py BANTAM
"""

import csv
import json
import math
import pathlib
import subprocess
import sys
import unittest

BANTAM = sys.argv.pop(1) if len(sys.argv) > 1 else "bantam"
SHARED = pathlib.Path("../shared")
FIGURES = SHARED / "benchmarks/tflm-arenas.csv"
MOST_MEAN = 0.55


def arena_bytes(model):
    result = subprocess.run([BANTAM, "plan", str(model), "--json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["arena_bytes"]


@unittest.skipUnless(FIGURES.exists(), f"{FIGURES} is absent: arenas are not compared with TensorFlow Lite Micro's")
class Arenas(unittest.TestCase):
    def test_smaller_on_every_file_and_by_far_on_average(self):
        logarithms = []
        with FIGURES.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                theirs = int(row["arena_used_bytes"])
                ours = arena_bytes(SHARED / "models" / f"{row['model']}.tflite")
                print(f"{row['model']:26} {ours:8} {theirs:8} {ours / theirs:6.3f}")
                logarithms.append(math.log(ours / theirs))
                with self.subTest(model=row["model"]):
                    self.assertLess(ours, theirs)
        mean = math.exp(sum(logarithms) / len(logarithms))
        print(f"geometric mean of {len(logarithms)} files: {mean:.3f}")
        self.assertLessEqual(mean, MOST_MEAN)


if __name__ == "__main__":
    unittest.main(verbosity=2)
