"""Writes the tables of MODELS.md: what the model files say about themselves and what scores.json says about them."""

import json
import re
from collections import Counter

import numpy as np
import onnx
from onnx import numpy_helper

from common import MODELS

RECOGNISER = "recogniser"
GRAPHS = "encoder ctc decoder".split()
NAMES = "keyword voice-activity denoise sign shape-detector digit-reader scene-backbone scene-head".split()
BEGIN, END = "<!-- tables: models/train/describe.py -->", "<!-- end of tables -->"


def dimensions(value):
    return "[" + ", ".join(d.dim_param or str(d.dim_value) for d in value.type.tensor_type.shape.dim) + "]"


def values(items):
    return ", ".join(f"`{item.name}` {dimensions(item)}" for item in items)


def graph_rows(graph):
    """Interface, weights and operators of one graph."""
    weights = sum(numpy_helper.to_array(tensor).size for tensor in graph.initializer)
    operators = Counter(node.op_type for node in graph.node)
    return [
        f"- inputs: {values(graph.input)}",
        f"- outputs: {values(graph.output)}",
        f"- weights and fixed coefficients: {weights}",
        "- operators: " + ", ".join(f"{kind} x{count}" for kind, count in sorted(operators.items())),
    ]


def score_rows(scores):
    """Of a model, which may be more than one graph."""
    measured = {key: value for key, value in scores.items() if key not in ("bytes", "training_cpu_minutes")}
    return [
        f"- size: {scores['bytes']} bytes",
        "- held out: " + ", ".join(f"{key.replace('_', ' ')} **{value:g}**" for key, value in measured.items()),
        f"- trained in {scores['training_cpu_minutes']} minutes of processor time",
    ]


def describe(name, scores):
    """The rows of one model: interface, operators, scores."""
    graph = onnx.load(str(MODELS / f"{name}.onnx")).graph
    with np.load(MODELS / "reference" / f"{name}.npz") as reference:
        cases = Counter(
            re.sub(r"-s\d+$", "", key.split(".", 2)[2])
            for key in reference.files
            if key.startswith(f"in.{graph.input[0].name}.")
        )
    recorded = ", ".join(case if steps == 1 else f"{case} ({steps} steps)" for case, steps in cases.items())
    return [
        f"### {name}",
        "",
        *graph_rows(graph),
        *score_rows(scores),
        f"- reference cases: {recorded}",
        "",
    ]


def describe_recogniser(scores):
    graphs = {name: onnx.load(str(MODELS / RECOGNISER / f"{name}.onnx")).graph for name in GRAPHS}
    rows = [row for name, graph in graphs.items() for row in (f"#### {name}", "", *graph_rows(graph), "")]
    return [f"### {RECOGNISER}", "", *score_rows(scores), "", *rows]


def main():
    scores = json.loads((MODELS / "scores.json").read_text())
    rows = [row for name in NAMES for row in describe(name, scores[name])] + describe_recogniser(scores[RECOGNISER])
    path = MODELS / "MODELS.md"
    before, rest = path.read_text().split(BEGIN)
    after = rest.split(END)[1]
    path.write_text("\n".join([f"{before}{BEGIN}", "", *rows, f"{END}{after}"]))


if __name__ == "__main__":
    main()
