"""Streams for the two frame-by-frame models: speech in noise, the clean speech, and which frames hold speech."""

import numpy as np

from common_sound import RATE, noise, reverberate

FRAME = 256  # samples, 16 ms
GAP = (0.15, 1.2)  # seconds of silence between phrases


def place_phrases(rng, phrases, length):
    """A stream of phrases with pauses between them; the first and last may be cut off by its ends."""
    stream = np.zeros(length, np.float32)
    position = int(rng.uniform(-0.5, 0.8) * RATE)
    while position < length:
        phrase = phrases[rng.integers(len(phrases))] * 10 ** rng.uniform(-0.3, 0.1)
        if rng.random() < 0.3:
            phrase = reverberate(rng, phrase)
        start, cut = max(0, position), max(0, -position)
        part = phrase[cut : cut + length - start]
        stream[start : start + len(part)] = part
        position += len(phrase) + int(rng.uniform(*GAP) * RATE)
    return stream


def speech_frames(clean, hang_over=6):
    """1 for every frame within 35 dB of the stream's loudest, and for the short pauses inside words."""
    power = np.mean(clean[: len(clean) // FRAME * FRAME].reshape(-1, FRAME) ** 2, axis=1)
    active = power > max(power.max() * 10**-3.5, 1e-7)
    spread = np.convolve(active, np.ones(hang_over), "same") > 0
    return (spread & (np.convolve(spread, np.ones(hang_over), "same") >= hang_over) | active).astype(np.float32)


def stream(rng, phrases, length, lowest_snr, highest_snr, speechless=0.0):
    """(noisy, clean): speech of nominal level plus one or two noises at a random SNR, then a random gain."""
    clean = place_phrases(rng, phrases, length)
    if rng.random() < speechless:
        clean[:] = 0
    background = noise(rng, length)
    if rng.random() < 0.3:
        background = 0.7 * (background + noise(rng, length))
    gain = 10 ** rng.uniform(-0.7, 0.2)
    snr = rng.uniform(lowest_snr, highest_snr)
    noisy = clean + background * 10 ** (-snr / 20) * 0.7
    return (noisy * gain).clip(-1, 1).astype(np.float32), (clean * gain).astype(np.float32)


def frames_of(samples, count):
    """The first `count` frames as the steps of a reference sequence."""
    return [{"frame": frame[None]} for frame in samples[: count * FRAME].reshape(count, FRAME)]
