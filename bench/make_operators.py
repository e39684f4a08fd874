#!/usr/bin/env python3
"""Writes small models of one operator each as ONNX files, to find operators that are slow by themselves.

Usage: make_operators.py [--out build/operators] [NAME ...]

Needs Debian's python3-onnx (scripts/dependencies.sh networks). Sizes are those of layers of usual networks. Images are
given as ONNX has them, channels before rows, so that a model also pays for what its layout costs. The same names give
the same files.
"""
import argparse
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = (1, 64, 56, 56)
TOKENS = (1, 197, 192)
OPSET = 17


def values(*shape):
    return numpy.random.default_rng(sum(shape) + len(shape)).standard_normal(shape).astype(numpy.float32)


def integers(*numbers):
    return numpy.array(numbers, numpy.int64)


def scalar(number):
    return numpy.array(number, numpy.float32)


class Case:
    """Models of one node: operands are shapes, which become inputs, or arrays, which become initializers."""

    def __init__(self, op, *operands, outputs=1, opset=OPSET, **attributes):
        self.op, self.operands, self.outputs, self.opset, self.attributes = op, operands, outputs, opset, attributes

    def model(self, name):
        names, inputs, initializers = [], [], []
        for i, operand in enumerate(self.operands):
            names.append("" if operand is None else f"x{i}")
            if isinstance(operand, tuple):
                inputs.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, operand))
            elif operand is not None:
                initializers.append(numpy_helper.from_array(operand, names[-1]))
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        graph = helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name=y) for y in results], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def convolution(shape, outputs, kernel, pad=0, op="Conv", **attributes):
    groups = attributes.get("group", 1)
    width = (outputs, shape[1] // groups) if op == "Conv" else (shape[1], outputs // groups)
    weights = values(*width, *kernel) / numpy.sqrt(numpy.prod(kernel) * width[1])
    return Case(op, shape, weights.astype(numpy.float32), values(outputs), kernel_shape=kernel,
                pads=[pad] * 2 * len(kernel), **attributes)


def transposed(shape, outputs, kernel, pad=0, **attributes):
    return convolution(shape, outputs, kernel, pad, "ConvTranspose", **attributes)


def recurrent(op, steps, width, hidden, batch=1, directions=1, **attributes):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
    scale = 1 / numpy.float32(numpy.sqrt(hidden))
    return Case(op, (steps, batch, width), values(directions, gates, width) * scale,
                values(directions, gates, hidden) * scale, values(directions, 2 * gates) * scale, hidden_size=hidden,
                direction="bidirectional" if directions == 2 else "forward", **attributes)


def resize(shape, scale, mode, coordinates="half_pixel"):
    return Case("Resize", shape, None, numpy.array([1, 1, scale, scale], numpy.float32), mode=mode,
                coordinate_transformation_mode=coordinates)


def window(op, shape, size, stride, pad=0):
    return Case(op, shape, kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4)


CONVOLUTIONS = {
    "conv-1x1": convolution(FEATURES, 64, [1, 1]),
    "conv-3x3": convolution(FEATURES, 64, [3, 3], 1),
    "conv-3x3-stride": convolution(FEATURES, 128, [3, 3], 1, strides=[2, 2]),
    "conv-3x3-dilated": convolution((1, 64, 28, 28), 64, [3, 3], 2, dilations=[2, 2]),
    "conv-7x7-picture": convolution((1, 3, 224, 224), 64, [7, 7], 3, strides=[2, 2]),
    "conv-4x4-patches": convolution((1, 3, 224, 224), 96, [4, 4], strides=[4, 4]),
    "conv-5x5": convolution((1, 32, 28, 28), 64, [5, 5], 2),
    "conv-32-groups": convolution((1, 128, 56, 56), 128, [3, 3], 1, group=32),
    "conv-4-groups": convolution(FEATURES, 64, [3, 3], 1, group=4),
    "conv-one-output": convolution((1, 64, 128, 128), 1, [3, 3], 1),
    "conv-one-input": convolution((1, 1, 96, 64), 32, [3, 3], 1),
    "depthwise-3x3": convolution((1, 144, 56, 56), 144, [3, 3], 1, group=144),
    "depthwise-5x5": convolution((1, 240, 28, 28), 240, [5, 5], 2, group=240),
    "depthwise-7x7": convolution((1, 96, 56, 56), 96, [7, 7], 3, group=96),
    "depthwise-two-each": convolution((1, 32, 56, 56), 64, [3, 3], 1, group=32),
    "conv-1d": convolution((1, 256, 400), 256, [3], 1),
    "conv-1d-dilated": convolution((1, 64, 1000), 64, [3], 8, dilations=[8]),
    "conv-1d-samples": convolution((1, 1, 16000), 256, [16], strides=[8]),
    "depthwise-1d": convolution((1, 256, 400), 256, [31], 15, group=256),
    "conv-3d": convolution((1, 16, 8, 32, 32), 16, [3, 3, 3], 1),
    "transposed-2x2": transposed((1, 64, 32, 32), 32, [2, 2], strides=[2, 2]),
    "transposed-4x4": transposed((1, 128, 16, 16), 64, [4, 4], 1, strides=[2, 2]),
    "transposed-depthwise": transposed((1, 32, 32, 32), 32, [4, 4], 1, strides=[2, 2], group=32),
    "transposed-1d": transposed((1, 256, 100), 128, [16], 4, strides=[8]),
}

PRODUCTS = {
    "gemm-1-row": Case("Gemm", (1, 512), values(1000, 512), values(1000), transB=1),
    "gemm-4-rows": Case("Gemm", (4, 512), values(512, 512), values(512), transB=1),
    "gemm-64-rows": Case("Gemm", (64, 768), values(768, 768), values(768), transB=1),
    "matmul-tokens": Case("MatMul", TOKENS, values(192, 576)),
    "matmul-two-inputs": Case("MatMul", (8, 128, 64), (8, 64, 128)),
    "matmul-row-of-input": Case("MatMul", (1, 512), (512, 512)),
    "einsum": Case("Einsum", (1, 4, 100, 64), (1, 4, 100, 64), equation="bhqd,bhkd->bhqk"),
    "lstm-1-step": recurrent("LSTM", 1, 128, 128),
    "lstm-50-steps": recurrent("LSTM", 50, 128, 128),
    "lstm-both-ways": recurrent("LSTM", 100, 256, 256, directions=2),
    "lstm-batch": recurrent("LSTM", 20, 64, 64, batch=16),
    "gru-100-steps": recurrent("GRU", 100, 128, 128, linear_before_reset=1),
    "gru-batch": recurrent("GRU", 65, 16, 16, batch=33, directions=2),
    "rnn-50-steps": recurrent("RNN", 50, 128, 128),
}

IMAGES = {
    "max-pool-3x3": window("MaxPool", (1, 64, 112, 112), 3, 2, 1),
    "max-pool-2x2": window("MaxPool", FEATURES, 2, 2),
    "max-pool-5x5": window("MaxPool", (1, 128, 20, 20), 5, 1, 2),
    "average-pool-3x3": window("AveragePool", FEATURES, 3, 2, 1),
    "global-average-pool": Case("GlobalAveragePool", FEATURES),
    "resize-nearest": resize((1, 64, 40, 40), 2, "nearest", "asymmetric"),
    "resize-linear": resize((1, 64, 32, 32), 2, "linear"),
    "resize-corners": resize((1, 21, 33, 33), 4, "linear", "align_corners"),
    "resize-smaller": resize((1, 3, 256, 256), 0.5, "linear"),
    "resize-cubic": resize((1, 3, 64, 64), 2, "cubic"),
    "grid-sample": Case("GridSample", (1, 32, 64, 64), (1, 64, 64, 2)),
    "depth-to-space": Case("DepthToSpace", FEATURES, blocksize=2),
    "space-to-depth": Case("SpaceToDepth", (1, 16, 112, 112), blocksize=2),
    "pad": Case("Pad", FEATURES, integers(0, 0, 1, 1, 0, 0, 1, 1)),
    "pad-reflect": Case("Pad", (1, 3, 128, 128), integers(0, 0, 3, 3, 0, 0, 3, 3), mode="reflect"),
}

NORMALISATIONS = {
    "batch-norm": Case("BatchNormalization", FEATURES, values(64), values(64), values(64), values(64) ** 2 + 1),
    "instance-norm": Case("InstanceNormalization", FEATURES, values(64), values(64)),
    "layer-norm": Case("LayerNormalization", TOKENS, values(192), values(192), axis=-1),
    "group-norm": Case("GroupNormalization", FEATURES, values(64), values(64), num_groups=8, opset=21),
    "lp-norm": Case("LpNormalization", (1, 100, 256), axis=-1, p=2),
    "softmax-rows": Case("Softmax", (8, 128, 128), axis=-1),
    "softmax-channels": Case("Softmax", (1, 21, 64, 64), axis=1),
    "softmax-vocabulary": Case("Softmax", (1, 30000), axis=-1),
    "log-softmax": Case("LogSoftmax", (1, 100, 5000), axis=-1),
    "mean-of-planes": Case("ReduceMean", FEATURES, axes=[2, 3]),
    "mean-of-rows": Case("ReduceMean", TOKENS, axes=[-1]),
    "mean-of-channels": Case("ReduceMean", FEATURES, axes=[1]),
    "max-of-channels": Case("ReduceMax", FEATURES, axes=[1]),
    "length-of-rows": Case("ReduceL2", (100, 256), axes=[-1]),
    "argmax-channels": Case("ArgMax", (1, 21, 64, 64), axis=1),
    "argmax-rows": Case("ArgMax", (100, 5000), axis=-1),
    "topk": Case("TopK", (1, 5000), integers(100), outputs=2),
    "cumsum": Case("CumSum", (100, 256), numpy.array(1, numpy.int64)),
}

MOVES = {
    "to-channels-last": Case("Transpose", FEATURES, perm=[0, 2, 3, 1]),
    "to-channels-first": Case("Transpose", (1, 56, 56, 64), perm=[0, 3, 1, 2]),
    "transpose-heads": Case("Transpose", (1, 197, 3, 64), perm=[0, 2, 1, 3]),
    "transpose-matrix": Case("Transpose", (512, 512), perm=[1, 0]),
    "shuffle-channels": Case("Transpose", (1, 2, 58, 28, 28), perm=[0, 2, 1, 3, 4]),
    "concat-channels": Case("Concat", FEATURES, FEATURES, axis=1),
    "split": Case("Split", (1, 197, 576), integers(192, 192, 192), outputs=3, axis=-1),
    "slice-steps": Case("Slice", FEATURES, integers(0, 0), integers(56, 56), integers(2, 3), integers(2, 2)),
    "tile": Case("Tile", (1, 64, 28, 28), integers(1, 1, 2, 2)),
    "expand": Case("Expand", (1, 64, 1, 1), integers(*FEATURES)),
    "gather": Case("Gather", (64, 100, 32), integers(*range(0, 100, 3)), axis=1),
}

ELEMENTWISE = {
    **{op.lower(): Case(op, FEATURES, opset=20) for op in (
        "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Gelu", "Mish", "HardSwish", "HardSigmoid",
        "Elu", "Celu", "Selu", "Softplus", "Softsign", "Abs", "Sign", "Floor", "Round", "Reciprocal", "Sin", "Cos",
        "Tan", "Atan", "IsNaN")},
    **{op.lower(): Case(op, FEATURES, FEATURES) for op in (
        "Add", "Sub", "Mul", "Div", "Max", "Pow", "Greater", "Equal")},
    "prelu": Case("PRelu", FEATURES, values(64, 1, 1)),
    "clip": Case("Clip", FEATURES, scalar(0), scalar(6)),
    "power": Case("Pow", FEATURES, scalar(1.7)),
    "add-per-channel": Case("Add", FEATURES, (1, 64, 1, 1)),
    "multiply-per-pixel": Case("Mul", FEATURES, (1, 1, 56, 56)),
    "where": Case("Where", values(*FEATURES) > 0, FEATURES, FEATURES),
}

CASES = {**CONVOLUTIONS, **PRODUCTS, **IMAGES, **NORMALISATIONS, **MOVES, **ELEMENTWISE}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(sorted(CASES)))
    parser.add_argument("--out", default="build/operators", help="folder (default: %(default)s)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in CASES]
    if unknown:
        sys.exit(f"no operator model '{unknown[0]}'\n  to mend it: make_operators.py --help lists them")
    os.makedirs(arguments.out, exist_ok=True)
    for name in arguments.names or CASES:
        path = os.path.join(arguments.out, f"{name}.onnx")
        onnx.save(CASES[name].model(name), path + ".new")
        os.replace(path + ".new", path)
    print(f"{len(arguments.names or CASES)} models in {arguments.out}")


if __name__ == "__main__":
    main()
