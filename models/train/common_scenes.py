"""Rendered landscapes by day and by night with houses to count."""

import numpy as np
from PIL import Image, ImageDraw

from common_pictures import SCALE, camera, shrink, to_tensor, vary

LIGHT_LABELS = ["day", "night"]
MOST_HOUSES = 5
COUNT_LABELS = [str(count) for count in range(MOST_HOUSES + 1)]
SIZE = 64
SIDE = SIZE * SCALE

DAY = {
    "sky": (120, 180, 235),
    "ground": (90, 150, 70),
    "hill": (70, 120, 80),
    "disc": (255, 235, 120),
    "roof": (160, 60, 45),
    "window": (70, 80, 100),
}
NIGHT = {
    "sky": (18, 22, 50),
    "ground": (25, 40, 30),
    "hill": (14, 24, 28),
    "disc": (225, 225, 210),
    "roof": (60, 30, 30),
    "window": (250, 220, 120),
}
WALLS = [(220, 210, 190), (200, 160, 120), (180, 190, 200), (230, 225, 225)]


def sky(rng, colours):
    top, bottom = np.array(vary(rng, colours["sky"])), np.array(vary(rng, colours["sky"], 40))
    ramp = np.linspace(0, 1, SIDE)[:, None, None]
    return Image.fromarray(np.broadcast_to(top * (1 - ramp) + bottom * ramp, (SIDE, SIDE, 3)).astype(np.uint8).copy())


def hills(rng, draw, horizon, fill):
    for _ in range(int(rng.integers(0, 4))):
        x, width, height = rng.uniform(0, SIDE), rng.uniform(0.2, 0.6) * SIDE, rng.uniform(0.05, 0.25) * SIDE
        draw.ellipse((x - width, horizon - height, x + width, horizon + height), fill=vary(rng, fill, 12))


def sky_disc(rng, draw, horizon, fill):
    x, y, radius = rng.uniform(0, SIDE), rng.uniform(0, horizon), rng.uniform(0.03, 0.1) * SIDE
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=vary(rng, fill))


def house(rng, draw, box, colours, dimming):
    left, top, right, bottom = box
    wall = tuple(int(v * dimming) for v in vary(rng, WALLS[rng.integers(len(WALLS))]))
    eaves = top + 0.4 * (bottom - top)
    draw.rectangle((left, eaves, right, bottom), fill=wall)
    draw.polygon([(left - 4, eaves), (right + 4, eaves), ((left + right) / 2, top)], fill=vary(rng, colours["roof"]))
    unit = (right - left) / 5
    for column in (1, 3):
        place = left + column * unit
        draw.rectangle((place, eaves + unit * 0.8, place + unit, eaves + unit * 1.8), fill=vary(rng, colours["window"]))


def trees(rng, draw, horizon, fill):
    for _ in range(int(rng.integers(0, 4))):
        x, y, size = rng.uniform(0, SIDE), rng.uniform(horizon, SIDE), rng.uniform(0.03, 0.07) * SIDE
        draw.rectangle((x - size / 6, y - size, x + size / 6, y), fill=vary(rng, (70, 50, 40), 15))
        draw.ellipse((x - size / 2, y - 2 * size, x + size / 2, y - size / 2), fill=vary(rng, fill, 20))


def house_boxes(rng, count, horizon, largest):
    """Boxes in separate columns of the picture, so that every house stays visible."""
    columns = rng.permutation(MOST_HOUSES)[:count]
    column = SIDE / MOST_HOUSES
    boxes = []
    for index in columns:
        width = rng.uniform(0.55, largest) * column
        left = index * column + rng.uniform(0.04, 0.96 - width / column) * column
        bottom = rng.uniform(horizon + 0.08 * SIDE, SIDE - 8)
        boxes.append((left, bottom - width * rng.uniform(1.0, 1.5), left + width, bottom))
    return sorted(boxes, key=lambda box: box[3])


def render(rng, night, count, split="train"):
    """One picture, uint8 [SIZE, SIZE, 3]. The held-out split has another range of horizons and house sizes."""
    colours = NIGHT if night else DAY
    low, high, largest = (0.35, 0.6, 0.9) if split == "train" else (0.4, 0.65, 0.8)
    horizon = rng.uniform(low, high) * SIDE
    picture = sky(rng, colours)
    draw = ImageDraw.Draw(picture)
    sky_disc(rng, draw, horizon, colours["disc"])
    hills(rng, draw, horizon, colours["hill"])
    draw.rectangle((0, horizon, SIDE, SIDE), fill=vary(rng, colours["ground"]))
    trees(rng, draw, horizon, colours["hill"])
    for box in house_boxes(rng, count, horizon, largest):
        house(rng, draw, box, colours, 0.35 if night else 1.0)
    return camera(rng, shrink(picture), 0.6)


def dataset(seed, count, split):
    """(pictures [count, 3, SIZE, SIZE], night [count], houses [count])."""
    rng = np.random.default_rng(seed)
    night, houses = rng.integers(0, 2, count), rng.integers(0, MOST_HOUSES + 1, count)
    pictures = [to_tensor(render(rng, n, h, split)) for n, h in zip(night, houses)]
    return np.stack(pictures), night, houses
