"""Sound for the training scripts: speech from espeak-ng, synthetic noises, mixing, and the fixed filters of the graphs.

Speech is cached outside the repository (BANTAM_TRAIN_CACHE, by default a folder in the system's temporary folder).
All sound is 16 kHz float32, full scale 1.
"""

import hashlib
import os
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np
import torch

from common import INPUTS

RATE = 16000
ESPEAK_RATE = 22050

ACCENTS = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-us-nyc"]
TRAIN_VOICES = (
    "m1 m2 m3 m4 m5 m6 m8 f1 f2 f3 f5 Alex Alicia Andrea Andy Denis Diogo Gene Hugo Jacky Lee Marco Mario Michael adam "
    "anika antonio aunty belinda benjamin boris caleb david ed edward john linda marcelo max miguel norbert pablo paul "
    "pedro rob sandro shelby steph travis zac klatt klatt2 klatt3"
).split()
HELD_OUT_VOICES = "m7 f4 Annie Mike Henrique gustave quincy robert victor klatt4".split()

TRAIN_SENTENCES = [
    "the train to the harbour leaves at seven",
    "please close the window before it rains",
    "she bought two loaves of bread and some cheese",
    "can you tell me where the library is",
    "the children played football behind the school",
    "my brother works in a small garage",
    "turn the volume down a little",
    "a grey cat was sleeping on the warm roof",
    "we will meet again on thursday morning",
    "he forgot his keys and had to wait outside",
    "the doctor asked her to breathe slowly",
    "put the blue box next to the green one",
    "fresh fish is sold at the market every day",
    "I have never seen such a bright star",
    "open the door and switch on the light",
    "the old bridge was built of stone and iron",
    "good evening everybody and welcome back",
    "what time does the next bus arrive",
    "they painted the kitchen yellow last summer",
    "an engine needs oil and a bit of patience",
    "the river was frozen for most of january",
    "call me when you have reached the hotel",
    "seven plus eight makes fifteen",
    "the judge listened to both of them carefully",
    "nobody knew why the clock had stopped",
]
HELD_OUT_SENTENCES = [
    "a strong wind blew across the empty beach",
    "could you pass me the salt and the pepper",
    "our neighbours have planted a cherry tree",
    "the museum is closed on mondays",
    "he played the same song over and over",
    "start the washing machine at nine o'clock",
    "her voice was calm but her hands were shaking",
    "we need more chairs for the guests",
]


def cache_folder():
    folder = Path(os.environ.get("BANTAM_TRAIN_CACHE", Path(tempfile.gettempdir()) / "bantam-train-cache"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def resample(samples, source_rate, target_rate):
    """Band-limited resampling of a whole clip by cutting or padding its spectrum."""
    length = len(samples)
    target = max(1, round(length * target_rate / source_rate))
    padded = 1 << (length - 1).bit_length()
    padded_target = round(padded * target_rate / source_rate)
    spectrum = np.fft.rfft(samples, padded)
    bins = padded_target // 2 + 1
    spectrum = spectrum[:bins] if bins <= len(spectrum) else np.pad(spectrum, (0, bins - len(spectrum)))
    return (np.fft.irfft(spectrum, padded_target)[:target] * (padded_target / padded)).astype(np.float32)


def speak(text, voice, speed, pitch, warp=1.0):
    """Speech with its silent ends cut off and its loudest tenth of a second at an RMS of 0.1. `warp` above 1 shortens
    the vocal tract: the clip is played faster, spoken slower to make up for it."""
    arguments = ["espeak-ng", "-v", voice, "-s", str(round(speed / warp)), "-p", str(pitch), "--stdout", text]
    path = cache_folder() / (hashlib.sha256(repr((arguments, warp)).encode()).hexdigest()[:24] + ".npy")
    if path.exists():
        return np.load(path)
    sound = subprocess.run(arguments, check=True, capture_output=True).stdout
    samples = np.frombuffer(sound[44 : 44 + (len(sound) - 44) // 2 * 2], "<i2").astype(np.float32) / 32768
    samples = level(trim(resample(samples, ESPEAK_RATE * warp, RATE)))
    np.save(path, samples)
    return samples


def trim(samples, threshold=0.01):
    loud = np.flatnonzero(np.abs(samples) > threshold * max(1e-6, np.abs(samples).max()))
    return samples[loud[0] : loud[-1] + 1] if len(loud) else samples


def level(samples, rms=0.1):
    block = RATE // 10
    powers = [np.mean(samples[i : i + block] ** 2) for i in range(0, max(1, len(samples) - block // 2), block)]
    return (samples * (rms / np.sqrt(max(1e-10, max(powers))))).astype(np.float32)


def random_voice(rng, voices):
    """A random speaker: arguments of `speak` after the text."""
    accent = ACCENTS[rng.integers(len(ACCENTS))]
    variant = voices[rng.integers(len(voices))]
    return {
        "voice": f"{accent}+{variant}",
        "speed": int(rng.integers(115, 200)),
        "pitch": int(rng.integers(15, 85)),
        "warp": float(np.round(rng.uniform(0.9, 1.12), 2)),
    }


def phrases(split, count, seed):
    """`count` spoken sentences of the given split ('train' or 'held-out': other voices and other sentences)."""
    rng = np.random.default_rng(seed)
    texts, voices = (TRAIN_SENTENCES, TRAIN_VOICES) if split == "train" else (HELD_OUT_SENTENCES, HELD_OUT_VOICES)
    return [speak(texts[i % len(texts)], **random_voice(rng, voices)) for i in range(count)]


def shaped_noise(rng, length, gain_of):
    """White noise filtered by a gain that is a function of the frequency in Hz."""
    spectrum = np.fft.rfft(rng.standard_normal(length))
    spectrum *= gain_of(np.maximum(np.fft.rfftfreq(length, 1 / RATE), 20.0))
    return np.fft.irfft(spectrum, length)


def coloured(rng, length):
    exponent = rng.uniform(0.0, 1.2)
    return shaped_noise(rng, length, lambda f: f**-exponent)


def fan(rng, length):
    centre, width = rng.uniform(120, 1500), rng.uniform(0.3, 1.0)
    noise = shaped_noise(rng, length, lambda f: f**-0.6 * (1 + 4 * np.exp(-((np.log(f / centre) / width) ** 2))))
    return noise * (1 + 0.3 * np.sin(2 * np.pi * rng.uniform(2, 12) * np.arange(length) / RATE))


def wind(rng, length):
    edge = rng.uniform(150, 600)
    noise = shaped_noise(rng, length, lambda f: 1 / (1 + (f / edge) ** 2))
    gusts = np.interp(np.arange(length), np.linspace(0, length, 12), rng.uniform(0.1, 1.0, 12))
    return noise * gusts


def engine(rng, length):
    wobble = np.interp(np.arange(length), np.linspace(0, length, 8), rng.uniform(0.85, 1.15, 8))
    phase = 2 * np.pi * np.cumsum(rng.uniform(25, 110) * wobble) / RATE
    tone = sum(rng.uniform(0.2, 1.0) / k * np.sin(k * phase + rng.uniform(0, 6)) for k in range(1, 12))
    return tone + 0.5 * coloured(rng, length)


def hum(rng, length):
    base = rng.choice([50.0, 60.0])
    time = np.arange(length) / RATE
    tone = sum(rng.uniform(0.1, 1.0) / k * np.sin(2 * np.pi * base * k * time + rng.uniform(0, 6)) for k in range(1, 8))
    return tone + 0.2 * rng.standard_normal(length)


def clicks(rng, length):
    result = 0.01 * rng.standard_normal(length)
    for start in rng.integers(0, length, max(1, int(length / RATE * rng.uniform(3, 14)))):
        size = min(int(rng.integers(60, 600)), length - start)
        decay = np.exp(-np.arange(size) / (size / 5 + 1))
        result[start : start + size] += rng.uniform(0.2, 1.0) * decay * rng.standard_normal(size)
    return result


def rain(rng, length):
    drops = (rng.random(length) < rng.uniform(0.002, 0.02)) * rng.standard_normal(length)
    kernel = np.exp(-np.arange(64) / rng.uniform(3, 12))
    return np.convolve(drops, kernel)[:length] + 0.1 * coloured(rng, length)


def tones(rng, length):
    """A melody of short chords, the usual false alarm of a voice detector."""
    result = 0.003 * rng.standard_normal(length)
    position = 0
    while position < length:
        size = min(int(rng.uniform(0.1, 0.7) * RATE), length - position)
        time = np.arange(size) / RATE
        root = 110 * 2 ** rng.uniform(0, 3.5)
        chord = sum(np.sin(2 * np.pi * root * ratio * time) for ratio in rng.choice([1, 1.25, 1.5, 2, 3], 2))
        result[position : position + size] += rng.uniform(0.2, 1) * chord * np.exp(-time * rng.uniform(0, 8))
        position += size
    return result


NOISES = [coloured, fan, wind, engine, hum, clicks, rain, tones]


def noise(rng, length, kinds=NOISES):
    """A random noise of random kind with an RMS of 0.1."""
    samples = kinds[rng.integers(len(kinds))](rng, length)
    return (0.1 * samples / np.sqrt(np.mean(samples**2) + 1e-12)).astype(np.float32)


def reverberate(rng, samples):
    """A small room: the direct sound and an exponentially decaying tail."""
    decay = rng.uniform(0.03, 0.12) * RATE
    size = int(decay * 4)
    response = rng.standard_normal(size) * np.exp(-np.arange(size) / decay) * rng.uniform(0.02, 0.08)
    response[0] = 1.0
    total = len(samples) + size
    wet = np.fft.irfft(np.fft.rfft(samples, total) * np.fft.rfft(response, total), total)
    return wet[: len(samples)].astype(np.float32)


def mel(frequency):
    return 2595 * np.log10(1 + frequency / 700)


def mel_spaced(low, high, count):
    points = np.linspace(mel(low), mel(high), count)
    return 700 * (10 ** (points / 2595) - 1)


def windowed_dft(frequencies, size):
    """Rows of windowed cosines, then rows of windowed sines; a full-scale sine gives a power near 1."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(size) + 0.5) / size)
    phase = 2 * np.pi * np.outer(frequencies, np.arange(size)) / RATE
    scale = 2 / window.sum()
    return torch.tensor(scale * np.concatenate([np.cos(phase), np.sin(phase)]) * window, dtype=torch.float32)


def band_matrix(frequencies, edges):
    """Triangular bands [len(edges) - 2, len(frequencies)] over the given frequencies, each summing to 1."""
    rows = []
    for low, centre, high in zip(edges[:-2], edges[1:-1], edges[2:]):
        row = np.minimum((frequencies - low) / (centre - low), (high - frequencies) / (high - centre)).clip(0)
        if row.sum() == 0:
            row[np.argmin(np.abs(frequencies - centre))] = 1
        rows.append(row / row.sum())
    return torch.tensor(np.array(rows), dtype=torch.float32)


def read_wav(name):
    """A bundled WAV file as float32 samples, full scale 1."""
    with wave.open(str(INPUTS / name), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def write_wav(path, samples):
    """Writes float samples as 16 bits."""
    values = np.round(np.clip(samples, -1, 32767 / 32768) * 32768).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(values.tobytes())


def to_pcm_grid(samples):
    """Rounds to 16-bit steps: what a WAV file would hold."""
    return (np.round(np.clip(samples, -1, 32767 / 32768) * 32768) / 32768).astype(np.float32)
