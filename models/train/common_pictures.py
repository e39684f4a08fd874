"""Pictures for the training scripts: drawing at four times the size, backgrounds, and what a camera does to them.

Pictures are RGB (or grey) PIL images while they are drawn, then float32 arrays [channels, height, width] in 0..1.
"""

import numpy as np
from PIL import Image, ImageFilter

from common import INPUTS

SCALE = 4  # drawing is done at SCALE times the final size and averaged down


def colour(rng, low=0, high=255):
    return tuple(int(v) for v in rng.integers(low, high + 1, 3))


def vary(rng, base, amount=25):
    """A colour near `base`."""
    return tuple(int(np.clip(v + rng.integers(-amount, amount + 1), 0, 255)) for v in base)


def background(rng, width, height):
    """A smooth random gradient with blobs and some grain, as RGB."""
    coarse = rng.integers(0, 256, (int(rng.integers(2, 6)), int(rng.integers(2, 6)), 3)).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC), np.float32)
    contrast = rng.uniform(0.2, 1.0)
    smooth = smooth.mean() + (smooth - smooth.mean()) * contrast
    return Image.fromarray(smooth.clip(0, 255).astype(np.uint8))


def shrink(picture):
    return picture.resize((picture.width // SCALE, picture.height // SCALE), Image.BOX)


def camera(rng, picture, strength=1.0):
    """Blur, exposure, colour cast and sensor noise; returns uint8 of the same size."""
    if rng.random() < 0.5 * strength:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.9) * strength))
    values = np.asarray(picture, np.float32) / 255
    shape = (1, 1, values.shape[2]) if values.ndim == 3 else (1, 1)
    values = values * (1 + strength * rng.uniform(-0.12, 0.12, shape))
    values = (values - 0.5) * rng.uniform(1 - 0.4 * strength, 1 + 0.15 * strength) + 0.5
    values = (
        values
        + strength * rng.uniform(-0.18, 0.18)
        + strength * rng.uniform(0, 0.05) * rng.standard_normal(values.shape)
    )
    return (values.clip(0, 1) * 255).round().astype(np.uint8)


def to_tensor(values):
    """uint8 [height, width(, channels)] -> float32 [channels, height, width] in 0..1."""
    planes = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    return np.ascontiguousarray(planes, np.float32) / 255


def read_picture(name):
    """A bundled PNG file as a batch of one: float32 [1, channels, height, width] in 0..1."""
    return to_tensor(np.asarray(Image.open(INPUTS / name)))[None]


def tilted_square(rng, size, tilt):
    """Corner points of a square of `size` seen at a slight angle: upper left, lower left, lower right, upper right."""
    corners = np.array([[0, 0], [0, size], [size, size], [size, 0]], np.float32)
    return corners + rng.uniform(-tilt * size, tilt * size, (4, 2))


def quad(picture, corners, size):
    return picture.transform((size, size), Image.QUAD, tuple(float(v) for v in corners.reshape(-1)), Image.BICUBIC)
