"""shape-detector: a 96x96 scene -> for each cell of a 24x24 grid, how likely each kind of shape has its centre there,
and the box of that shape.

Fully convolutional: depthwise separable blocks down to 12x12, then up again (nearest) and joined with the finer map.
A detection is a local maximum of the heat map; its box is centred at (cell + 0.5 + offset) * 4 pixels and has the size
given at that cell, in pixels.
"""

import numpy as np
import torch
from torch import nn

import common
from common_pictures import read_picture, to_tensor
from common_shapes import LABELS, SIZE, dataset

STRIDE = 4
GRID = SIZE // STRIDE


def separable(before, after, stride=1):
    return nn.Sequential(
        nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False),
        nn.BatchNorm2d(before),
        nn.ReLU6(),
        nn.Conv2d(before, after, 1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU6(),
    )


class ShapeDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
        self.fine = nn.Sequential(separable(16, 32, 2), separable(32, 32))
        self.coarse = nn.Sequential(separable(32, 64, 2), separable(64, 64), separable(64, 64))
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.merge = nn.Sequential(separable(96, 48), separable(48, 48))
        self.heat = nn.Conv2d(48, len(LABELS), 1)
        self.box = nn.Conv2d(48, 4, 1)
        nn.init.constant_(self.heat.bias, -4.0)

    def raw(self, scene):
        fine = self.fine(self.stem(scene))
        merged = self.merge(torch.cat([fine, self.upsample(self.coarse(fine))], dim=1))
        return self.heat(merged), self.box(merged)

    def forward(self, scene):
        """Heat map [N, classes, GRID, GRID]; offset (x, y in cells) and size (width, height in pixels), each
        [N, 2, GRID, GRID]."""
        heat, box = self.raw(scene)
        offset, size = torch.split(box, 2, dim=1)
        return torch.sigmoid(heat), torch.tanh(offset), torch.exp(size) * STRIDE


def gaussian(centre, spread):
    grid = np.arange(GRID) + 0.5
    return np.exp(-((grid[None] - centre[0]) ** 2 + (grid[:, None] - centre[1]) ** 2) / (2 * spread**2))


def targets(shapes):
    """Heat map, and at the centre cells offset, log size and a mask."""
    heat = np.zeros((len(LABELS), GRID, GRID), np.float32)
    box, mask = np.zeros((4, GRID, GRID), np.float32), np.zeros((1, GRID, GRID), np.float32)
    for label, (left, top, right, bottom) in shapes:
        centre = np.array([left + right, top + bottom]) / (2 * STRIDE)
        size = np.array([right - left, bottom - top]) / STRIDE
        x, y = np.minimum(centre.astype(int), GRID - 1)
        heat[label] = np.maximum(heat[label], gaussian((x + 0.5, y + 0.5), 0.08 * size.mean() + 0.3))
        box[:, y, x] = [*(centre - (x + 0.5, y + 0.5)), *np.log(size)]
        mask[0, y, x] = 1
    return heat, box, mask


def batches(seed, size, pictures, scenes):
    rng = np.random.default_rng(seed)
    heat, box, mask = (np.stack(part) for part in zip(*[targets(shapes) for shapes in scenes]))

    def next_batch(_):
        pick = rng.integers(0, len(pictures), size)
        inputs = np.stack([to_tensor(picture) for picture in pictures[pick]])
        return tuple(torch.from_numpy(part) for part in (inputs, heat[pick], box[pick], mask[pick]))

    return next_batch


def loss_of(model, batch):
    """Focal loss on the heat map, smooth L1 on the boxes of the centre cells."""
    inputs, heat, box, mask = batch
    logits, guess = model.raw(inputs)
    probability = torch.sigmoid(logits)
    is_centre = heat > 0.999
    hit = -nn.functional.logsigmoid(logits) * (1 - probability) ** 2
    miss = -nn.functional.logsigmoid(-logits) * probability**2 * (1 - heat) ** 4
    guess = torch.cat([torch.tanh(guess[:, :2]), guess[:, 2:]], dim=1)
    distance = nn.functional.smooth_l1_loss(guess * mask, box * mask, reduction="sum", beta=0.1)
    return (torch.where(is_centre, hit, miss).sum() + distance) / mask.sum()


def decode(heat, offset, size, threshold):
    """Detections (label, score, box) of one scene, best first."""
    peaks = nn.functional.max_pool2d(torch.from_numpy(heat)[None], 3, 1, 1)[0].numpy() == heat
    found = []
    for label, y, x in zip(*np.nonzero(peaks & (heat > threshold))):
        centre = (np.array([x, y]) + 0.5 + offset[:, y, x]) * STRIDE
        half = size[:, y, x] / 2
        found.append((int(label), float(heat[label, y, x]), np.concatenate([centre - half, centre + half])))
    return sorted(found, key=lambda item: -item[1])


def overlap(a, b):
    """Intersection over union of two boxes."""
    inner = np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])).prod()
    return inner / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - inner)


def match(found, shapes, wanted_overlap):
    """Number of detections that hit a shape of their kind which no better detection has hit."""
    left, hits = list(range(len(shapes))), 0
    for label, _, box in found:
        fits = [i for i in left if shapes[i][0] == label and overlap(shapes[i][1], box) >= wanted_overlap]
        if fits:
            left.remove(max(fits, key=lambda i: overlap(shapes[i][1], box)))
            hits += 1
    return hits


def evaluate(model, pictures, scenes, threshold=0.4):
    hits = found_count = shape_count = 0
    for picture, shapes in zip(pictures, scenes):
        with torch.no_grad():
            outputs = model(torch.from_numpy(to_tensor(picture))[None])
        found = decode(*[output[0].numpy() for output in outputs], threshold)
        hits += match(found, shapes, 0.5)
        found_count += len(found)
        shape_count += len(shapes)
    precision, recall = hits / max(1, found_count), hits / shape_count
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(1e-9, precision + recall)}


def main():
    steps = common.parse_steps(2500)
    common.set_seed(5)
    pictures, scenes = dataset(51, 5000, "train")
    test_pictures, test_scenes = dataset(52, 400, "held-out")
    model = ShapeDetector()
    minutes = common.train(model, steps, batches(53, 16, pictures, scenes), loss_of)
    spec = common.ModelSpec("shape-detector", {"scene": (1, 3, SIZE, SIZE)}, ["heat", "offset", "size"], labels=LABELS)
    cases = {name: [{"scene": read_picture(f"{name}.png")}] for name in ("shapes-1", "shapes-2")}
    cases["rand0"] = [{"scene": common.coarse_noise(54, (1, 3, SIZE, SIZE))}]
    common.publish(spec, model, cases, evaluate(model, test_pictures, test_scenes), minutes)


if __name__ == "__main__":
    main()
