"""Rendered strips of four digits, as on meters and counters."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from common_pictures import SCALE, camera, shrink, to_tensor

LABELS = [str(digit) for digit in range(10)]
DIGITS = 4
HEIGHT, WIDTH = 32, 96
TRAIN_FONTS = (
    "DejaVuSans DejaVuSans-Bold DejaVuSans-Oblique DejaVuSans-ExtraLight DejaVuSansCondensed DejaVuSansCondensed-Bold "
    "DejaVuSansMono DejaVuSansMono-Bold DejaVuSansMono-Oblique DejaVuSerif DejaVuSerif-Bold DejaVuSerifCondensed"
).split()
HELD_OUT_FONTS = (
    "DejaVuSans-BoldOblique DejaVuSansCondensed-Oblique DejaVuSerif-Italic DejaVuSerifCondensed-Bold".split()
)
SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]


def segment_digit(draw, digit, box, width, ink):
    """A seven-segment digit inside a box."""
    left, top, right, bottom = box
    middle = (top + bottom) / 2
    lines = {
        "a": (left, top, right, top),
        "b": (right, top, right, middle),
        "c": (right, middle, right, bottom),
        "d": (left, bottom, right, bottom),
        "e": (left, middle, left, bottom),
        "f": (left, top, left, middle),
        "g": (left, middle, right, middle),
    }
    for name in SEGMENTS[digit]:
        draw.line(lines[name], fill=ink, width=width)


def print_digit(draw, digit, centre, typeface, ink):
    left, top, right, bottom = draw.textbbox((0, 0), LABELS[digit], font=typeface)
    draw.text((centre[0] - (left + right) / 2, centre[1] - (top + bottom) / 2), LABELS[digit], font=typeface, fill=ink)


def gradient(rng, paper):
    ramp = np.linspace(-1, 1, WIDTH * SCALE)[None] * rng.uniform(-25, 25) + np.linspace(-1, 1, HEIGHT * SCALE)[
        :, None
    ] * rng.uniform(-25, 25)
    return Image.fromarray((paper + ramp).clip(0, 255).astype(np.uint8))


def draw_digits(rng, picture, digits, fonts, ink):
    draw = ImageDraw.Draw(picture)
    segments = rng.random() < 0.15
    size = int(rng.uniform(20, 27) * SCALE)
    typeface = ImageFont.truetype(f"{fonts[rng.integers(len(fonts))]}.ttf", size)
    spacing = rng.uniform(19, 23) * SCALE
    first = (WIDTH * SCALE - 3 * spacing) / 2 + rng.uniform(-4, 4) * SCALE
    line = (HEIGHT / 2 + rng.uniform(-2.5, 2.5)) * SCALE
    for index, digit in enumerate(digits):
        centre = (first + index * spacing, line + rng.uniform(-1, 1) * SCALE)
        if segments:
            half_width, half_height = 0.22 * size, 0.38 * size
            box = (centre[0] - half_width, centre[1] - half_height, centre[0] + half_width, centre[1] + half_height)
            segment_digit(draw, digit, box, int(rng.uniform(2, 3.4) * SCALE), ink)
        else:
            print_digit(draw, digit, centre, typeface, ink)


def render(rng, digits, split="train"):
    """One strip, uint8 [HEIGHT, WIDTH]: dark on light or light on dark, slightly turned."""
    paper = rng.integers(130, 256)
    ink = int(paper - rng.integers(80, 131))
    if rng.random() < 0.5:
        paper, ink = 255 - paper, 255 - ink
    picture = gradient(rng, float(paper))
    draw_digits(rng, picture, digits, TRAIN_FONTS if split == "train" else HELD_OUT_FONTS, ink)
    picture = picture.rotate(rng.uniform(-3, 3), Image.BICUBIC, fillcolor=int(paper))
    return camera(rng, shrink(picture), 0.7)


def dataset(seed, count, split):
    """(strips [count, 1, HEIGHT, WIDTH], digits [count, DIGITS])."""
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, 10, (count, DIGITS))
    return np.stack([to_tensor(render(rng, row, split)) for row in digits]), digits
