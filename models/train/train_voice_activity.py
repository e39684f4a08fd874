"""voice-activity: 16 ms of sound and a recurrent state -> the probability that somebody speaks, and the new state."""

import numpy as np
import torch
from torch import nn

import common
from common_sound import RATE, band_matrix, mel_spaced, phrases, read_wav, to_pcm_grid, windowed_dft
from common_streams import FRAME, frames_of, speech_frames, stream

BINS, BANDS, HIDDEN = 64, 24, 40
SEQUENCE = 192  # frames per training sequence, 3 s


class VoiceActivity(nn.Module):
    def __init__(self):
        super().__init__()
        frequencies = mel_spaced(80, 7600, BINS)
        self.register_buffer("filters", windowed_dft(frequencies, FRAME).t().contiguous())
        self.register_buffer("bands", band_matrix(frequencies, mel_spaced(80, 7600, BANDS + 2)).t().contiguous())
        self.register_buffer("floor", torch.tensor(1e-7))
        self.encode = nn.Linear(BANDS, 32)
        self.recur = nn.GRU(32, HIDDEN)
        self.decide = nn.Linear(HIDDEN, 1)

    def features(self, frames):
        """[N, FRAME] -> [N, BANDS], roughly within -2..2."""
        real, imaginary = torch.split(torch.matmul(frames, self.filters), BINS, dim=-1)
        power = torch.sqrt(real * real + imaginary * imaginary + 1e-10)
        bands = torch.maximum(torch.matmul(power * power, self.bands), self.floor)
        return (torch.log(bands) + 10.0) / 4.0

    def logits(self, features, state):
        """Features [time, N, BANDS] -> logits [time, N, 1] and the state after the last frame."""
        hidden, state = self.recur(torch.tanh(self.encode(features)), state)
        return self.decide(hidden), state

    def forward(self, frame, state_in):
        logits, state_out = self.logits(self.features(frame).unsqueeze(0), state_in)
        return torch.sigmoid(logits.squeeze(0)), state_out


def streams(seed, count, split, spoken):
    """`count` sequences: waves [count, samples] and speech flags [count, frames]."""
    rng = np.random.default_rng(seed)
    voices = phrases(split, spoken, seed)
    pairs = [stream(rng, voices, SEQUENCE * FRAME, -3, 35, speechless=0.15) for _ in range(count)]
    waves = np.stack([noisy for noisy, _ in pairs])
    return torch.from_numpy(waves), torch.from_numpy(np.stack([speech_frames(clean) for _, clean in pairs]))


def featurise(model, waves):
    with torch.no_grad():
        return torch.stack([model.features(wave.view(SEQUENCE, FRAME)) for wave in waves])


def batches(seed, size, features, flags):
    rng = np.random.default_rng(seed)

    def next_batch(_):
        pick = torch.from_numpy(rng.integers(0, len(features), size))
        gain = torch.from_numpy(rng.normal(0, 0.2, (size, 1, 1)).astype(np.float32))
        return (features[pick] + gain).transpose(0, 1), flags[pick].t()

    return next_batch


def loss_of(model, batch):
    features, flags = batch
    logits, _ = model.logits(features, torch.zeros(1, features.shape[1], HIDDEN))
    return nn.functional.binary_cross_entropy_with_logits(logits.squeeze(2), flags)


def area_under_curve(scores, flags):
    """Probability that a random speech frame scores above a random other frame."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positives = flags.sum()
    return (ranks[flags > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(flags) - positives))


def evaluate(model, waves, flags):
    features = featurise(model, waves).transpose(0, 1)
    with torch.no_grad():
        logits, _ = model.logits(features, torch.zeros(1, features.shape[1], HIDDEN))
    scores, truth = torch.sigmoid(logits).squeeze(2).t().reshape(-1).numpy(), flags.reshape(-1).numpy()
    return {"auc": area_under_curve(scores, truth), "frame_accuracy_at_0.5": np.mean((scores > 0.5) == (truth > 0.5))}


def reference_cases():
    sweep = to_pcm_grid(0.3 * np.sin(np.arange(RATE) ** 2 / 9000.0))
    return {
        "mixture": frames_of(read_wav("mixture.wav"), 32),
        "noise": frames_of(read_wav("noise.wav"), 6),
        "sweep": frames_of(sweep, 6),
    }


def main():
    steps = common.parse_steps(2500)
    common.set_seed(2)
    model = VoiceActivity()
    waves, flags = streams(21, 900, "train", 400)
    test_waves, test_flags = streams(22, 120, "held-out", 100)
    next_batch = batches(23, 24, featurise(model, waves), flags)
    minutes = common.train(model, steps, next_batch, loss_of)
    spec = common.ModelSpec(
        "voice-activity",
        {"frame": (1, FRAME), "state_in": (1, 1, HIDDEN)},
        ["speech", "state_out"],
        states={"state_in": "state_out"},
        labels=["speech"],
    )
    common.publish(spec, model, reference_cases(), evaluate(model, test_waves, test_flags), minutes)


if __name__ == "__main__":
    main()
