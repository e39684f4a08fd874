"""The features of the recogniser: 80 logarithmic mel bands as Kaldi computes them, without dither.

Frames of 25 ms every 10 ms, only whole ones; samples in the range of 16-bit integers. The mean and the variance are
normalised inside the encoder's graph, not here.
"""

import numpy as np

from common_sound import RATE

FRAME, SHIFT, FFT, BANDS = 400, 160, 512, 80
LOW_HZ, HIGH_HZ = 20.0, 8000.0
PRE_EMPHASIS = 0.97
SMALLEST_ENERGY = np.float32(1.1920929e-7)

WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / (FRAME - 1))) ** 0.85  # Povey's


def mel(frequency):
    return 1127 * np.log1p(np.asarray(frequency) / 700)


def triangles():
    """[FFT / 2, BANDS] weights, linear in mel, with a peak of 1; the bin at half the rate is not used."""
    edges = np.linspace(mel(LOW_HZ), mel(HIGH_HZ), BANDS + 2)
    bins = mel(np.arange(FFT // 2) * RATE / FFT)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.minimum(rising, falling).clip(0)


TRIANGLES = triangles()


def filter_bank(samples):
    """float32 [frames, BANDS] of float samples of full scale 1, rounded to 16 bits as a WAV file holds them."""
    pcm = np.round(np.clip(samples, -1, 32767 / 32768) * 32768)
    count = 1 + (len(pcm) - FRAME) // SHIFT if len(pcm) >= FRAME else 0
    if count == 0:
        return np.zeros((0, BANDS), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(pcm, FRAME)[::SHIFT]
    frames = frames - frames.mean(1, keepdims=True)
    previous = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    power = np.abs(np.fft.rfft((frames - PRE_EMPHASIS * previous) * WINDOW, FFT)[:, : FFT // 2]) ** 2
    return np.log(np.maximum(power @ TRIANGLES, SMALLEST_ENERGY)).astype(np.float32)
