#!/usr/bin/env python3
"""Writes ONNX models with dynamically quantised products, as onnxruntime.quantization.quantize_dynamic makes them.

Usage: quantize_dynamically.py [--out build/dynamic] [--signed] MODEL ...

Convolutions and products with constant weights become DynamicQuantizeLinear, ConvInteger or MatMulInteger, Cast, Mul
and Add: images and rows are quantised at run time, weights here, all of a tensor by one scale, as u8 with a zero point
(WeNet's choice) or, with --signed, as i8 around zero. Needs Debian's python3-onnx (scripts/dependencies.sh networks).
"""
import argparse
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


class Dynamic:
    """Rewrites one graph."""

    def __init__(self, graph, signed):
        self.graph, self.signed = graph, signed
        self.constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.nodes, self.added, self.quantised = [], {}, {}

    def constant(self, name, array):
        self.added[name] = numpy_helper.from_array(array, name)
        return name

    def emit(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def quantised_operand(self, x):
        """The numbers, scale and zero point of a tensor, found once."""
        if x not in self.quantised:
            self.quantised[x] = [f"{x}_quantized", f"{x}_scale", f"{x}_zero_point"]
            self.emit("DynamicQuantizeLinear", [x], self.quantised[x])
        return self.quantised[x]

    def quantised_weights(self, name, weights):
        if self.signed:
            scale = max(float(numpy.abs(weights).max()), 1e-9) / 127
            zero, low, high, kind = 0, -127, 127, numpy.int8
        else:
            smallest, largest = min(float(weights.min()), 0.0), max(float(weights.max()), 0.0)
            scale = max(largest - smallest, 1e-9) / 255
            zero, low, high, kind = round(-smallest / scale), 0, 255, numpy.uint8
        numbers = numpy.clip(numpy.round(weights / scale) + zero, low, high).astype(kind)
        return [
            self.constant(f"{name}_quantized", numbers),
            self.constant(f"{name}_scale", numpy.array(scale, numpy.float32)),
            self.constant(f"{name}_zero_point", numpy.array(zero, kind)),
        ]

    def product(self, node, op, weights, bias, **attributes):
        x, x_scale, x_zero = self.quantised_operand(node.input[0])
        w, w_scale, w_zero = self.quantised_weights(node.input[1], weights)
        y = node.output[0]
        self.emit(op, [x, w, x_zero, w_zero], [f"{y}_sums"], **attributes)
        self.emit("Cast", [f"{y}_sums"], [f"{y}_numbers"], to=TensorProto.FLOAT)
        self.emit("Mul", [x_scale, w_scale], [f"{y}_factor"])
        self.emit("Mul", [f"{y}_numbers", f"{y}_factor"], [f"{y}_scaled" if bias else y])
        if bias:
            self.emit("Add", [f"{y}_scaled", bias], [y])

    def rewrite_node(self, node):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        weights = self.constants.get(node.input[1]) if len(node.input) > 1 else None
        bias = node.input[2] if len(node.input) > 2 else None
        plain = attributes.get("alpha", 1) == attributes.get("beta", 1) == 1 and attributes.get("transA", 0) == 0
        if weights is None or weights.dtype != numpy.float32 or (bias and bias not in self.constants):
            self.nodes.append(node)
        elif node.op_type == "MatMul":
            self.product(node, "MatMulInteger", weights, None)
        elif node.op_type == "Gemm" and plain:
            turned = weights.T.copy() if attributes.get("transB", 0) else weights
            self.product(node, "MatMulInteger", turned, bias)
        elif node.op_type == "Conv":
            if bias:
                row = self.constants[bias].reshape([1, -1] + [1] * (weights.ndim - 2))
                bias = self.constant(f"{bias}_row", row)
            self.product(node, "ConvInteger", weights, bias, **attributes)
        else:
            self.nodes.append(node)

    def rewrite(self):
        for node in self.graph.node:
            self.rewrite_node(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        read = {name for node in self.nodes for name in node.input} | {y.name for y in self.graph.output}
        kept = [i for i in [*self.graph.initializer, *self.added.values()] if i.name in read]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)


def convert(path, out, signed):
    """Writes to a temporary name first."""
    model = onnx.load(path)
    Dynamic(model.graph, signed).rewrite()
    onnx.checker.check_model(model)
    to = os.path.join(out, os.path.basename(path).removesuffix(".onnx") + ("-s8.onnx" if signed else "-u8.onnx"))
    onnx.save(model, to + ".partial")
    os.replace(to + ".partial", to)
    print(to, flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", default="build/dynamic", metavar="DIR")
    arguments.add_argument("--signed", action="store_true", help="weights as i8 around zero")
    arguments.add_argument("models", nargs="+", metavar="MODEL")
    options = arguments.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for path in options.models:
        convert(path, options.out, options.signed)


if __name__ == "__main__":
    main()
