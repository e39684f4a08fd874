"""scene-backbone and scene-head, a linked pair: the first turns a 64x64 picture into a feature map, the second reads
from that map whether it is day or night and how many houses there are.
"""

import numpy as np
import torch
from torch import nn

import common
from common_pictures import read_picture
from common_scenes import COUNT_LABELS, LIGHT_LABELS, SIZE, dataset

FEATURES, GRID = 32, 8


class Squeeze(nn.Module):
    """Scales every channel by a gain that depends on the means of all channels."""

    def __init__(self, channels):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.gains = nn.Sequential(
            nn.Conv2d(channels, channels // 4, 1), nn.ReLU(), nn.Conv2d(channels // 4, channels, 1), nn.Hardsigmoid()
        )

    def forward(self, x):
        return x * self.gains(self.pool(x))


class Inverted(nn.Module):
    """Widen, filter each channel, narrow again; added to the input where the shapes allow it."""

    def __init__(self, before, after, stride):
        super().__init__()
        wide = before * 3
        self.layers = nn.Sequential(
            nn.Conv2d(before, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            Squeeze(wide),
            nn.Conv2d(wide, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.residual = before == after and stride == 1

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
            Inverted(16, 24, 2),
            Inverted(24, 24, 1),
            Inverted(24, FEATURES, 2),
            Inverted(FEATURES, FEATURES, 1),
        )

    def forward(self, picture):
        return self.layers(picture)


class Head(nn.Module):
    """Reads the map as 64 places of 32 features each."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.hidden = nn.Linear(FEATURES, 48)
        self.activation = nn.GELU()
        self.light = nn.Linear(48, 1)
        self.houses = nn.Linear(96, len(COUNT_LABELS))

    def logits(self, features):
        places = self.activation(self.hidden(self.norm(torch.flatten(features, 2).transpose(1, 2))))
        mean, most = places.mean(1), places.amax(1)
        return self.light(mean), self.houses(torch.cat([mean, most], dim=1))

    def forward(self, features):
        light, houses = self.logits(features)
        return torch.sigmoid(light), torch.softmax(houses, dim=1)


def batches(seed, size, pictures, night, houses):
    rng = np.random.default_rng(seed)

    def next_batch(_):
        pick = rng.integers(0, len(pictures), size)
        return torch.from_numpy(pictures[pick]), torch.from_numpy(night[pick]).float(), torch.from_numpy(houses[pick])

    return next_batch


def loss_of(model, batch):
    backbone, head = model
    pictures, night, houses = batch
    light, counts = head.logits(backbone(pictures))
    dark = nn.functional.binary_cross_entropy_with_logits(light.squeeze(1), 0.02 + 0.96 * night)
    return 0.3 * dark + nn.functional.cross_entropy(counts, houses, label_smoothing=0.05)


def evaluate(backbone, head, pictures, night, houses):
    with torch.no_grad():
        light, counts = head(backbone(torch.from_numpy(pictures)))
    return {
        "light_accuracy": np.mean((light.squeeze(1).numpy() > 0.5) == (night == 1)),
        "count_accuracy": np.mean(counts.argmax(1).numpy() == houses),
    }


def main():
    steps = common.parse_steps(1200)
    common.set_seed(7)
    pictures, night, houses = dataset(71, 8000, "train")
    test = dataset(72, 1000, "held-out")
    pair = nn.ModuleList([Backbone(), Head()])
    minutes = common.train(pair, steps, batches(73, 32, pictures, night, houses), loss_of)
    backbone, head = pair
    scores = evaluate(backbone, head, *test)
    first = common.ModelSpec("scene-backbone", {"picture": (1, 3, SIZE, SIZE)}, ["features"], keep_batch_norm=False)
    second = common.ModelSpec(
        "scene-head", {"features": (1, FEATURES, GRID, GRID)}, ["night", "houses"], labels=COUNT_LABELS
    )
    shown = {name: read_picture(f"{name}.png") for name in ("scene-day", "scene-night")}
    shown["rand0"] = common.coarse_noise(74, (1, 3, SIZE, SIZE))
    common.publish(first, backbone, {name: [{"picture": picture}] for name, picture in shown.items()}, scores, minutes)
    maps = {
        name: common.run_module(first, backbone, {"picture": picture})["features"] for name, picture in shown.items()
    }
    common.publish(second, head, {name: [{"features": features}] for name, features in maps.items()}, scores, minutes)
    (common.MODELS / "labels" / "scene-head-night.txt").write_text("\n".join(LIGHT_LABELS) + "\n")


if __name__ == "__main__":
    main()
