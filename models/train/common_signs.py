"""Rendered traffic signs, drawn with plain shapes and the DejaVu fonts."""

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from common_pictures import SCALE, background, camera, quad, shrink, tilted_square, to_tensor, vary

LABELS = [
    "stop",
    "yield",
    "no-entry",
    "speed-30",
    "speed-50",
    "speed-80",
    "priority-road",
    "ahead-only",
    "turn-left",
    "turn-right",
    "crossing",
    "no-stopping",
]
SIZE = 32
CANVAS = 256  # side of the plate a sign is drawn on before it is placed in the picture

RED, BLUE, WHITE, BLACK, YELLOW = (190, 20, 30), (20, 70, 170), (245, 245, 245), (20, 20, 20), (250, 200, 20)
TRAIN_FONTS = ["DejaVuSans-Bold", "DejaVuSansCondensed-Bold", "DejaVuSans"]
HELD_OUT_FONTS = ["DejaVuSansMono-Bold"]


def font(name, size):
    return ImageFont.truetype(f"{name}.ttf", size)


def polygon(sides, radius, turn=0.0):
    angles = turn + 2 * math.pi * np.arange(sides) / sides
    return [(CANVAS / 2 + radius * math.sin(a), CANVAS / 2 - radius * math.cos(a)) for a in angles]


def disc(draw, radius, fill):
    centre = CANVAS / 2
    draw.ellipse((centre - radius, centre - radius, centre + radius, centre + radius), fill=fill)


def centred_text(draw, text, typeface, fill):
    left, top, right, bottom = draw.textbbox((0, 0), text, font=typeface)
    draw.text((CANVAS / 2 - (left + right) / 2, CANVAS / 2 - (top + bottom) / 2), text, font=typeface, fill=fill)


def stop(draw, paint, typeface):
    draw.polygon(polygon(8, 122, math.pi / 8), fill=paint(WHITE))
    draw.polygon(polygon(8, 113, math.pi / 8), fill=paint(RED))
    centred_text(draw, "STOP", font(typeface, 72), paint(WHITE))


def yield_sign(draw, paint, _):
    draw.polygon([(8, 28), (248, 28), (128, 236)], fill=paint(RED))
    draw.polygon([(54, 56), (202, 56), (128, 184)], fill=paint(WHITE))


def no_entry(draw, paint, _):
    disc(draw, 120, paint(RED))
    draw.rectangle((44, 104, 212, 152), fill=paint(WHITE))


def speed(limit):
    def draw_limit(draw, paint, typeface):
        disc(draw, 120, paint(RED))
        disc(draw, 92, paint(WHITE))
        centred_text(draw, limit, font(typeface, 112), paint(BLACK))

    return draw_limit


def priority_road(draw, paint, _):
    draw.polygon(polygon(4, 124), fill=paint(BLACK))
    draw.polygon(polygon(4, 116), fill=paint(WHITE))
    draw.polygon(polygon(4, 78), fill=paint(YELLOW))


def arrow(draw, points, paint):
    disc(draw, 122, paint(WHITE))
    disc(draw, 116, paint(BLUE))
    draw.polygon(points, fill=paint(WHITE))


AHEAD = [(128, 36), (178, 96), (146, 96), (146, 216), (110, 216), (110, 96), (78, 96)]
LEFT = [(40, 128), (100, 78), (100, 110), (176, 110), (176, 206), (140, 206), (140, 146), (100, 146), (100, 178)]


def ahead_only(draw, paint, _):
    arrow(draw, AHEAD, paint)


def turn_left(draw, paint, _):
    arrow(draw, LEFT, paint)


def turn_right(draw, paint, _):
    arrow(draw, [(CANVAS - x, y) for x, y in LEFT], paint)


def crossing(draw, paint, _):
    draw.rectangle((14, 14, 242, 242), fill=paint(BLUE))
    draw.polygon([(128, 40), (216, 200), (40, 200)], fill=paint(WHITE))
    draw.ellipse((118, 72, 142, 96), fill=paint(BLACK))
    draw.line([(130, 96), (126, 140), (104, 186)], fill=paint(BLACK), width=14)
    draw.line([(126, 140), (152, 186)], fill=paint(BLACK), width=14)


def no_stopping(draw, paint, _):
    disc(draw, 120, paint(RED))
    disc(draw, 94, paint(BLUE))
    draw.line([(60, 60), (196, 196)], fill=paint(RED), width=24)
    draw.line([(196, 60), (60, 196)], fill=paint(RED), width=24)


PAINTERS = [
    stop,
    yield_sign,
    no_entry,
    speed("30"),
    speed("50"),
    speed("80"),
    priority_road,
    ahead_only,
    turn_left,
    turn_right,
    crossing,
    no_stopping,
]


def plate(rng, label, fonts):
    """The sign alone, with its paint faded a little, on a transparent square."""
    picture = Image.new("RGBA", (CANVAS, CANVAS), (0, 0, 0, 0))
    shades = {}

    def paint(base):
        return shades.setdefault(base, vary(rng, base))

    PAINTERS[label](ImageDraw.Draw(picture), paint, fonts[rng.integers(len(fonts))])
    return picture.rotate(rng.uniform(-14, 14), Image.BICUBIC)


def render(rng, label, split="train"):
    """One picture, uint8 [SIZE, SIZE, 3]. The held-out split uses another font, smaller signs and more tilt."""
    held_out = split == "held-out"
    side = SIZE * SCALE
    picture = background(rng, side, side)
    sign_side = int(side * (rng.uniform(0.58, 0.8) if held_out else rng.uniform(0.62, 0.98)))
    corners = tilted_square(rng, CANVAS, 0.1 if held_out else 0.08)
    sign = quad(plate(rng, label, HELD_OUT_FONTS if held_out else TRAIN_FONTS), corners, sign_side)
    place = rng.integers(0, side - sign_side + 1, 2)
    picture.paste(sign, (int(place[0]), int(place[1])), sign)
    return camera(rng, shrink(picture))


def dataset(seed, count, split):
    """(pictures [count, 3, SIZE, SIZE], labels [count]), classes equally often."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(LABELS)
    return np.stack([to_tensor(render(rng, label, split)) for label in labels]), labels
