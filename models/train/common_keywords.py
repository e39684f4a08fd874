"""The keyword set: words, clips of one second, and the mixing that turns them into training or held-out examples."""

import numpy as np

from common_sound import HELD_OUT_VOICES, NOISES, RATE, TRAIN_VOICES, noise, random_voice, reverberate, speak

KEYWORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
LABELS = KEYWORDS + ["unknown", "silence"]
UNKNOWN, SILENCE = 10, 11

OTHER_WORDS = (
    "house tree water music paper window garden seven nine three table orange summer winter river mountain coffee "
    "bread sugar doctor village animal finger yellow purple silver number letter morning evening market bottle ladder "
    "rabbit camera lemon puzzle hello thanks maybe never always under over behind open close help wait turn run walk "
    "slow fast bad good warm cold lamp radio bird cat dog fish eight four one two five six zero back again cup nose "
    "own soft step low light loft town"
).split()
HELD_OUT_WORDS = (
    "forest pencil monday butter engine castle winter cloud basket hammer tiger violin ocean hundred follow sheila "
    "marvin happy visual learn wow bed"
).split()
CLIP = RATE


def spoken_words(split, per_word, seed):
    """Lists of (samples, label) for keywords and other words of the split ('train' or 'held-out')."""
    rng = np.random.default_rng(seed)
    voices, others = (TRAIN_VOICES, OTHER_WORDS) if split == "train" else (HELD_OUT_VOICES, HELD_OUT_WORDS)
    clips = [
        (speak(word, **random_voice(rng, voices)), label)
        for label, word in enumerate(KEYWORDS)
        for _ in range(per_word)
    ]
    unknown = [others[i % len(others)] for i in range(per_word * 3)]
    return clips + [(speak(word, **random_voice(rng, voices)), UNKNOWN) for word in unknown]


def noise_pool(seed, count=160, seconds=3):
    rng = np.random.default_rng(seed)
    return [noise(rng, seconds * RATE, [NOISES[i % len(NOISES)]]) for i in range(count)]


def crop(rng, samples, length):
    start = rng.integers(0, len(samples) - length + 1)
    return samples[start : start + length]


def one_second(rng, speech, background, snr_db, gain):
    """Speech at a random place in a second of background noise at the given ratio of their levels."""
    clip = crop(rng, background, CLIP) * 10 ** (-snr_db / 20)
    if speech is not None:
        speech = speech[:CLIP]
        start = rng.integers(0, CLIP - len(speech) + 1)
        clip[start : start + len(speech)] += speech
    return np.clip(clip * gain, -1, 1)


def random_example(rng, clips_by_label, pool, label, lowest_snr=3.0):
    """One random example of a class; background from almost none to `lowest_snr` dB."""
    snr = rng.uniform(lowest_snr, 45)
    gain = 10 ** rng.uniform(-0.9, 0.3)
    speech = None
    if label != SILENCE:
        choices = clips_by_label[label]
        speech = choices[rng.integers(len(choices))]
        if rng.random() < 0.25:
            speech = reverberate(rng, speech)
    return one_second(rng, speech, pool[rng.integers(len(pool))], snr, gain)


def group_by_label(clips):
    return {label: [samples for samples, other in clips if other == label] for label in range(UNKNOWN + 1)}
