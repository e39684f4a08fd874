"""sign: a 32x32 picture -> which of twelve traffic signs it shows; a small residual network with a dynamic batch."""

import numpy as np
import torch
from torch import nn

import common
from common_pictures import read_picture
from common_signs import LABELS, SIZE, dataset


class Residual(nn.Module):
    """Two 3x3 convolutions beside an identity, or beside a 1x1 convolution where size or width change."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        same = before == after and stride == 1
        self.skip = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        )

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.skip(x))


class Sign(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 48, 2), nn.MaxPool2d(2))
        self.classify = nn.Linear(48 * 2 * 2, len(LABELS))

    def logits(self, picture):
        return self.classify(torch.flatten(self.body(self.stem(picture)), 1))

    def forward(self, picture):
        return torch.softmax(self.logits(picture), dim=1)


def batches(seed, size, pictures, labels):
    rng = np.random.default_rng(seed)

    def next_batch(_):
        pick = rng.integers(0, len(pictures), size)
        return torch.from_numpy(pictures[pick]), torch.from_numpy(labels[pick])

    return next_batch


def loss_of(model, batch):
    pictures, labels = batch
    return nn.functional.cross_entropy(model.logits(pictures), labels, label_smoothing=0.05)


def evaluate(model, pictures, labels):
    with torch.no_grad():
        guesses = model(torch.from_numpy(pictures)).argmax(1).numpy()
    per_class = [np.mean(guesses[labels == label] == label) for label in range(len(LABELS))]
    print("per class", dict(zip(LABELS, np.round(per_class, 3))))
    return {"accuracy": np.mean(guesses == labels), "worst_class_accuracy": min(per_class)}


def main():
    steps = common.parse_steps(2500)
    common.set_seed(4)
    pictures, labels = dataset(41, 12000, "train")
    test_pictures, test_labels = dataset(42, 2400, "held-out")
    model = Sign()
    minutes = common.train(model, steps, batches(43, 64, pictures, labels), loss_of)
    spec = common.ModelSpec(
        "sign",
        {"picture": (1, 3, SIZE, SIZE)},
        ["probabilities"],
        dynamic_axes={"picture": {0: "batch"}, "probabilities": {0: "batch"}},
        labels=LABELS,
    )
    cases = {name: [{"picture": read_picture(f"{name}.png")}] for name in ("sign-stop", "sign-speed-50")}
    cases["batch3"] = [{"picture": test_pictures[5:8]}]
    cases["rand0"] = [{"picture": common.coarse_noise(44, (1, 3, SIZE, SIZE))}]
    common.publish(spec, model, cases, evaluate(model, test_pictures, test_labels), minutes)


if __name__ == "__main__":
    main()
