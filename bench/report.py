#!/usr/bin/env python3
"""Puts what bantam_peer_bench --json measured into docs/performance.md and draws docs/performance.svg.

Usage: bench/report.py MEASURED.json [--document docs/performance.md]

The document keeps its text: only what stands between the lines `<!-- measured -->` and `<!-- end -->` is replaced. The
drawing lies beside it, with the same stem.
"""

import argparse
import html
import json
import math
import os
import pathlib
import sys
import tempfile

BEGIN, END = "<!-- measured -->", "<!-- end -->"
BAR, GAP, LEFT, WIDTH, RIGHT = 14, 6, 190, 460, 60  # pixels
FASTER, SLOWER = "#2a7f62", "#b5532d"


def row_name(row):
    return row["model"] + (" (fixed)" if row["fixed_initializers"] else "")


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(measured):
    rows = sorted(measured["models"], key=lambda row: row["ratio"])
    roof = measured["roof"]
    threads = measured["threads"]
    lines = [
        f"{threads} thread{'s' if threads > 1 else ''}, ONNX Runtime {measured['onnxruntime']}, load average "
        f"{measured['load_average']:.1f} when the run began. Roof of one thread: {roof['f32_gops']:.0f} Gop/s in f32, "
        f"{roof['int8_gops']:.0f} in int8.", "",
        "| model | Bantam µs | ONNX Runtime µs | ratio | quartiles | Gop/s | of roof |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |"]
    for row in rows:
        low, high = row["ratio_quartiles"]
        lines.append(f"| {row_name(row)} | {row['bantam_median_us']:.1f} | {row['onnxruntime_median_us']:.1f} | "
                     f"{row['ratio']:.2f} | {low:.2f}..{high:.2f} | {row['gops']:.1f} | {100 * row['roof_share']:.0f} % |")
    ratios = [row["ratio"] for row in rows]
    lines += ["", f"Geometric mean of the {len(ratios)} ratios: {geometric_mean(ratios):.2f}; below 1 on "
                  f"{sum(ratio < 1 for ratio in ratios)} of them."]
    lines += [f"\nNot timed: {row['model']}: {row['error']}" for row in measured["refused"]]
    return "\n".join(lines)


def drawing(measured):
    """Bars of ratios, fastest first, on a logarithmic scale."""
    rows = sorted(measured["models"], key=lambda row: row["ratio"])
    least = min(0.5, *(row["ratio"] for row in rows)) / 1.1
    most = max(2.0, *(row["ratio"] for row in rows)) * 1.1

    def x(ratio):
        return LEFT + WIDTH * math.log(ratio / least) / math.log(most / least)

    height = 40 + len(rows) * (BAR + GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f'<text x="{x(1):.0f}" y="14" text-anchor="middle">time of Bantam / time of ONNX Runtime</text>']
    for tick in (0.125, 0.25, 0.5, 1, 2, 4):
        if least < tick < most:
            parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="34" y2="{height}" stroke="#999" '
                         f'stroke-dasharray="{"none" if tick == 1 else "2 3"}"/>'
                         f'<text x="{x(tick):.1f}" y="30" text-anchor="middle" fill="#555">{tick:g}</text>')
    for i, row in enumerate(rows):
        y = 40 + i * (BAR + GAP)
        left, right = sorted((x(1), x(row["ratio"])))
        colour = FASTER if row["ratio"] < 1 else SLOWER
        parts.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{html.escape(row_name(row))}</text>'
                     f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{BAR}" fill="{colour}"/>'
                     f'<text x="{right + 4:.1f}" y="{y + 11}">{row["ratio"]:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def replace_measured(text, replacement):
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"report.py: the document has no lines '{BEGIN}' and '{END}'; add them where the table shall stand")
    return f"{before}{BEGIN}\n{replacement}\n{END}{after}"


def write(path, text):
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--document", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "docs/performance.md")
    options = parser.parse_args()
    measured = json.loads(options.measured.read_text())
    if not measured["models"]:
        sys.exit(f"report.py: {options.measured} has no model that was timed")
    text = replace_measured(options.document.read_text(), table(measured))
    write(options.document.with_suffix(".svg"), drawing(measured))
    write(options.document, text)


if __name__ == "__main__":
    main()
