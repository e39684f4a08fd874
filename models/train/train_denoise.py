"""denoise: 16 ms of noisy sound and four states -> 16 ms of sound with the noise reduced, 8 ms late.

Each frame of 256 samples is two hops of 128. A convolution with fixed windowed DFT filters turns them into two spectra,
an LSTM over band levels decides the gain of every bin, and a transposed convolution with the same filters (the
square-root Hann window makes analysis and synthesis equal) returns to samples. The states are the last 128 input
samples, the half-finished last 128 output samples and the LSTM's hidden and cell state.
"""

import numpy as np
import torch
from torch import nn

import common
from common_sound import RATE, band_matrix, mel_spaced, phrases, read_wav, to_pcm_grid
from common_streams import FRAME, frames_of, stream

WINDOW, HOP = 256, 128
BINS, BANDS, HIDDEN = WINDOW // 2 + 1, 32, 64
SEQUENCE = 2 * RATE // FRAME  # frames per training sequence, 2 s


def dft_filters():
    """[2 * BINS, 1, WINDOW]: cosines and sines under a square-root Hann window."""
    window = np.sin(np.pi * (np.arange(WINDOW) + 0.5) / WINDOW)
    phase = 2 * np.pi * np.outer(np.arange(BINS), np.arange(WINDOW)) / WINDOW
    return torch.tensor(np.concatenate([np.cos(phase), np.sin(phase)]) * window, dtype=torch.float32).unsqueeze(1)


def inverse_scale():
    """What each bin of the spectrum is worth in the inverse transform."""
    scale = np.full(BINS, 2.0 / WINDOW)
    scale[[0, -1]] = 1.0 / WINDOW
    return torch.tensor(scale, dtype=torch.float32)


class Denoise(nn.Module):
    def __init__(self):
        super().__init__()
        frequencies = np.arange(BINS) * RATE / WINDOW
        self.register_buffer("filters", dft_filters())
        self.register_buffer("scale", inverse_scale().view(1, BINS, 1))
        self.register_buffer("bands", band_matrix(frequencies, mel_spaced(40, 7990, BANDS + 2)).unsqueeze(0))
        self.recur = nn.LSTM(BANDS, HIDDEN)
        self.gains = nn.Linear(HIDDEN, BINS)

    def enhance(self, samples, hidden, cell):
        """Samples [N, HOP + T * HOP] -> spectra [N, 2 * BINS, T] ready for synthesis, hidden and cell state."""
        real, imaginary = torch.split(nn.functional.conv1d(samples.unsqueeze(1), self.filters, stride=HOP), BINS, dim=1)
        power = real * real + imaginary * imaginary
        levels = (torch.log(torch.clamp(torch.matmul(self.bands, power), min=1e-5)) + 3.0) / 4.0
        steps, (hidden, cell) = self.recur(levels.permute(2, 0, 1), (hidden, cell))
        gains = torch.sigmoid(self.gains(steps)).permute(1, 2, 0) * self.scale
        return torch.cat([real * gains, imaginary * gains], dim=1), hidden, cell

    def forward(self, frame, history_in, overlap_in, hidden_in, cell_in):
        samples = torch.cat([history_in, frame], dim=1)
        spectra, hidden_out, cell_out = self.enhance(samples, hidden_in, cell_in)
        output = nn.functional.conv_transpose1d(spectra, self.filters, stride=HOP).squeeze(1)
        head, middle, overlap_out = torch.split(output, HOP, dim=1)
        enhanced = torch.cat([head + overlap_in, middle], dim=1)
        return enhanced, frame[:, FRAME - HOP :], overlap_out, hidden_out, cell_out


def enhance_whole(model, noisy):
    """A whole clip [N, T * FRAME] at once, without the delay."""
    state = torch.zeros(1, noisy.shape[0], HIDDEN)
    spectra, _, _ = model.enhance(nn.functional.pad(noisy, (HOP, HOP)), state, state)
    return overlap_add(model, spectra)[:, HOP:-HOP]


def overlap_add(model, spectra):
    """The transposed convolution as a matrix product and one shifted addition, which trains much faster."""
    windows = nn.functional.conv1d(spectra, model.filters.permute(2, 0, 1))
    first, second = torch.split(windows, HOP, dim=1)
    hops = nn.functional.pad(first, (0, 1)) + nn.functional.pad(second, (1, 0))
    return hops.transpose(1, 2).reshape(len(spectra), -1)


def streams(seed, count, split, spoken, lowest=-5, highest=15):
    rng = np.random.default_rng(seed)
    voices = phrases(split, spoken, seed)
    pairs = [stream(rng, voices, SEQUENCE * FRAME, lowest, highest) for _ in range(count)]
    pairs = [pair for pair in pairs if np.mean(pair[1] ** 2) > 1e-6]
    return tuple(torch.from_numpy(np.stack(part)) for part in zip(*pairs))


def batches(seed, size, noisy, clean):
    rng = np.random.default_rng(seed)

    def next_batch(_):
        pick = torch.from_numpy(rng.integers(0, len(noisy), size))
        return noisy[pick], clean[pick]

    return next_batch


def si_snr(estimate, target):
    """Scale-invariant signal-to-noise ratio in dB, per clip."""
    estimate = estimate - estimate.mean(1, keepdim=True)
    target = target - target.mean(1, keepdim=True)
    projected = (estimate * target).sum(1, keepdim=True) / (target.pow(2).sum(1, keepdim=True) + 1e-8) * target
    return 10 * torch.log10((projected.pow(2).sum(1) + 1e-8) / ((estimate - projected).pow(2).sum(1) + 1e-8))


def compressed(samples):
    spectrum = torch.stft(samples, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True)
    return (spectrum.real**2 + spectrum.imag**2 + 1e-6) ** 0.15


def loss_of(model, batch):
    """SI-SNR in units of 10 dB plus the distance of compressed magnitudes, which also counts in the pauses."""
    noisy, clean = batch
    output = enhance_whole(model, noisy)
    return -si_snr(output, clean).mean() / 10 + 4 * (compressed(output) - compressed(clean)).pow(2).mean()


def evaluate(model, noisy, clean):
    with torch.no_grad():
        before, after = si_snr(noisy, clean), si_snr(enhance_whole(model, noisy), clean)
    return {
        "si_snr_noisy_db": before.mean(),
        "si_snr_enhanced_db": after.mean(),
        "si_snr_gain_db": (after - before).mean(),
    }


def check_streaming(model, noisy):
    """Frame by frame must give what the whole clip gives, HOP samples later."""
    shapes = [(1, HOP), (1, HOP), (1, 1, HIDDEN), (1, 1, HIDDEN)]
    state, pieces = [torch.zeros(shape) for shape in shapes], []
    with torch.no_grad():
        for start in range(0, noisy.shape[1], FRAME):
            piece, *state = model(noisy[:, start : start + FRAME], *state)
            pieces.append(piece)
        difference = (torch.cat(pieces, 1)[:, HOP:] - enhance_whole(model, noisy)[:, :-HOP]).abs().max()
    assert difference < 1e-5, f"streaming differs from the whole clip by {difference}"


def reference_cases():
    sweep = to_pcm_grid(0.3 * np.sin(np.arange(RATE) ** 2 / 9000.0))
    return {
        "mixture": frames_of(read_wav("mixture.wav"), 20),
        "sweep": frames_of(sweep, 6),
        "silence": frames_of(0 * sweep, 3),
    }


def main():
    steps = common.parse_steps(2000)
    common.set_seed(3)
    model = Denoise()
    noisy, clean = streams(31, 900, "train", 400)
    test_noisy, test_clean = streams(32, 120, "held-out", 100)
    minutes = common.train(model, steps, batches(33, 16, noisy, clean), loss_of)
    check_streaming(model, test_noisy[:1])
    spec = common.ModelSpec(
        "denoise",
        {
            "frame": (1, FRAME),
            "history_in": (1, HOP),
            "overlap_in": (1, HOP),
            "hidden_in": (1, 1, HIDDEN),
            "cell_in": (1, 1, HIDDEN),
        },
        ["enhanced", "history_out", "overlap_out", "hidden_out", "cell_out"],
        states={f"{name}_in": f"{name}_out" for name in ("history", "overlap", "hidden", "cell")},
    )
    common.publish(spec, model, reference_cases(), evaluate(model, test_noisy, test_clean), minutes)


if __name__ == "__main__":
    main()
