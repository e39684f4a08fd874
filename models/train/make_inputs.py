"""Makes the bundled inputs in models/inputs: WAV files (16 kHz, mono, 16 bits) and PNG pictures, and expected.json,
which says what each of them holds: the class, the seconds in which somebody speaks, the boxes in pixels. All come from
the held-out side: voices, sentences, fonts and sizes no model was trained on.
"""

import json

import numpy as np
from PIL import Image

import common_digits
import common_scenes
import common_shapes
import common_signs
from common import INPUTS
from common_keywords import one_second
from common_sound import RATE, fan, noise, speak, tones, wind, write_wav

VOICES = {
    "yes": ("en-us+Annie", 150, 55),
    "stop": ("en-gb+Mike", 140, 45),
    "left": ("en-us+f4", 145, 50),
    "go": ("en-gb+m7", 130, 40),
}
PHRASES = {
    "a strong wind blew across the empty beach": ("en-gb+quincy", 150, 50),
    "could you pass me the salt and the pepper": ("en-us+Annie", 155, 55),
}
SIGNS = ["stop", "yield", "speed-50", "turn-left"]
DIGITS = ["4071", "2938"]
SHAPE_SEEDS = {"shapes-1": 804, "shapes-2": 811}
SCENES = {"scene-day": (0, 2), "scene-night": (1, 4)}


def write_input(name, samples):
    write_wav(INPUTS / f"{name}.wav", samples)


def said(text, table):
    voice, speed, pitch = table[text]
    return speak(text, voice, speed, pitch)


def background(rng, kind, seconds, rms):
    samples = kind(rng, int(seconds * RATE))
    return (rms * samples / np.sqrt(np.mean(samples**2))).astype(np.float32)


def keyword_clips(rng):
    for word in ("yes", "stop", "left"):
        write_input(f"keyword-{word}", one_second(rng, said(word, VOICES), noise(rng, RATE), 25, 0.8))
        yield f"keyword-{word}.wav", {"keyword": word}


def at(stream, seconds, samples):
    """Adds a clip to the stream; returns the seconds at which it starts and ends."""
    start = int(seconds * RATE)
    part = samples[: len(stream) - start]
    stream[start : start + len(part)] += part
    return [seconds, round(seconds + len(part) / RATE, 2)]


def streams(rng):
    """A phrase in wind, a fan alone, and four seconds with a word, a melody, a phrase and a word over a soft fan."""
    first, second = PHRASES
    windy = background(rng, wind, 3, 0.06)
    yield "phrase-in-noise.wav", {"voice-activity": {"speech": [at(windy, 0.3, said(first, PHRASES))]}}
    write_input("phrase-in-noise", windy)
    yield "noise.wav", {"voice-activity": {"speech": []}}
    write_input("noise", background(rng, fan, 1.5, 0.05))
    mixture = background(rng, fan, 4, 0.02)
    at(mixture, 0.9, background(rng, tones, 0.5, 0.05))
    speech = [
        at(mixture, 0.2, said("yes", VOICES)),
        at(mixture, 1.6, said(second, PHRASES)[: int(1.5 * RATE)]),
        at(mixture, 3.4, said("go", VOICES)),
    ]
    yield "mixture.wav", {"voice-activity": {"speech": speech}}
    write_input("mixture", mixture)


def write_picture(name, values):
    Image.fromarray(values).save(INPUTS / f"{name}.png", optimize=True)


def pictures(rng):
    for label in SIGNS:
        write_picture(f"sign-{label}", common_signs.render(rng, common_signs.LABELS.index(label), "held-out"))
        yield f"sign-{label}.png", {"sign": label}
    for digits in DIGITS:
        write_picture(f"digits-{digits}", common_digits.render(rng, [int(d) for d in digits], "held-out"))
        yield f"digits-{digits}.png", {"digit-reader": digits}
    for name, seed in SHAPE_SEEDS.items():
        picture, shapes = common_shapes.render(np.random.default_rng(seed), "held-out")
        write_picture(name, picture)
        boxes = [
            {"kind": common_shapes.LABELS[label], "box": [round(float(v), 1) for v in box]} for label, box in shapes
        ]
        yield f"{name}.png", {"shape-detector": boxes}
    for name, (night, houses) in SCENES.items():
        write_picture(name, common_scenes.render(rng, night, houses, "held-out"))
        yield f"{name}.png", {"scene-head": {"light": common_scenes.LIGHT_LABELS[night], "houses": houses}}


def main():
    INPUTS.mkdir(exist_ok=True)
    expected = dict(keyword_clips(np.random.default_rng(81)))
    expected.update(streams(np.random.default_rng(82)))
    expected.update(pictures(np.random.default_rng(83)))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(content)}" for name, content in expected.items())
    (INPUTS / "expected.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
