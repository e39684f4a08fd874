"""Writes everything that is kept of a trained recogniser to models/recogniser: the three graphs, the units, references
of single graphs, sounds with their texts and what decoding them gives."""

import json

import numpy as np
import torch

from common import MODELS, write_onnx
from common_recogniser import EOS, SOS, UNITS
from common_sound import RATE, fan, reverberate, speak, write_wav
from kaldi_features import BANDS, filter_bank
from recogniser_decode import (
    CACHED,
    RIGHT_CONTEXT,
    SUBSAMPLING,
    WINDOW,
    PrefixSearch,
    call,
    decode,
    empty_caches,
    encoder_inputs,
    hypotheses,
    stream,
)
from recogniser_model import BLOCKS, HEADS, KERNEL, WIDTH, CtcGraph, DecoderGraph, EncoderGraph
from recogniser_training import CHUNK, LEFT_CHUNKS, REVERSE_WEIGHT

FOLDER = MODELS / "recogniser"
METADATA = {
    "output_dir": "recogniser",
    "batch": 1,
    "chunk_size": CHUNK,
    "left_chunks": LEFT_CHUNKS,
    "reverse_weight": REVERSE_WEIGHT,
    "output_size": WIDTH,
    "num_blocks": BLOCKS,
    "cnn_module_kernel": KERNEL,
    "head": HEADS,
    "feature_size": BANDS,
    "vocab_size": len(UNITS),
    "decoding_window": WINDOW,
    "encoder": "conformer",
    "decoder": "bitransformer",
    "subsampling_rate": SUBSAMPLING,
    "right_context": RIGHT_CONTEXT,
    "sos_symbol": SOS,
    "eos_symbol": EOS,
    "is_bidirectional_decoder": 1,
}
ENCODER_OUTPUTS = ["output", "r_att_cache", "r_cnn_cache"]
DYNAMIC_AXES = {
    "encoder": {
        "chunk": {1: "T"},
        "att_cache": {2: "T_CACHE"},
        "att_mask": {2: "T_ADD_T_CACHE"},
        "output": {1: "T_OUT"},
        "r_att_cache": {2: "R_T_CACHE"},
    },
    "ctc": {"hidden": {1: "T"}, "probs": {1: "T"}},
    "decoder": {
        "hyps": {0: "NBEST", 1: "L"},
        "hyps_lens": {0: "NBEST"},
        "encoder_out": {1: "T"},
        "score": {0: "NBEST", 1: "L"},
        "r_score": {0: "NBEST", 1: "L"},
    },
}

# Held-out voices: (text, voice, speed, pitch), several of them with a pause between.
SOUNDS = {
    "recogniser-1": [("turn on the light", "en-us+Annie", 160, 50)],
    "recogniser-2": [("nine four two six", "en-gb+m7", 165, 40)],
    "recogniser-3": [("what time is it", "en-us+f4", 165, 55)],
    "recogniser-4": [("zero one seven five eight", "en-gb+Mike", 170, 45)],
    "recogniser-5": [("volume up", "en-us+quincy", 165, 50), ("three", "en-us+quincy", 150, 50)],
}
PAUSE = 0.5  # seconds
LONG_ENOUGH = "recogniser-4"  # three chunks, of which the last is short


def export_graphs(model):
    features = np.zeros((WINDOW, BANDS), np.float32)
    units, lengths = hypotheses([(2, 3), (4,), ()])
    encoded = np.zeros((1, CHUNK, WIDTH), np.float32)
    examples = {
        "encoder": {**next(encoder_inputs(features)), **empty_caches()},
        "ctc": {"hidden": encoded},
        "decoder": {"hyps": units, "hyps_lens": lengths, "encoder_out": encoded},
    }
    order = ("chunk", "offset", "required_cache_size", "att_cache", "cnn_cache", "att_mask")
    examples["encoder"] = {name: examples["encoder"][name] for name in order}
    outputs = {"encoder": ENCODER_OUTPUTS, "ctc": ["probs"], "decoder": ["score", "r_score"]}
    modules = {"encoder": EncoderGraph(model), "ctc": CtcGraph(model), "decoder": DecoderGraph(model)}
    for name, module in modules.items():
        tensors = {key: torch.from_numpy(np.asarray(array)) for key, array in examples[name].items()}
        metadata = {key: str(value) for key, value in METADATA.items()}
        write_onnx(
            FOLDER / f"{name}.onnx", module.eval(), tensors, outputs[name], DYNAMIC_AXES[name], metadata=metadata
        )


def test_sounds():
    """Name -> (samples, text): speech with a soft fan behind it, one in a room."""
    rng = np.random.default_rng(95)
    for name, parts in SOUNDS.items():
        speech = [speak(*part) for part in parts]
        gap = np.zeros(int(PAUSE * RATE), np.float32)
        spoken = np.concatenate([piece for part in speech for piece in (gap, part)][1:])
        samples = np.pad(spoken, (int(0.15 * RATE), int(0.25 * RATE)))
        if name == LONG_ENOUGH:
            samples = reverberate(rng, samples)
        background = fan(rng, len(samples))
        samples = samples + 0.002 * background / np.sqrt(np.mean(background**2))
        yield name, samples.astype(np.float32), " ".join(text for text, *_ in parts)


def write_reference(name, cases):
    """`cases` maps a case to (inputs, outputs), dicts of arrays; the format of models/reference."""
    tensors = {f"in.{k}.{case}": v for case, (inputs, _) in cases.items() for k, v in inputs.items()}
    tensors.update({f"out.{k}.{case}": v for case, (_, outputs) in cases.items() for k, v in outputs.items()})
    np.savez_compressed(FOLDER / "reference" / f"{name}.npz", **tensors)


def write_references(model, features):
    """Every chunk of one sound, and the rescoring of its hypotheses."""
    encoder, ctc, outputs, search = {}, {}, [], PrefixSearch()
    for index, (inputs, results, log_probabilities) in enumerate(stream(model, features)):
        encoder[f"chunk{index}"] = inputs, results
        ctc[f"chunk{index}"] = {"hidden": results["output"]}, {"probs": log_probabilities}
        outputs.append(results["output"])
        for frame in log_probabilities[0]:
            search.advance(frame)
    units, lengths = hypotheses([prefix for prefix, _ in search.beam])
    encoded = np.concatenate(outputs, axis=1)
    scores = dict(zip(("score", "r_score"), call(DecoderGraph(model), units, lengths, encoded)))
    write_reference("encoder", encoder)
    write_reference("ctc", ctc)
    write_reference("decoder", {"nbest": ({"hyps": units, "hyps_lens": lengths, "encoder_out": encoded}, scores)})


def write_units():
    lines = [f"{unit} {index}" for index, unit in enumerate(UNITS)]
    (FOLDER / "units.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def publish(model):
    """Returns the size of the three graphs."""
    for part in ("reference", "test"):
        (FOLDER / part).mkdir(parents=True, exist_ok=True)
    export_graphs(model)
    write_units()
    expected, texts = {}, []
    for name, samples, text in test_sounds():
        write_wav(FOLDER / "test" / f"{name}.wav", samples)
        features = filter_bank(samples)
        if name == LONG_ENOUGH:
            write_references(model, features)
        decoded = decode(model, features, (0, REVERSE_WEIGHT))
        expected[name] = {"reference_text": text, "samples": len(samples), **decoded}
        texts.append(f"{name} {text}")
    (FOLDER / "test" / "text").write_text("\n".join(texts) + "\n")
    (FOLDER / "test" / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    return sum((FOLDER / f"{name}.onnx").stat().st_size for name in DYNAMIC_AXES)
