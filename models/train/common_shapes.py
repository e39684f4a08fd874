"""Rendered scenes of coloured shapes with their boxes."""

import math

import numpy as np
from PIL import Image, ImageDraw

from common_pictures import SCALE, background, camera, colour, shrink

LABELS = ["circle", "square", "triangle", "star"]
SIZE = 96
MOST_SHAPES = 6


def outline(kind, centre, radius, turn):
    """Corner points of a shape; a circle is a polygon of many sides."""
    sides = {"circle": 48, "square": 4, "triangle": 3, "star": 10}[kind]
    angles = turn + 2 * math.pi * np.arange(sides) / sides
    lengths = np.where(np.arange(sides) % 2 == 1, 0.42, 1.0) * radius if kind == "star" else np.full(sides, radius)
    return np.stack([centre[0] + lengths * np.sin(angles), centre[1] - lengths * np.cos(angles)], 1)


def overlaps(box, others, margin=2.0):
    return any(
        box[0] < o[2] + margin and o[0] < box[2] + margin and box[1] < o[3] + margin and o[1] < box[3] + margin
        for o in others
    )


def place_shapes(rng, split):
    """Shapes that do not overlap, as (label, corner points, box); all in pixels of the final picture."""
    smallest, largest = (6.0, 17.0) if split == "train" else (7.0, 15.0)
    shapes, wanted = [], int(rng.integers(1, MOST_SHAPES + 1))
    for _ in range(40):
        if len(shapes) == wanted:
            break
        label, radius = int(rng.integers(len(LABELS))), rng.uniform(smallest, largest)
        points = outline(LABELS[label], rng.uniform(radius, SIZE - radius, 2), radius, rng.uniform(0, 2 * math.pi))
        box = np.concatenate([points.min(0), points.max(0)])
        if not overlaps(box, [other for _, _, other in shapes]):
            shapes.append((label, points, box))
    return shapes


def distinct_colour(rng, behind):
    """A colour that stands out from the one behind it."""
    while True:
        candidate = np.array(colour(rng))
        if np.abs(candidate - behind).sum() > 160:
            return tuple(int(v) for v in candidate)


def paint(rng, picture, points):
    draw = ImageDraw.Draw(picture)
    corners = [(float(x) * SCALE, float(y) * SCALE) for x, y in points]
    middle = (points.mean(0) * SCALE).astype(int).clip(0, SIZE * SCALE - 1)
    fill = distinct_colour(rng, np.array(picture.getpixel((int(middle[0]), int(middle[1])))))
    if rng.random() < 0.2:
        draw.line(corners + corners[:2], fill=fill, width=2 * SCALE, joint="curve")
    else:
        draw.polygon(corners, fill=fill)


def clutter(rng, picture):
    """Thin lines and specks that are no shapes."""
    draw = ImageDraw.Draw(picture)
    for _ in range(int(rng.integers(0, 4))):
        ends = rng.uniform(0, SIZE * SCALE, 4)
        draw.line([float(v) for v in ends], fill=colour(rng), width=int(rng.integers(1, 5)))


def render(rng, split="train"):
    """(picture uint8 [SIZE, SIZE, 3], list of (label, box as left, top, right, bottom in pixels))."""
    picture = background(rng, SIZE * SCALE, SIZE * SCALE)
    clutter(rng, picture)
    shapes = place_shapes(rng, split)
    for _, points, _ in shapes:
        paint(rng, picture, points)
    return camera(rng, shrink(picture), 0.8), [(label, box) for label, _, box in shapes]


def dataset(seed, count, split):
    rng = np.random.default_rng(seed)
    scenes = [render(rng, split) for _ in range(count)]
    return np.stack([picture for picture, _ in scenes]), [shapes for _, shapes in scenes]
