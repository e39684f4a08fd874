"""recogniser: streaming speech recognition of digits and twelve commands, letter by letter, in three graphs (encoder,
ctc, decoder) with the interface of WeNet's streaming ONNX export.

Trained on speech of espeak-ng (`common_recogniser`). `--steps` shortens a trial run, `--weights` publishes the weights of
an earlier run again without training. Weights are kept in the cache every 500 steps.
"""

import argparse
import time

import numpy as np
import torch

import common
from common_recogniser import corpus, to_text
from common_sound import cache_folder
from recogniser_decode import PrefixSearch, edits, greedy, rescore
from recogniser_model import Recogniser
from recogniser_publish import publish
from recogniser_training import (
    CHUNK,
    LEFT_CHUNKS,
    REVERSE_WEIGHT,
    batches,
    fit_normalisation,
    loss_of,
    pack,
)

UTTERANCES, HELD_OUT = 9000, 400
FIRST_OFFSET = CHUNK * LEFT_CHUNKS


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=4000, help="training steps (default 4000)")
    parser.add_argument("--weights", help="publish these weights instead of training")
    return parser.parse_args()


def save(model, minutes, path):
    torch.save({"model": model.state_dict(), "minutes": minutes}, path)


def fitted(steps, path):
    """(model, minutes): trained from the start."""
    items = corpus("train", UTTERANCES, seed=91)
    model = Recogniser()
    fit_normalisation(model.encoder, items)
    start = time.process_time()

    def keep(step):
        if step % 500 == 0 or step == steps:
            save(model, (time.process_time() - start) / 60, path)

    minutes = common.train(model, steps, batches(93, items, model.encoder), loss_of, warm_up=400, after_step=keep)
    return model, minutes


def loaded(path):
    stored = torch.load(path)
    model = Recogniser()
    model.load_state_dict(stored["model"])
    return model.eval(), stored["minutes"]


def encode(model, features, text):
    """The encoder's output as a stream of chunks gives it, and CTC's log-probabilities."""
    batch = pack(model.encoder, [features], [text])
    with torch.no_grad():
        encoded = model.encoder(batch["features"], batch["frames"], CHUNK, LEFT_CHUNKS, FIRST_OFFSET)
        return encoded.numpy(), torch.log_softmax(model.ctc(encoded), dim=2)[0].numpy()


def error_rates(model, items):
    """Character errors per character, of the best path, of the prefix search and of its rescoring; and the share of
    utterances that rescoring gets wrong."""
    errors, wrong = np.zeros(3), 0
    for features, text in items:
        encoded, frames = encode(model, features, text)
        search = PrefixSearch()
        for frame in frames:
            search.advance(frame)
        rescored = to_text(rescore(model, search.beam, encoded, REVERSE_WEIGHT)[0][0])
        found = to_text(greedy(frames)), to_text(search.beam[0][0]), rescored
        errors += [edits(result, text) for result in found]
        wrong += rescored != text
    names = ("greedy", "prefix_search", "rescored")
    characters = sum(len(text) for _, text in items)
    rates = {f"character_error_rate_{name}": count / characters for name, count in zip(names, errors)}
    return {**rates, "utterances_wrong": wrong / len(items)}


def main():
    chosen = options()
    common.set_seed(9)
    path = cache_folder() / "recogniser.pt"
    model, minutes = loaded(chosen.weights) if chosen.weights else fitted(chosen.steps, path)
    scores = error_rates(model, corpus("held-out", HELD_OUT, seed=92))
    common.record_scores("recogniser", scores, minutes, publish(model))


if __name__ == "__main__":
    main()
