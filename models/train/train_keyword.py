"""keyword: one second of sound -> one of ten words, "unknown" or "silence" (log-probabilities).

The log-mel front end is part of the graph: two banks of fixed windowed DFT filters as one convolution, squares, mel
bands, logarithm, normalisation. Behind it stands a depthwise separable convolutional network.
"""

import numpy as np
import torch
from torch import nn

import common
from common_keywords import (
    CLIP,
    LABELS,
    SILENCE,
    UNKNOWN,
    group_by_label,
    noise_pool,
    one_second,
    random_example,
    spoken_words,
)
from common_sound import band_matrix, mel_spaced, read_wav, to_pcm_grid, windowed_dft

BINS, BANDS, WINDOW, HOP = 72, 32, 320, 320
EPSILON = 1e-7


class LogMel(nn.Module):
    """Waveform [N, samples] -> normalised log-mel picture [N, 1, BANDS, frames]; nothing in it is trained."""

    def __init__(self):
        super().__init__()
        frequencies = mel_spaced(60, 7700, BINS)
        self.register_buffer("filters", windowed_dft(frequencies, WINDOW).unsqueeze(1))
        self.register_buffer("bands", band_matrix(frequencies, mel_spaced(60, 7700, BANDS + 2)))
        self.register_buffer("mean", torch.zeros(1, BANDS, 1))
        self.register_buffer("scale", torch.ones(1, BANDS, 1))

    def log_bands(self, wave):
        spectrum = nn.functional.conv1d(wave.unsqueeze(1), self.filters, stride=HOP)
        real, imaginary = torch.split(spectrum, BINS, dim=1)
        power = real * real + imaginary * imaginary
        return torch.log(torch.clamp(torch.matmul(self.bands, power), min=EPSILON))

    def fit(self, wave):
        bands = self.log_bands(wave)
        self.mean.copy_(bands.mean((0, 2)).view(1, -1, 1))
        self.scale.copy_(1 / bands.std((0, 2)).view(1, -1, 1))

    def forward(self, wave):
        return ((self.log_bands(wave) - self.mean) * self.scale).unsqueeze(1)


def separable(channels, dilation):
    """Depthwise 3x3 and pointwise convolution, each with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels, channels, 3, padding=(1, dilation), dilation=(1, dilation), groups=channels, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    )


class Keyword(nn.Module):
    def __init__(self, channels=48):
        super().__init__()
        self.front = LogMel()
        self.stem = nn.Sequential(
            nn.Conv2d(1, channels, (8, 5), stride=2, padding=(3, 2), bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        self.body = nn.Sequential(*[separable(channels, dilation) for dilation in (1, 1, 2, 2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.1)
        self.classify = nn.Linear(channels, len(LABELS))

    def forward(self, wave):
        features = self.pool(self.body(self.stem(self.front(wave))))
        return torch.log_softmax(self.classify(self.drop(torch.flatten(features, 1))), dim=1)


def batches(seed, size, clips, pool):
    """A function step -> (waves, labels). Every class comes up equally often, "unknown" three times as often."""
    rng = np.random.default_rng(seed)
    classes = np.array(list(range(UNKNOWN)) + [UNKNOWN] * 3 + [SILENCE])

    def next_batch(_):
        labels = rng.choice(classes, size)
        waves = np.stack([random_example(rng, clips, pool, label) for label in labels]).astype(np.float32)
        return torch.from_numpy(waves), torch.from_numpy(labels)

    return next_batch


def loss_of(model, batch):
    waves, labels = batch
    log_probabilities = model(waves)
    smooth = -log_probabilities.mean(1)
    return (0.95 * nn.functional.nll_loss(log_probabilities, labels, reduction="none") + 0.05 * smooth).mean()


def accuracy(model, clips, pool, seed, snr_db=None):
    """(overall, per class) on one example per clip and 60 of silence; random backgrounds or one fixed SNR."""
    rng = np.random.default_rng(seed)
    hits, counts = np.zeros(len(LABELS)), np.zeros(len(LABELS))
    for speech, label in clips + [(None, SILENCE)] * 60:
        if snr_db is None:
            wave = random_example(rng, {label: [speech]}, pool, label, lowest_snr=5.0)
        else:
            wave = one_second(rng, speech, pool[rng.integers(len(pool))], snr_db, 1.0)
        with torch.no_grad():
            guess = model(torch.from_numpy(wave[None].astype(np.float32))).argmax(1).item()
        hits[label] += guess == label
        counts[label] += 1
    return hits.sum() / counts.sum(), hits / counts


def reference_cases():
    cases = {name: read_wav(f"{name}.wav") for name in ("keyword-yes", "keyword-stop", "noise")}
    cases["sweep"] = to_pcm_grid(0.05 * np.sin(np.arange(CLIP) ** 2 / 40000.0))
    return {name: [{"wave": wave[None, :CLIP]}] for name, wave in cases.items()}


def main():
    steps = common.parse_steps(2400)
    common.set_seed(1)
    train_clips, train_pool = spoken_words("train", 160, seed=11), noise_pool(12)
    test_clips, test_pool = spoken_words("held-out", 40, seed=13), noise_pool(14, 48)
    model = Keyword()
    next_batch = batches(15, 64, group_by_label(train_clips), train_pool)
    model.front.fit(torch.cat([next_batch(0)[0] for _ in range(4)]))
    minutes = common.train(model, steps, next_batch, loss_of)
    overall, per_class = accuracy(model, test_clips, test_pool, seed=16)
    clean, _ = accuracy(model, test_clips, test_pool, seed=16, snr_db=30)
    print("per class", dict(zip(LABELS, np.round(per_class, 3))))
    spec = common.ModelSpec("keyword", {"wave": (1, CLIP)}, ["log_probabilities"], labels=LABELS)
    scores = {"accuracy": overall, "accuracy_30_db_snr": clean, "worst_class_accuracy": per_class.min()}
    common.publish(spec, model, reference_cases(), scores, minutes)


if __name__ == "__main__":
    main()
