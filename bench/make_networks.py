#!/usr/bin/env python3
"""Writes the usual networks at full size with random weights as ONNX files, to be measured.

Usage: make_networks.py [--out build/networks] [--float-only] [--further] [NAME ...]

Needs Debian's python3-torch, python3-torchvision and python3-onnx (scripts/dependencies.sh networks). Batch normalisation is
calibrated on random inputs, so that activations keep a sensible range, and folded into the convolutions, as every
exporter does. Convolutional networks are written in float and, as NAME-int8.onnx, with QuantizeLinear and
DequantizeLinear around every operator: activations u8 per tensor, weights i8 per channel, biases i32. The same names
give the same files.
"""
import argparse
import math
import os
import sys

import numpy
import onnx
import torch
import torch.nn.functional as F
import torchvision
from further_networks import Detector, Reader, Speaker, WaveNet
from onnx import helper, numpy_helper
from torch import nn
from torch.fx import symbolic_trace
from torch.fx.experimental.optimization import fuse as fold_normalisation
from torch.fx.passes.shape_prop import ShapeProp

IMAGE = (1, 3, 224, 224)
OPSET = 17
CALIBRATION_RUNS = 8


def convolution(channels_in, channels_out, kernel, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(channels_out), nn.ReLU())


def separable(channels_in, channels_out, stride=1):
    return nn.Sequential(convolution(channels_in, channels_in, 3, stride, groups=channels_in),
                         convolution(channels_in, channels_out, 1))


def mobilenet_v1():
    """Howard et al., "MobileNets", 2017, width 1.0."""
    widths = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    layers = [convolution(3, 32, 3, 2)]
    channels = 32
    for width, stride in widths:
        layers.append(separable(channels, width, stride))
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


def ds_cnn():
    """Zhang et al., "Hello Edge", 2017: keyword spotting on 49 frames of 10 coefficients."""
    return nn.Sequential(nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                         *[separable(64, 64) for _ in range(4)], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 12))


class Attention(nn.Module):
    """Multi-head self-attention on [batch, tokens, width]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.projections = nn.Linear(width, 3 * width)
        self.result = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        split = self.projections(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        mixed = scores.softmax(-1) @ value
        return self.result(mixed.transpose(1, 2).reshape(batch, tokens, width))


def feed_forward(width, inner, activation):
    return nn.Sequential(nn.Linear(width, inner), activation, nn.Linear(inner, width))


class EncoderBlock(nn.Module):
    """Vaswani et al., 2017, with normalisation in front of each part."""

    def __init__(self, width, heads, inner, activation):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.feed_forward = nn.Sequential(nn.LayerNorm(width), feed_forward(width, inner, activation))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(x)


def transformer_encoder():
    return nn.Sequential(*[EncoderBlock(256, 4, 1024, nn.ReLU()) for _ in range(6)], nn.LayerNorm(256))


class VisionTransformer(nn.Module):
    """Dosovitskiy et al., 2021, in the "tiny" size of Touvron et al., 2021: patches of 16 pixels, 12 blocks of 192."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, 192) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 197, 192) * 0.02)
        self.blocks = nn.Sequential(*[EncoderBlock(192, 3, 768, nn.GELU()) for _ in range(12)], nn.LayerNorm(192))
        self.head = nn.Linear(192, 1000)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        token = self.token.expand(x.shape[0], 1, 192)
        x = self.blocks(torch.cat([token, x], 1) + self.positions)
        return self.head(x[:, 0])


class ConvolutionModule(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.result = nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = F.glu(self.gate(self.norm(x).transpose(1, 2)), 1)
        return self.result(F.silu(self.batch_norm(self.depthwise(x)))).transpose(1, 2)


class ConformerBlock(nn.Module):
    """Gulati et al., 2020."""

    def __init__(self, width, heads, kernel):
        super().__init__()
        self.first = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width, nn.SiLU()))
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.convolution = ConvolutionModule(width, kernel)
        self.second = nn.Sequential(nn.LayerNorm(width), feed_forward(width, 4 * width, nn.SiLU()))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(x)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.second(x))


class ConformerEncoder(nn.Module):
    """400 frames of 80 mel bands, a quarter of the frames behind two strided convolutions."""

    def __init__(self, width=144, blocks=8):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.projection = nn.Linear(width * 19, width)
        self.blocks = nn.Sequential(*[ConformerBlock(width, 4, 31) for _ in range(blocks)])

    def forward(self, features):
        x = self.front(features.unsqueeze(1))
        x = x.transpose(1, 2).flatten(2)
        return self.blocks(self.projection(x))


def channel_shuffle(x, groups):
    """torchvision's, in words that torch.fx follows."""
    batch, channels, height, width = (x.shape[i] for i in range(4))
    split = x.view(batch, groups, channels // groups, height, width)
    return split.transpose(1, 2).reshape(batch, channels, height, width)


def shuffle_block(self, x):
    """torchvision's InvertedResidual.forward, likewise."""
    if self.stride > 1:
        return channel_shuffle(torch.cat((self.branch1(x), self.branch2(x)), 1), 2)
    half = x.shape[1] // 2
    return channel_shuffle(torch.cat((x[:, :half], self.branch2(x[:, half:])), 1), 2)


VISION = torchvision.models
VISION.shufflenetv2.InvertedResidual.forward = shuffle_block
CONVOLUTIONAL = {
    "mobilenet-v1": (mobilenet_v1, IMAGE),
    "mobilenet-v2": (VISION.mobilenet_v2, IMAGE),
    "mobilenet-v3-small": (VISION.mobilenet_v3_small, IMAGE),
    "mobilenet-v3-large": (VISION.mobilenet_v3_large, IMAGE),
    "efficientnet-b0": (VISION.efficientnet_b0, IMAGE),
    "resnet-18": (VISION.resnet18, IMAGE),
    "resnet-50": (VISION.resnet50, IMAGE),
    "squeezenet-1.1": (VISION.squeezenet1_1, IMAGE),
    "shufflenet-v2": (VISION.shufflenet_v2_x1_0, IMAGE),
    "ds-cnn": (ds_cnn, (1, 1, 49, 10)),
}
OTHERS = {
    "vit-tiny": (VisionTransformer, IMAGE),
    "transformer-encoder": (transformer_encoder, (1, 128, 256)),
    "conformer-encoder": (ConformerEncoder, (1, 400, 80)),
}


class Recurrent(nn.Module):
    """Two layers over a sequence of 80 features."""

    def __init__(self, kind, width, **options):
        super().__init__()
        self.layers = kind(80, width, 2, batch_first=True, **options)
        self.head = nn.Linear(256, 40)

    def forward(self, x):
        return self.head(self.layers(x)[0])


class Segmentation(nn.Module):
    """torchvision's, of whose results one is wanted."""

    def __init__(self, make):
        super().__init__()
        self.inner = make(weights=None, weights_backbone=None)

    def forward(self, image):
        return self.inner(image)["out"]


PLAIN = {"aux_logits": False, "init_weights": False, "transform_input": False}
# Of other kinds, to find what the usual ones hide.
FURTHER_CONVOLUTIONAL = {
    "regnet-y-400": (VISION.regnet_y_400mf, IMAGE),
    "regnet-x-800": (VISION.regnet_x_800mf, IMAGE),
    "resnext-50": (VISION.resnext50_32x4d, IMAGE),
    "mnasnet": (VISION.mnasnet1_0, IMAGE),
    "googlenet": (lambda: VISION.googlenet(**PLAIN), IMAGE),
}
FURTHER_OTHERS = {
    "densenet-121": (VISION.densenet121, IMAGE),
    "inception-v3": (lambda: VISION.inception_v3(**PLAIN), (1, 3, 299, 299)),
    "vgg-11": (VISION.vgg11_bn, IMAGE),
    "convnext-tiny": (VISION.convnext_tiny, IMAGE),
    "deeplab-v3": (lambda: Segmentation(VISION.segmentation.deeplabv3_mobilenet_v3_large), IMAGE),
    "lraspp": (lambda: Segmentation(VISION.segmentation.lraspp_mobilenet_v3_large), IMAGE),
    "fcn": (lambda: Segmentation(VISION.segmentation.fcn_resnet50), (1, 3, 112, 112)),
    "swin-tiny": (VISION.swin_t, IMAGE),
    "efficientnet-v2-s": (VISION.efficientnet_v2_s, IMAGE),
    "detector": (Detector, (1, 3, 320, 320)),
    "reader": (Reader, (1, 1, 32, 100)),
    "speaker": (Speaker, (1, 80, 200)),
    "wavenet": (WaveNet, (1, 1, 2000)),
    "gru": (lambda: Recurrent(nn.GRU, 256), (1, 100, 80)),
    "lstm": (lambda: Recurrent(nn.LSTM, 128, bidirectional=True), (1, 100, 80)),
}


def calibrate_normalisation(model, shape):
    """Gives batch normalisation the statistics of random inputs."""
    norms = [module for module in model.modules() if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all runs
    model.train(bool(norms))
    with torch.no_grad():
        for _ in range(CALIBRATION_RUNS // 4):
            model(torch.randn(2, *shape[1:]))
    return model.eval()


class Grid(nn.Module):
    """Watches the range of its operand, then rounds it to 256 steps."""

    def __init__(self):
        super().__init__()
        self.watching, self.low, self.high = True, 0.0, 0.0

    def forward(self, x):
        if self.watching:
            self.low, self.high = min(self.low, x.min().item()), max(self.high, x.max().item())
            return x
        scale = max(self.high - self.low, 1e-6) / 255
        return torch.fake_quantize_per_tensor_affine(x, scale, round(-self.low / scale), 0, 255)


class QuantisedWeights(nn.Module):
    """A convolution or product whose weights are on a grid of their own per output channel."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        largest = inner.weight.detach().abs().flatten(1).max(1).values
        self.scales = largest.clamp(min=1e-6) / 127
        self.zeros = torch.zeros(len(largest), dtype=torch.int32)

    def forward(self, x):
        weight = torch.fake_quantize_per_channel_affine(self.inner.weight, self.scales, self.zeros, 0, -128, 127)
        if isinstance(self.inner, nn.Linear):
            return F.linear(x, weight, self.inner.bias)
        return self.inner._conv_forward(x, weight, self.inner.bias)


def is_activation(node, modules):
    kinds = (nn.ReLU, nn.ReLU6, nn.Hardswish, nn.Hardsigmoid, nn.SiLU, nn.Sigmoid)
    return node.op == "call_module" and isinstance(modules[node.target], kinds)


def quantised(model, shape):
    """The model with grids around every operator; an activation shares the grid behind it with what it follows."""
    traced = symbolic_trace(model)
    ShapeProp(traced).propagate(torch.randn(shape))
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], (nn.Conv2d, nn.Linear)):
            parent, _, name = node.target.rpartition(".")
            setattr(modules[parent], name, QuantisedWeights(modules[node.target]))
        only_activated = len(node.users) == 1 and is_activation(next(iter(node.users)), modules)
        if node.op == "output" or "tensor_meta" not in node.meta or only_activated:
            continue
        name = "grid_" + node.name
        traced.add_module(name, Grid())
        with traced.graph.inserting_after(node):
            grid = traced.graph.call_module(name)
        node.replace_all_uses_with(grid)
        grid.args = (node,)
    traced.recompile()
    with torch.no_grad():
        for _ in range(CALIBRATION_RUNS):
            traced(torch.randn(shape))
    for module in traced.modules():
        if isinstance(module, Grid):
            module.watching = False
    return traced


def constants_of(graph):
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Identity" and node.input[0] in constants:  # the exporter's name for an equal constant
            constants[node.output[0]] = constants[node.input[0]]
    return constants


def store_integers(model):
    """Weights as i8, and biases as i32 in units of the product of both scales: what integer arithmetic needs."""
    graph = model.graph
    constants = constants_of(graph)
    for node in [n for n in graph.node if n.op_type == "QuantizeLinear" and n.input[0] in constants]:
        weight, scales = (constants[name] for name in node.input[:2])
        steps = numpy.round(weight / scales.reshape(-1, *[1] * (weight.ndim - 1)))
        graph.initializer.append(numpy_helper.from_array(steps.clip(-127, 127).astype(numpy.int8), node.output[0]))
        graph.node.remove(node)
    makers = {name: node for node in graph.node for name in node.output}
    added = []
    for node in graph.node:
        if node.op_type not in ("Conv", "Gemm") or len(node.input) < 3:
            continue
        x, w = (makers.get(name) for name in node.input[:2])
        if any(n is None or n.op_type != "DequantizeLinear" for n in (x, w)):
            continue
        scale = (constants[x.input[1]] * constants[w.input[1]]).astype(numpy.float32).reshape(-1)
        bias = numpy.clip(numpy.round(constants[node.input[2]].astype(numpy.float64) / scale), -2**31, 2**31 - 1)
        name = node.output[0] + "_bias"
        graph.initializer.append(numpy_helper.from_array(bias.astype(numpy.int32), name))
        graph.initializer.append(numpy_helper.from_array(scale, name + "_scale"))
        added.append(helper.make_node("DequantizeLinear", [name, name + "_scale"], [name + "_real"], axis=0))
        node.input[2] = name + "_real"
    for node in reversed(added):
        graph.node.insert(0, node)
    used = {name for node in graph.node for name in node.input}
    kept = [i for i in graph.initializer if i.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def export(model, shape, path, finish=None):
    """Writes to a temporary name first."""
    temporary = path + ".partial"
    torch.onnx.export(model, torch.randn(shape), temporary, opset_version=OPSET, input_names=["x"], output_names=["y"])
    network = onnx.load(temporary)
    if finish:
        finish(network)
    onnx.checker.check_model(network)
    onnx.save(network, temporary)
    os.replace(temporary, path)
    print(f"{path}: {os.path.getsize(path) / 2**20:.1f} MiB", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", default="build/networks", metavar="DIR")
    arguments.add_argument("--float-only", action="store_true", help="leave the int8 files out")
    arguments.add_argument("--further", action="store_true", help="those of other kinds instead of the usual ones")
    convolutional = {**CONVOLUTIONAL, **FURTHER_CONVOLUTIONAL}
    usual, further = {**CONVOLUTIONAL, **OTHERS}, {**FURTHER_CONVOLUTIONAL, **FURTHER_OTHERS}
    known = {**usual, **further}
    arguments.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    options = arguments.parse_args()
    for name in options.names:
        if name not in known:
            sys.exit(f"make_networks.py: there is no network '{name}'\n  to mend it: choose of {', '.join(known)}")
    os.makedirs(options.out, exist_ok=True)
    for name in options.names or (further if options.further else usual):
        make, shape = known[name]
        torch.manual_seed(1)
        model = calibrate_normalisation(make(), shape)
        export(model, shape, os.path.join(options.out, name + ".onnx"))
        if name in convolutional and not options.float_only:
            folded = fold_normalisation(model)
            export(quantised(folded, shape), shape, os.path.join(options.out, name + "-int8.onnx"), store_integers)


if __name__ == "__main__":
    main()
