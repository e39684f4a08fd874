"""Networks of speech, reading and detection that make_networks.py --further writes beside torchvision's."""
import torch
import torch.nn.functional as F
from torch import nn


class Unit(nn.Module):
    """Convolution, normalisation and SiLU."""

    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.silu(self.norm(self.convolution(x)))


class SplitStage(nn.Module):
    """A half of the channels passes residual blocks, of which all results are joined."""

    def __init__(self, inputs, outputs, blocks):
        super().__init__()
        self.half = outputs // 2
        self.first = Unit(inputs, outputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(Unit(self.half, self.half, 3), Unit(self.half, self.half, 3)) for _ in range(blocks))
        self.last = Unit((2 + blocks) * self.half, outputs)

    def forward(self, x):
        parts = list(self.first(x).split((self.half, self.half), 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A one-stage detector in the manner of YOLOv8's smallest, of three scales with a head of its own each."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(Unit(3, 16, 3, 2), Unit(16, 32, 3, 2), SplitStage(32, 32, 1))
        self.eighth = nn.Sequential(Unit(32, 64, 3, 2), SplitStage(64, 64, 2))
        self.sixteenth = nn.Sequential(Unit(64, 128, 3, 2), SplitStage(128, 128, 2))
        self.last = nn.Sequential(Unit(128, 256, 3, 2), SplitStage(256, 256, 1))
        self.up = nn.ModuleList([SplitStage(384, 128, 1), SplitStage(192, 64, 1)])
        self.heads = nn.ModuleList(
            nn.Sequential(Unit(width, 64, 3), Unit(64, 64, 3), nn.Conv2d(64, 84, 1)) for width in (64, 128, 256))

    def forward(self, image):
        eighth = self.eighth(self.stem(image))
        sixteenth = self.sixteenth(eighth)
        last = self.last(sixteenth)
        sixteenth = self.up[0](torch.cat([F.interpolate(last, scale_factor=2.0), sixteenth], 1))
        eighth = self.up[1](torch.cat([F.interpolate(sixteenth, scale_factor=2.0), eighth], 1))
        scales = zip(self.heads, (eighth, sixteenth, last))
        return torch.cat([head(scale).flatten(2) for head, scale in scales], 2).sigmoid()


class Reader(nn.Module):
    """Shi et al., "CRNN", 2016: lines of text 32 pixels high."""

    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 256, 512, 512)
        pools = (nn.MaxPool2d(2), nn.MaxPool2d(2), None, nn.MaxPool2d((2, 1)), None, nn.MaxPool2d((2, 1)))
        layers = []
        for inputs, outputs, pool in zip((1, *widths), widths, pools):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()] + ([pool] if pool else [])
        self.features = nn.Sequential(*layers, nn.Conv2d(512, 512, 2), nn.ReLU())
        self.layers = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(512, 37)

    def forward(self, line):
        return self.head(self.layers(self.features(line).squeeze(2).transpose(1, 2))[0])


def point(width):
    return nn.Sequential(nn.Conv1d(width, width, 1), nn.ReLU(), nn.BatchNorm1d(width))


class Res2Block(nn.Module):
    """Each part of the channels is convolved with what came of the part before, and all are weighed."""

    def __init__(self, width, dilation, parts=8):
        super().__init__()
        self.part = width // parts
        self.first, self.last = point(width), point(width)
        self.between = nn.ModuleList(
            nn.Conv1d(self.part, self.part, 3, dilation=dilation, padding=dilation) for _ in range(parts - 1))
        self.gate = nn.Sequential(nn.Conv1d(width, 128, 1), nn.ReLU(), nn.Conv1d(128, width, 1), nn.Sigmoid())

    def forward(self, x):
        pieces = self.first(x).split(self.part, 1)
        results = [pieces[0]]
        for layer, piece in zip(self.between, pieces[1:]):
            results.append(F.relu(layer(piece + results[-1])))
        y = self.last(torch.cat(results, 1))
        return x + y * self.gate(y.mean(2, keepdim=True))


class Speaker(nn.Module):
    """Desplanques et al., "ECAPA-TDNN", 2020, with 512 channels: who speaks in 200 frames of 80 mel bands."""

    def __init__(self, width=512):
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(80, width, 5, padding=2), nn.ReLU(), nn.BatchNorm1d(width))
        self.blocks = nn.ModuleList(Res2Block(width, dilation) for dilation in (2, 3, 4))
        self.joined = nn.Conv1d(3 * width, 1536, 1)
        self.weights = nn.Sequential(nn.Conv1d(1536, 128, 1), nn.Tanh(), nn.Conv1d(128, 1536, 1), nn.Softmax(2))
        self.head = nn.Linear(2 * 1536, 192)

    def forward(self, frames):
        x = self.first(frames)
        results = []
        for block in self.blocks:
            x = block(x)
            results.append(x)
        x = F.relu(self.joined(torch.cat(results, 1)))
        weights = self.weights(x)
        mean = (weights * x).sum(2)
        variance = (weights * x * x).sum(2) - mean * mean
        return self.head(torch.cat([mean, variance.clamp(min=1e-5).sqrt()], 1))


class WaveNet(nn.Module):
    """Van den Oord et al., 2016: two stacks of eight dilated, gated layers over 2000 samples."""

    def __init__(self, width=64, skipped=128):
        super().__init__()
        self.width = width
        self.dilations = [2**i for i in range(8)] * 2
        self.first = nn.Conv1d(1, width, 1)
        self.gated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.dilations)
        self.kept = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skips = nn.ModuleList(nn.Conv1d(width, skipped, 1) for _ in self.dilations)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(skipped, skipped, 1), nn.ReLU(), nn.Conv1d(skipped, 256, 1))

    def forward(self, samples):
        x, total = self.first(samples), 0
        for dilation, gated, kept, skip in zip(self.dilations, self.gated, self.kept, self.skips):
            y = gated(F.pad(x, (dilation, 0)))
            y = torch.tanh(y[:, :self.width]) * torch.sigmoid(y[:, self.width:])
            total = total + skip(y)
            x = x + kept(y)
        return self.head(total)
