"""Decoding in Python, as the reference for the engine's: streaming chunks, greedy and prefix beam search over CTC's
probabilities, and rescoring by both decoders."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from common import run
from common_recogniser import BLANK, EOS, SOS, to_text
from recogniser_model import BLOCKS, HEAD_WIDTH, HEADS, KERNEL, WIDTH, CtcGraph, DecoderGraph, EncoderGraph
from recogniser_training import CHUNK, LEFT_CHUNKS

SUBSAMPLING, RIGHT_CONTEXT = 4, 6
CACHED = CHUNK * LEFT_CHUNKS
WINDOW = (CHUNK - 1) * SUBSAMPLING + RIGHT_CONTEXT + 1  # feature frames of a whole chunk
OVERLAP = WINDOW - CHUNK * SUBSAMPLING  # of them those that the next chunk begins with
BEAM = 10
RESCORED_CTC_WEIGHT = 0.5
NEVER = -math.inf


def chunks_of(features):
    """The feature frames of every chunk; a rest too short for one encoder frame is dropped."""
    starts = range(0, len(features), CHUNK * SUBSAMPLING)
    pieces = (features[start : start + WINDOW] for start in starts)
    return [piece for piece in pieces if len(piece) > RIGHT_CONTEXT]


def encoder_inputs(features):
    """The inputs of the encoder's graph, chunk by chunk, without the caches: these are the last chunk's outputs."""
    offset = CACHED
    for index, piece in enumerate(chunks_of(features)):
        mask = np.ones((1, 1, CACHED + CHUNK), bool)
        mask[:, :, : max(0, LEFT_CHUNKS - index) * CHUNK] = False
        yield {
            "chunk": piece[None],
            "offset": np.array(offset, np.int64),
            "required_cache_size": np.array(CACHED, np.int64),
            "att_mask": mask,
        }
        offset += CHUNK


def empty_caches():
    return {
        "att_cache": np.zeros((BLOCKS, HEADS, CACHED, 2 * HEAD_WIDTH), np.float32),
        "cnn_cache": np.zeros((BLOCKS, 1, WIDTH, KERNEL - 1), np.float32),
    }


def call(graph, *arrays):
    return [result.numpy() for result in run(graph, [torch.from_numpy(np.asarray(array)) for array in arrays])]


def stream(model, features):
    """Yields (inputs, outputs, log-probabilities) of every chunk, the arrays of inputs and outputs by tensor name."""
    encoder, ctc, caches = EncoderGraph(model), CtcGraph(model), empty_caches()
    for inputs in encoder_inputs(features):
        inputs = {**inputs, **caches}
        names = ("chunk", "offset", "required_cache_size", "att_cache", "cnn_cache", "att_mask")
        outputs = dict(zip(("output", "r_att_cache", "r_cnn_cache"), call(encoder, *(inputs[n] for n in names))))
        caches = {"att_cache": outputs["r_att_cache"], "cnn_cache": outputs["r_cnn_cache"]}
        yield inputs, outputs, call(ctc, outputs["output"])[0]


def greedy(log_probabilities):
    best = log_probabilities.argmax(1)
    kept = best[np.flatnonzero(np.diff(best, prepend=-1))]
    return [int(unit) for unit in kept if unit != BLANK]


@dataclass
class Score:
    """Of one prefix: log-probabilities of the alignments that end in a blank and in the last unit; of the best single
    alignment of each kind the same, with the frames of the units."""

    blank: float = NEVER
    unit: float = NEVER
    best_blank: float = NEVER
    best_unit: float = NEVER
    last: float = NEVER  # of the last unit, if this frame has set its time
    blank_times: tuple = ()
    unit_times: tuple = ()

    def total(self):
        return np.logaddexp(self.blank, self.unit)

    def best(self):
        return max(self.best_blank, self.best_unit)

    def times(self):
        return self.blank_times if self.best_blank > self.best_unit else self.unit_times


class PrefixSearch:
    """CTC prefix beam search; `advance` takes one frame, `beam` is the sorted list of (units, Score)."""

    def __init__(self):
        self.beam = [((), Score(blank=0.0, best_blank=0.0, best_unit=0.0))]
        self.frame = 0

    def advance(self, log_probabilities):
        following = {}
        for unit in np.argsort(-log_probabilities, kind="stable")[:BEAM]:
            for prefix, score in self.beam:
                self.extend(following, prefix, score, int(unit), float(log_probabilities[unit]))
        self.beam = sorted(following.items(), key=lambda item: -item[1].total())[:BEAM]
        self.frame += 1

    def extend(self, following, prefix, score, unit, log_probability):
        if unit == BLANK:
            same = following.setdefault(prefix, Score())
            same.blank = np.logaddexp(same.blank, score.total() + log_probability)
            if score.best() + log_probability > same.best_blank:
                same.best_blank, same.blank_times = score.best() + log_probability, score.times()
        elif prefix and unit == prefix[-1]:
            self.repeat(following.setdefault(prefix, Score()), score, log_probability)
            self.append(
                following.setdefault((*prefix, unit), Score()),
                score.blank,
                score.best_blank,
                score.blank_times,
                log_probability,
            )
        else:
            self.append(
                following.setdefault((*prefix, unit), Score()),
                score.total(),
                score.best(),
                score.times(),
                log_probability,
            )

    def repeat(self, same, score, log_probability):
        same.unit = np.logaddexp(same.unit, score.unit + log_probability)
        if score.best_unit + log_probability <= same.best_unit:
            return
        same.best_unit = score.best_unit + log_probability
        if log_probability > same.last:  # its time moves on with every repetition
            same.last, same.unit_times = log_probability, (*score.unit_times[:-1], self.frame)

    def append(self, longer, total, best, times, log_probability):
        longer.unit = np.logaddexp(longer.unit, total + log_probability)
        if best + log_probability > longer.best_unit:
            longer.best_unit, longer.last = best + log_probability, log_probability
            longer.unit_times = (*times, self.frame)


def hypotheses(prefixes):
    """The decoder's `hyps` and `hyps_lens`."""
    lengths = np.array([len(prefix) + 1 for prefix in prefixes], np.int64)
    table = np.zeros((len(prefixes), lengths.max()), np.int64)
    for row, prefix in zip(table, prefixes):
        row[: len(prefix) + 1] = (SOS, *prefix)
    return table, lengths


def rescore(model, beam, encoded, reverse_weight):
    """[(units, final score)] sorted, of the prefixes of a beam search over the encoder's output [1, T, WIDTH]."""
    prefixes = [prefix for prefix, _ in beam]
    forwards, backwards = call(DecoderGraph(model), *hypotheses(prefixes), encoded)

    def of(scores, units):
        return sum(float(scores[i, unit]) for i, unit in enumerate((*units, EOS)))

    results = []
    for row, (prefix, score) in enumerate(beam):
        attention = (1 - reverse_weight) * of(forwards[row], prefix)
        attention += reverse_weight * of(backwards[row], prefix[::-1]) if reverse_weight > 0 else 0.0
        results.append((prefix, attention + RESCORED_CTC_WEIGHT * float(score.total())))
    return sorted(results, key=lambda item: -item[1])


def ranked(results):
    """[(units, score)] for a JSON file."""
    return [{"text": to_text(units), "score": round(float(score), 4)} for units, score in results]


def decode(model, features, reverse_weights):
    """Everything the engine's decoding is compared with, for one utterance as a stream."""
    search, outputs, frames, partials = PrefixSearch(), [], [], []
    for _, results, log_probabilities in stream(model, features):
        outputs.append(results["output"])
        frames.extend(log_probabilities[0])
        for frame in log_probabilities[0]:
            search.advance(frame)
        partials.append(to_text(search.beam[0][0]))
    nbest = {"ctc_prefix": ranked((units, score.total()) for units, score in search.beam)}
    for weight in reverse_weights:
        rescored = rescore(model, search.beam, np.concatenate(outputs, axis=1), weight)
        nbest[f"rescored_rw{str(weight).replace('.', '')}"] = ranked(rescored)
    return {
        "frames": len(features),
        "chunks": len(outputs),
        "encoder_frames": len(frames),
        "partials": partials,
        "greedy": to_text(greedy(np.stack(frames))),
        "times": [int(time) for time in search.beam[0][1].times()],
        **{name: results[0] for name, results in nbest.items()},
        "nbest": nbest,
    }


def edits(found, wanted):
    """Levenshtein's distance between two strings."""
    row = list(range(len(wanted) + 1))
    for i, character in enumerate(found, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(wanted, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (character != other))
    return row[-1]
