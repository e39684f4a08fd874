"""What the recogniser hears: digit strings and commands, spoken by espeak-ng, with pauses, rooms and noises."""

import hashlib
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from common_sound import (
    ACCENTS,
    HELD_OUT_VOICES,
    RATE,
    TRAIN_VOICES,
    cache_folder,
    noise,
    random_voice,
    reverberate,
    speak,
)
from kaldi_features import filter_bank

DIGITS = "zero one two three four five six seven eight nine".split()
COMMANDS = [
    "turn on the light",
    "turn off the light",
    "open the door",
    "close the door",
    "play music",
    "stop",
    "volume up",
    "volume down",
    "go left",
    "go right",
    "what time is it",
    "help me",
]
BLANK, UNKNOWN = 0, 1
SPACE = "\u2581"
LETTERS = sorted(set("".join(DIGITS + COMMANDS)) - {" "})
UNITS = ["<blank>", "<unk>", *LETTERS, SPACE, "<sos/eos>"]
SOS = EOS = len(UNITS) - 1
IDS = {unit: index for index, unit in enumerate(UNITS)}

LONGEST_DIGITS = 7
SHARE_OF_DIGITS = 0.6
SHARE_OF_PLAIN_VOICES = 0.1  # an accent without a variant
SHARE_OF_PAUSED = 0.25  # digits read as a list, with a pause after each
SHARE_WITHOUT_SPEECH = 0.03
SHARE_JOINED = 0.2  # two utterances with a pause between them
SHARE_REVERBERANT = 0.25


def to_ids(text):
    return [IDS[SPACE if character == " " else character] for character in text]


def to_text(ids):
    """As the decoder's text: special units say nothing, words are separated by one space."""
    symbols = "".join(UNITS[i] for i in ids if UNITS[i] not in ("<blank>", "<unk>", "<sos/eos>"))
    return " ".join(symbols.replace(SPACE, " ").split())


def random_text(rng):
    if rng.random() >= SHARE_OF_DIGITS:
        return COMMANDS[rng.integers(len(COMMANDS))]
    return " ".join(DIGITS[d] for d in rng.integers(0, 10, rng.integers(1, LONGEST_DIGITS + 1)))


def random_speaker(rng, split):
    """A speaker of the split ('train' or 'held-out'). espeak-ng's plain voices belong to the training side."""
    speaker = random_voice(rng, TRAIN_VOICES if split == "train" else HELD_OUT_VOICES)
    if split == "train" and rng.random() < SHARE_OF_PLAIN_VOICES:
        speaker["voice"] = ACCENTS[rng.integers(len(ACCENTS))]
    return speaker


def spoken(rng, split):
    """(samples, text) of one utterance without any background."""
    text = random_text(rng)
    paused = text.split()[0] in DIGITS and rng.random() < SHARE_OF_PAUSED
    return speak(text.replace(" ", ", ") if paused else text, **random_speaker(rng, split)), text


def silence(rng, shortest, longest):
    return np.zeros(int(rng.uniform(shortest, longest) * RATE), np.float32)


def utterance(rng, split, lowest_snr):
    """(samples, text): one or two utterances with silence around them, in a room, in noise, at a random level."""
    if rng.random() < SHARE_WITHOUT_SPEECH:
        speech, text = silence(rng, 0.5, 2.5), ""
    else:
        speech, text = spoken(rng, split)
        if rng.random() < SHARE_JOINED:
            more, words = spoken(rng, split)
            speech, text = np.concatenate([speech, silence(rng, 0.1, 1.2), more]), f"{text} {words}"
    samples = np.concatenate([silence(rng, 0.05, 0.6), speech, silence(rng, 0.1, 0.7)])
    if rng.random() < SHARE_REVERBERANT:
        samples = reverberate(rng, samples)
    samples = samples + noise(rng, len(samples)) * 10 ** (-rng.uniform(lowest_snr, 55) / 20)
    return (samples * 10 ** rng.uniform(-1.0, 0.4)).clip(-1, 1).astype(np.float32), text


def part_of_corpus(split, lowest_snr, seed, count):
    rng = np.random.default_rng(seed)
    items = [utterance(rng, split, lowest_snr) for _ in range(count)]
    return [(filter_bank(samples).astype(np.float16), text) for samples, text in items]


def corpus(split, count, seed, lowest_snr=10.0, workers=1, part=250):
    """`count` pairs (features as float16, text). The same for any number of workers; kept in the cache."""
    key = hashlib.sha256(repr(("recogniser", 1, UNITS, split, count, seed, lowest_snr, part)).encode()).hexdigest()
    path = cache_folder() / f"recogniser-{key[:24]}.npz"
    if not path.exists():
        sizes = [min(part, count - start) for start in range(0, count, part)]
        seeds = [(seed, index) for index in range(len(sizes))]
        with ProcessPoolExecutor(workers) as pool:
            parts = list(pool.map(partial(part_of_corpus, split, lowest_snr), seeds, sizes))
        features, texts = zip(*[item for items in parts for item in items])
        lengths = np.array([len(f) for f in features])
        np.savez(path, features=np.concatenate(features), lengths=lengths, texts=np.array(texts))
    with np.load(path) as stored:
        features = np.split(stored["features"], np.cumsum(stored["lengths"])[:-1])
        return list(zip(features, stored["texts"].tolist()))
