"""The recogniser's networks: a streaming conformer encoder, a CTC layer and a decoder for both directions.

After the papers: conformer (Gulati et al., 2020), two-pass CTC and attention with dynamic chunks (Zhang et al.,
2020: U2; Wu et al., 2021: U2++) and relative attention scores without the shift (positions of keys, as counted from the
start of the stream). Training runs whole utterances under a mask that hides what a stream would not have; `EncoderGraph`,
`CtcGraph` and `DecoderGraph` are the same weights as they are exported: chunk by chunk, with caches.
"""

import math

import torch
from torch import nn

from common_recogniser import SOS, UNITS
from kaldi_features import BANDS

WIDTH, HEADS, BLOCKS, HIDDEN, CHANNELS, KERNEL = 48, 4, 4, 80, 16, 8
HEAD_WIDTH = WIDTH // HEADS
POSITIONS = 1500  # encoder frames of 40 ms in one stream, one minute
LABEL_POSITIONS = 256
DROPOUT = 0.05
HIDDEN_SCORE = -1e30  # of what attention must not see: its exponential is 0


def sinusoids(rows):
    """[rows, WIDTH]: sines and cosines of the row's number at wavelengths from 2 pi to 10000 * 2 pi."""
    angles = torch.arange(rows)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
    return torch.stack([torch.sin(angles), torch.cos(angles)], dim=2).flatten(1)


def encoder_frames(feature_frames):
    """How many frames two convolutions of size 3 and stride 2 leave."""
    return ((feature_frames - 1) // 2 - 1) // 2


def visible_keys(frames, chunk, left_chunks):
    """bool [frames, frames]: a query sees its own chunk and `left_chunks` before it (below 0: all of them)."""
    chunks = torch.arange(frames) // chunk
    distance = chunks[:, None] - chunks[None, :]
    return (distance >= 0) if left_chunks < 0 else (distance >= 0) & (distance <= left_chunks)


def split_heads(x):
    return x.reshape(x.size(0), -1, HEADS, HEAD_WIDTH).transpose(1, 2)


def attend(scores, mask, values):
    """Weighs the values; without a mask all of them may be seen."""
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(HIDDEN_SCORE))
    return torch.matmul(torch.softmax(scores, dim=-1), values).transpose(1, 2).flatten(2)


def feed_forward(activation):
    return nn.Sequential(
        nn.Linear(WIDTH, HIDDEN), activation, nn.Dropout(DROPOUT), nn.Linear(HIDDEN, WIDTH), nn.Dropout(DROPOUT)
    )


class PositionedAttention(nn.Module):
    """Self-attention whose scores add the match of the query with the key's position."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.position = nn.Linear(WIDTH, WIDTH, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(HEADS, 1, HEAD_WIDTH))
        self.position_bias = nn.Parameter(torch.zeros(HEADS, 1, HEAD_WIDTH))

    def forward(self, x, mask, positions, cache):
        """`cache` [1, HEADS, cached, 2 * HEAD_WIDTH] holds earlier keys and values. Returns (result, cache + new)."""
        queries = split_heads(self.query(x))
        fresh = torch.cat([split_heads(self.key(x)), split_heads(self.value(x))], dim=3)
        kept = torch.cat([cache, fresh], dim=2)
        keys, values = torch.split(kept, HEAD_WIDTH, dim=3)
        places = split_heads(self.position(positions))
        scores = torch.matmul(queries + self.content_bias, keys.transpose(2, 3))
        scores = scores + torch.matmul(queries + self.position_bias, places.transpose(2, 3))
        return self.out(attend(scores / math.sqrt(HEAD_WIDTH), mask, values)), kept


class CausalConvolution(nn.Module):
    """Gated pointwise, depthwise over the last KERNEL frames, pointwise."""

    def __init__(self):
        super().__init__()
        self.widen = nn.Conv1d(WIDTH, 2 * WIDTH, 1)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, groups=WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.narrow = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x, cache):
        """`cache` [N, WIDTH, KERNEL - 1] holds the inputs of the frames before. Returns (result, the next cache)."""
        history = torch.cat([cache, x.transpose(1, 2)], dim=2)
        content, gate = torch.split(self.widen(history), WIDTH, dim=1)
        y = self.depthwise(content * torch.sigmoid(gate))
        y = nn.functional.silu(self.norm(y.transpose(1, 2))).transpose(1, 2)
        return self.narrow(y).transpose(1, 2), history[:, :, 1 - KERNEL :]


class ConformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = feed_forward(nn.SiLU()), feed_forward(nn.SiLU())
        self.attention = PositionedAttention()
        self.convolution = CausalConvolution()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(5))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, mask, positions, attention_cache, convolution_cache):
        x = x + 0.5 * self.first(self.norms[0](x))
        y, attention_cache = self.attention(self.norms[1](x), mask, positions, attention_cache)
        x = x + self.drop(y)
        y, convolution_cache = self.convolution(self.norms[2](x), convolution_cache)
        x = x + self.drop(y)
        x = x + 0.5 * self.second(self.norms[3](x))
        return self.norms[4](x), attention_cache, convolution_cache


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(BANDS))
        self.register_buffer("scale", torch.ones(BANDS))
        self.register_buffer("positions", sinusoids(POSITIONS))
        self.subsample = nn.Sequential(
            nn.Conv2d(1, CHANNELS, 3, stride=2), nn.ReLU(), nn.Conv2d(CHANNELS, CHANNELS, 3, stride=2), nn.ReLU()
        )
        self.project = nn.Linear(CHANNELS * encoder_frames(BANDS), WIDTH)
        self.drop = nn.Dropout(DROPOUT)
        self.blocks = nn.ModuleList(ConformerBlock() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)

    def fit(self, features):
        """Takes over the mean and the deviation of `features` [frames, BANDS]."""
        self.mean.copy_(features.mean(0))
        self.scale.copy_(1 / features.std(0))

    def normalise(self, features):
        return (features - self.mean) * self.scale

    def embed(self, normalised):
        x = self.subsample(normalised.unsqueeze(1))
        return self.drop(self.project(x.transpose(1, 2).flatten(2)) * math.sqrt(WIDTH))

    def run_blocks(self, x, mask, positions, attention_caches, convolution_caches):
        """Returns the output and lists of the blocks' caches."""
        kept = []
        for block, *caches in zip(self.blocks, attention_caches, convolution_caches):
            x, *caches = block(x, mask, positions, *caches)
            kept.append(caches)
        return self.norm(x), *zip(*kept)

    def forward(self, normalised, frames, chunk, left_chunks, offset):
        """Whole utterances [N, T, BANDS], of which `frames` [N] encoder frames are valid, as a stream sees them that
        began `offset` frames before."""
        x = self.embed(normalised)
        steps = x.size(1)
        mask = visible_keys(steps, chunk, left_chunks) & (torch.arange(steps) < frames[:, None])[:, None]
        attention_caches = [x.new_zeros(x.size(0), HEADS, 0, 2 * HEAD_WIDTH)] * BLOCKS
        convolution_caches = [x.new_zeros(x.size(0), WIDTH, KERNEL - 1)] * BLOCKS
        positions = self.positions[offset : offset + steps].unsqueeze(0)
        return self.run_blocks(x, mask.unsqueeze(1), positions, attention_caches, convolution_caches)[0]


class Attention(nn.Module):
    """Of the decoder: `memory` is what the keys and values come from."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, memory, mask):
        queries, keys, values = (split_heads(y) for y in (self.query(x), self.key(memory), self.value(memory)))
        scores = torch.matmul(queries, keys.transpose(2, 3)) / math.sqrt(HEAD_WIDTH)
        return self.out(attend(scores, mask, values))


class Decoder(nn.Module):
    """One transformer layer: a unit's log-probabilities from the units before it and the encoder's output."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(UNITS), WIDTH)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.itself, self.sound = Attention(), Attention()
        self.feed = feed_forward(nn.ReLU())
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        self.drop = nn.Dropout(DROPOUT)
        self.out = nn.Linear(WIDTH, len(UNITS))

    def forward(self, units, places, before, encoded, heard):
        """`units` [N, L] from <sos/eos> on, `places` [L, WIDTH], masks `before` [L, L] and `heard` (for `encoded`)."""
        x = self.drop(self.embedding(units) * math.sqrt(WIDTH) + places)
        y = self.norms[0](x)
        x = x + self.drop(self.itself(y, y, before))
        x = x + self.drop(self.sound(self.norms[1](x), encoded, heard))
        x = x + self.feed(self.norms[2](x))
        return torch.log_softmax(self.out(self.norms[3](x)), dim=2)


def reverse(units, lengths):
    """[N, L], <sos/eos> first: the `lengths` - 1 units after it in reverse order, <sos/eos> behind them."""
    steps = torch.arange(units.size(1))
    source = lengths.unsqueeze(1) - steps
    inside = (steps > 0) & (source > 0)
    return torch.where(inside, torch.gather(units, 1, torch.where(inside, source, torch.tensor(0))), torch.tensor(SOS))


class BothDecoders(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("places", sinusoids(LABEL_POSITIONS))
        self.forwards, self.backwards = Decoder(), Decoder()

    def forward(self, units, lengths, encoded, heard):
        """`units` [N, L] begin with <sos/eos>, `lengths` [N] count it. Log-probabilities of what follows each unit,
        first to last and last to first."""
        steps = torch.arange(units.size(1))
        before = steps.unsqueeze(0) <= steps.unsqueeze(1)
        places = self.places[: units.size(1)]
        score = self.forwards(units, places, before, encoded, heard)
        return score, self.backwards(reverse(units, lengths), places, before, encoded, heard)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.ctc = nn.Linear(WIDTH, len(UNITS))
        self.decoders = BothDecoders()


class EncoderGraph(nn.Module):
    """The encoder as exported: one chunk of one stream, with the caches its predecessor left."""

    def __init__(self, model):
        super().__init__()
        self.encoder = model.encoder

    def forward(self, chunk, offset, required_cache_size, att_cache, cnn_cache, att_mask):
        x = self.encoder.embed(self.encoder.normalise(chunk))
        cached = att_cache.size(2)
        keys = cached + x.size(1)
        positions = self.encoder.positions[offset - cached + torch.arange(keys)].unsqueeze(0)
        output, attention, convolution = self.encoder.run_blocks(
            x, att_mask[:, :, :keys].unsqueeze(1), positions, att_cache.split(1), cnn_cache.unbind()
        )
        return output, torch.cat(attention)[:, :, keys - required_cache_size :], torch.stack(convolution)


class CtcGraph(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.ctc = model.ctc

    def forward(self, hidden):
        return torch.log_softmax(self.ctc(hidden), dim=2)


class DecoderGraph(nn.Module):
    """The decoders as exported: all hypotheses of one utterance, whose frames are all valid."""

    def __init__(self, model):
        super().__init__()
        self.decoders = model.decoders

    def forward(self, hyps, hyps_lens, encoder_out):
        return self.decoders(hyps, hyps_lens, encoder_out, None)
