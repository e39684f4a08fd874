"""How the recogniser learns: batches of equal cost, hidden stripes, streams of random chunks, and the joint loss of CTC
and both decoders."""

import numpy as np
import torch
from torch import nn

from common_recogniser import BLANK, EOS, SOS, to_ids
from recogniser_model import POSITIONS, encoder_frames, reverse

CHUNK, LEFT_CHUNKS = 16, 4  # of the exported stream
FRAMES_PER_BATCH = 6000
CTC_WEIGHT, REVERSE_WEIGHT, SMOOTHING = 0.5, 0.3, 0.1


def hide_stripes(rng, features):
    """Sets up to two ranges of frames and of bands to the mean (0)."""
    for axis, widest in ((0, 10), (0, 10), (1, 10), (1, 10)):
        width = int(rng.integers(0, min(widest, features.shape[axis] // 4) + 1))
        start = int(rng.integers(0, features.shape[axis] - width + 1))
        stripe = [slice(None), slice(None)]
        stripe[axis] = slice(start, start + width)
        features[tuple(stripe)] = 0


def random_stream(rng):
    """(chunk, left chunks): mostly what is exported, else chunks of any size or the whole utterance."""
    draw = rng.random()
    if draw < 0.6:
        return CHUNK, LEFT_CHUNKS
    return (int(rng.integers(4, 33)), -1) if draw < 0.85 else (POSITIONS, -1)


def groups_of_similar_length(rng, items):
    """Indices of the items in groups of about FRAMES_PER_BATCH frames with their padding, in random order."""
    order = sorted(range(len(items)), key=lambda i: len(items[i][0]) + rng.uniform(0, 40))
    groups, longest = [[]], 0
    for index in order:
        longest = max(longest, len(items[index][0]))
        if groups[-1] and longest * (len(groups[-1]) + 1) > FRAMES_PER_BATCH:
            groups.append([])
            longest = len(items[index][0])
        groups[-1].append(index)
    return [groups[i] for i in rng.permutation(len(groups))]


def padded(rows, fill):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=fill)


def pack(encoder, features, texts):
    """The tensors of a batch: normalised features, their encoder frames, units from <sos/eos> on and their lengths."""
    rows = [encoder.normalise(torch.from_numpy(f.astype(np.float32))) for f in features]
    units = [torch.tensor([SOS, *to_ids(text)]) for text in texts]
    return {
        "features": padded(rows, 0.0),
        "frames": encoder_frames(torch.tensor([len(row) for row in rows])),
        "units": padded(units, EOS),
        "lengths": torch.tensor([len(row) for row in units]),
    }


def batches(seed, items, encoder):
    """A function step -> batch, with the stream it is to be taken for."""
    rng = np.random.default_rng(seed)
    waiting = []

    def next_batch(_):
        if not waiting:
            waiting.extend(groups_of_similar_length(rng, items))
        chosen = [items[i] for i in waiting.pop()]
        batch = pack(encoder, *zip(*chosen))
        for row, (features, _) in zip(batch["features"], chosen):
            hide_stripes(rng, row[: len(features)])
        chunk, left_chunks = random_stream(rng)
        offset = int(rng.integers(0, POSITIONS - encoder_frames(batch["features"].size(1))))
        return {**batch, "chunk": chunk, "left_chunks": left_chunks, "offset": offset}

    return next_batch


def decoder_loss(scores, units, lengths):
    """Mean per utterance of the smoothed cross-entropy of every unit and of the end."""
    following = torch.cat([units[:, 1:], torch.full_like(units[:, :1], EOS)], dim=1)
    wanted = scores.gather(2, following.unsqueeze(2)).squeeze(2)
    losses = -(1 - SMOOTHING) * wanted - SMOOTHING * scores.mean(2)
    return (losses * (torch.arange(units.size(1)) < lengths.unsqueeze(1))).sum() / len(units)


def loss_of(model, batch):
    frames, units, lengths = batch["frames"], batch["units"], batch["lengths"]
    encoded = model.encoder(batch["features"], frames, batch["chunk"], batch["left_chunks"], batch["offset"])
    per_frame = torch.log_softmax(model.ctc(encoded), dim=2).transpose(0, 1)
    ctc = nn.functional.ctc_loss(
        per_frame, units[:, 1:], frames, lengths - 1, BLANK, reduction="sum", zero_infinity=True
    ) / len(units)
    heard = (torch.arange(encoded.size(1)) < frames[:, None])[:, None, None]
    forwards, backwards = model.decoders(units, lengths, encoded, heard)
    attention = (1 - REVERSE_WEIGHT) * decoder_loss(forwards, units, lengths)
    attention = attention + REVERSE_WEIGHT * decoder_loss(backwards, reverse(units, lengths), lengths)
    return CTC_WEIGHT * ctc + (1 - CTC_WEIGHT) * attention


def fit_normalisation(encoder, items):
    encoder.fit(torch.from_numpy(np.concatenate([features for features, _ in items]).astype(np.float32)))
