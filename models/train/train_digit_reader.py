"""digit-reader: a grey strip of 32x96 with four digits -> the probabilities of each digit, one output per place."""

import numpy as np
import torch
from torch import nn

import common
from common_pictures import read_picture
from common_digits import DIGITS, HEIGHT, LABELS, WIDTH, dataset


def convolution(before, after, size, activation, groups=1):
    return [nn.Conv2d(before, after, size, 1, size // 2, groups=groups), nn.BatchNorm2d(after), activation]


class DigitReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            *convolution(1, 16, 5, nn.PReLU(16)),
            nn.AvgPool2d(2),
            *convolution(16, 32, 3, nn.PReLU(32)),
            nn.AvgPool2d(2),
            *convolution(32, 48, 3, nn.LeakyReLU(0.1), groups=4),
            *convolution(48, 48, 1, nn.Hardswish()),
            nn.AvgPool2d(2),
            *convolution(48, 32, 3, nn.Hardswish()),
        )
        self.hidden = nn.Linear(32 * (HEIGHT // 8) * (WIDTH // 8 // DIGITS), 40)
        self.classify = nn.Linear(40, len(LABELS))

    def logits(self, strip):
        """[N, DIGITS, 10]: each quarter of the strip's feature map is classified with the same weights, seeing its
        neighbours through the convolutions."""
        features = self.body(strip * 2.0 - 1.0)
        quarters = features.reshape(-1, 32, HEIGHT // 8, DIGITS, WIDTH // 8 // DIGITS)
        places = quarters.permute(0, 3, 1, 2, 4).reshape(-1, DIGITS, self.hidden.in_features)
        return self.classify(nn.functional.hardswish(self.hidden(places)))

    def forward(self, strip):
        probabilities = torch.softmax(self.logits(strip), dim=2)
        return tuple(place.squeeze(1) for place in torch.split(probabilities, 1, dim=1))


def batches(seed, size, strips, digits):
    rng = np.random.default_rng(seed)

    def next_batch(_):
        pick = rng.integers(0, len(strips), size)
        return torch.from_numpy(strips[pick]), torch.from_numpy(digits[pick])

    return next_batch


def loss_of(model, batch):
    strips, digits = batch
    return nn.functional.cross_entropy(model.logits(strips).reshape(-1, 10), digits.reshape(-1))


def evaluate(model, strips, digits):
    with torch.no_grad():
        guesses = torch.stack(model(torch.from_numpy(strips)), 1).argmax(2).numpy()
    return {"digit_accuracy": np.mean(guesses == digits), "strip_accuracy": np.mean((guesses == digits).all(1))}


def main():
    steps = common.parse_steps(1200)
    common.set_seed(6)
    strips, digits = dataset(61, 8000, "train")
    test_strips, test_digits = dataset(62, 1000, "held-out")
    model = DigitReader()
    minutes = common.train(model, steps, batches(63, 32, strips, digits), loss_of, learning_rate=2e-3)
    places = [f"digit{place}" for place in range(DIGITS)]
    spec = common.ModelSpec(
        "digit-reader", {"strip": (1, 1, HEIGHT, WIDTH)}, places, labels=LABELS, keep_batch_norm=False
    )
    cases = {name: [{"strip": read_picture(f"{name}.png")}] for name in ("digits-4071", "digits-2938")}
    cases["rand0"] = [{"strip": common.coarse_noise(64, (1, 1, HEIGHT, WIDTH))}]
    common.publish(spec, model, cases, evaluate(model, test_strips, test_digits), minutes)


if __name__ == "__main__":
    main()
