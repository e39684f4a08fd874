// How the operators of neural networks are drawn.
#include "ops/nn/attention/attention.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/lstm_q/lstm_q.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/norm/norm.h"
#include "ops/nn/planar_conv2d/planar_conv2d.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/nn/resize/resize.h"
#include "ops/nn/separable_conv2d/separable_conv2d.h"
#include "ops/nn/simple_rnn/simple_rnn.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/nn/softmax_q/softmax_q.h"
#include "ops/nn/svdf/svdf.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kI8 = ElementType::kI8;
constexpr ElementType kI16 = ElementType::kI16;
constexpr ElementType kI32 = ElementType::kI32;

/// Weights, then bias, multiplier or scale, and shift, as the three forms of linear operators want them.
template <typename P>
void linear_operands(Sampling& s, P& p, ElementType x, const std::vector<std::int64_t>& weights,
                     std::int64_t channels) {
  const bool integer = !is_float(x);
  const bool hybrid = x == kF32 && s.one_in(4);
  const TensorDesc w = dense_desc(hybrid || integer ? kI8 : x, weights);
  if (hybrid || integer) {
    s.constant(w, {-127.0, 127.0});
  } else {
    s.like(w, {-1.0, 1.0});
  }
  if (integer) {
    const bool wide = x == kI16;
    s.constant(dense_desc(wide && s.one_in(2) ? ElementType::kI64 : kI32, {channels}), {-1000.0, 1000.0});
    s.constant(dense_desc(kI32, {channels}), {1.1e9, 2.1e9});
    s.constant(dense_desc(kI32, {channels}), {-12.0, -5.0});
    p.input_zero_point = wide ? 0 : s.pick(-128, 127);
    p.output_zero_point = wide ? 0 : s.pick(-128, 127);
    return;
  }
  p.activation = s.activation();
  if (s.one_in(3)) {
    s.absent();
  } else {
    s.like(dense_desc(kF32, {channels}));
  }
  if (hybrid) s.constant(dense_desc(kF32, {s.one_in(2) ? 1 : channels}), {0.001, 0.02});
}

/// x of an operator on channels-last images.
TensorDesc image(Sampling& s) { return s.any(s.type({kF32, kI8, kI16}), 4, 4); }

template <typename P>
void window(Sampling& s, P& p) {
  p.stride_h = s.pick(1, s.one_in(3) ? 3 : 1);
  p.stride_w = s.pick(1, s.one_in(3) ? 3 : 1);
  p.dilation_h = s.pick(1, s.one_in(4) ? 2 : 1);
  p.dilation_w = s.pick(1, s.one_in(4) ? 2 : 1);
  p.pad_top = s.pick(0, 2);
  p.pad_left = s.pick(0, 2);
  p.pad_bottom = s.pick(0, 2);
  p.pad_right = s.pick(0, 2);
}

void conv2d(Sampling& s) {
  const TensorDesc x = image(s);
  const std::int64_t channels = x.dims[3];
  Conv2dParams p;
  window(s, p);
  if (s.one_in(3)) p.groups = s.one_of({2, 3, static_cast<std::int32_t>(std::max<std::int64_t>(channels, 1))});
  if (channels % p.groups != 0) p.groups = 1;
  const std::int64_t out = p.groups * s.pick(1, s.one_in(3) ? 17 : 5);
  linear_operands(s, p, x.type, {out, s.pick(1, 3), s.pick(1, 3), channels / p.groups}, out);
  s.set_params(p);
}

void conv_transpose2d(Sampling& s) {
  const TensorDesc x = image(s);
  ConvTranspose2dParams p;
  window(s, p);
  p.groups = x.dims[3] % 2 == 0 && s.one_in(3) ? 2 : 1;
  p.output_pad_h = s.pick(0, 1);
  const std::int64_t out = p.groups * s.pick(1, 5);
  const std::vector<std::int64_t> weights = {out, s.pick(1, 3), s.pick(1, 3), x.dims[3] / p.groups};
  if (x.type == kF32) {
    s.like(dense_desc(kF32, weights), {-1.0, 1.0});
    if (s.one_in(2)) s.like(dense_desc(kF32, {out}));
    p.activation = s.activation();
  } else {
    linear_operands(s, p, x.type, weights, out);
  }
  s.set_params(p);
}

void depthwise_conv2d(Sampling& s) {
  const TensorDesc x = image(s);
  Conv2dParams p;
  window(s, p);
  const std::int64_t out = x.dims[3] * s.pick(1, s.one_in(3) ? 3 : 1);
  linear_operands(s, p, x.type, {s.pick(1, 4), s.pick(1, 4), out}, out);
  s.set_params(p);
}

void planar_conv2d(Sampling& s) {
  const std::int64_t channels = s.pick(1, 5);
  s.like(dense_desc(kF32, {s.pick(1, 2), channels, s.pick(1, 12), s.pick(1, 40)}));
  Conv2dParams p;
  window(s, p);
  p.activation = s.activation();
  const std::int64_t out = s.pick(1, s.one_in(3) ? 70 : 20);
  s.like(dense_desc(kF32, {out, s.pick(1, 3), s.pick(1, 4), channels}), {-1.0, 1.0});
  if (s.one_in(2)) s.like(dense_desc(kF32, {out}));
  s.set_params(p);
}

void separable_conv2d(Sampling& s) {
  const TensorDesc x = image(s);
  SeparableConv2dParams p;
  window(s, p.depthwise);
  const std::int64_t middle = x.dims[3] * s.pick(1, s.one_in(4) ? 2 : 1);
  const std::int64_t out = s.pick(1, s.one_in(3) ? 20 : 5);
  const bool integer = !is_float(x.type);
  const auto weights = [&](const std::vector<std::int64_t>& dims) {
    if (integer) {
      s.constant(dense_desc(kI8, dims), {-127.0, 127.0});
    } else {
      s.like(dense_desc(x.type, dims), {-1.0, 1.0});
    }
  };
  const auto others = [&](std::int64_t channels) {
    if (integer) {
      s.constant(dense_desc(kI32, {channels}), {-1000.0, 1000.0});
      s.constant(dense_desc(kI32, {channels}), {1.1e9, 2.1e9});
      s.constant(dense_desc(kI32, {channels}), {-12.0, -5.0});
      return;
    }
    s.like(dense_desc(kF32, {channels}));
    s.absent();
    s.absent();
  };
  weights({s.pick(1, 4), s.pick(1, 4), middle});
  weights({out, 1, 1, middle});
  others(middle);
  others(out);
  if (!integer) {
    p.depthwise.activation = s.activation();
    p.activation = s.activation();
  } else if (x.type == kI8) {
    p.depthwise.input_zero_point = s.pick(-128, 127);
    p.depthwise.output_zero_point = s.pick(-128, 127);
    p.output_zero_point = s.pick(-128, 127);
  }
  s.set_params(p);
}

void matmul(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32, kI8, kI16}), 2, 4);
  MatmulParams p;
  p.transpose_a = x.type == kF32 ? s.pick(0, s.one_in(3) ? 1 : 0) : 0;
  p.transpose_b = s.pick(0, 1);
  const std::int64_t k = x.dims[x.rank - 1 - p.transpose_a];
  const std::int64_t n = s.pick(1, s.one_in(3) ? 33 : 9);
  std::vector<std::int64_t> dims =
      p.transpose_b != 0 ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n};
  if (s.one_in(3) && x.type == kF32) dims.insert(dims.begin(), x.dims, x.dims + x.rank - 2);
  linear_operands(s, p, x.type, dims, n);
  s.set_params(p);
}

/// Operands of recurrent operators: x [T,B,I], weights of `gates` gates, and what is optional.
template <typename P>
void recurrent(Sampling& s, P& p, std::int64_t gates, std::int64_t bias_gates, bool cell) {
  p.direction = s.enumerator<RnnDirection>();
  p.clip = s.one_in(3) ? s.real(0.5, 2.0) : 0.0F;
  const TensorDesc x = s.any(s.type({kF32}), 3, 3);
  const std::int64_t d = p.direction == RnnDirection::kBidirectional ? 2 : 1;
  const std::int64_t h = s.pick(1, 20);
  s.constant(dense_desc(kF32, {d, gates * h, x.dims[2]}), {-0.5, 0.5});
  s.constant(dense_desc(kF32, {d, gates * h, h}), {-0.5, 0.5});
  const auto optional = [&](const TensorDesc& desc) {
    if (s.one_in(2)) {
      s.absent();
    } else {
      s.like(desc);
    }
  };
  const TensorDesc bias = dense_desc(kF32, {d, bias_gates * h});
  if (s.one_in(4)) {
    optional(bias);
  } else {
    s.constant(bias, {-0.5, 0.5});
  }
  if (s.one_in(2)) {
    s.absent();
  } else {
    s.fresh(dense_desc(kI32, {x.dims[1]}), {0.0, static_cast<double>(x.dims[0])});
  }
  optional(dense_desc(kF32, {d, x.dims[1], h}));
  if (cell) optional(dense_desc(kF32, {d, x.dims[1], h}));
  if (cell) optional(dense_desc(kF32, {d, 3 * h}));
}

void gru(Sampling& s) {
  GruParams p{.linear_before_reset = s.pick(0, 1)};
  recurrent(s, p, 3, 6, false);
  s.set_params(p);
}

void simple_rnn(Sampling& s) {
  SimpleRnnParams p;
  recurrent(s, p, 1, 2, false);
  s.set_params(p);
}

void attention(Sampling& s) {
  const TensorDesc q = s.any(s.type({kF32}), 4, 4);
  AttentionParams p{.scale = s.real(0.1, 0.5),
                    .softcap = s.one_in(4) ? 3.0F : 0.0F,
                    .empty_rows_zero = 1,
                    .left = s.one_in(4) ? s.pick(0, 3) : -1,
                    .right = s.one_in(3) ? s.pick(0, 3) : -1,
                    .aligned_end = s.pick(0, 1),
                    .q_heads_last = s.pick(0, 1),
                    .k_heads_last = s.pick(0, 1),
                    .v_heads_last = s.pick(0, 1),
                    .y_heads_last = s.pick(0, 1)};
  const std::int64_t heads = q.dims[p.q_heads_last != 0 ? 2 : 1];
  const std::int64_t queries = q.dims[p.q_heads_last != 0 ? 1 : 2];
  const std::int64_t key_heads = s.one_in(2) ? 1 : heads;
  const std::int64_t keys = s.pick(1, 9);
  const auto operand = [&](std::int64_t width, bool heads_last) {
    s.like(heads_last ? dense_desc(kF32, {q.dims[0], keys, key_heads, width})
                      : dense_desc(kF32, {q.dims[0], key_heads, keys, width}));
  };
  operand(q.dims[3], p.k_heads_last != 0);
  operand(s.pick(1, 9), p.v_heads_last != 0);
  const TensorDesc scores = dense_desc(kF32, {q.dims[0], heads, queries, keys});
  if (s.one_in(2)) s.like(broadcastable(scores, s));
  if (s.operands.size() == 4 && s.one_in(2)) s.like(with_type(broadcastable(scores, s), ElementType::kBool));
  s.set_params(p);
}

void lstm(Sampling& s) {
  LstmParams p{.input_forget = s.one_in(4) ? 1 : 0};
  recurrent(s, p, 4, 8, true);
  s.set_params(p);
}

void norm(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32, ElementType::kF64}), 1, 4);
  NormParams p{.axes = s.axes(x), .epsilon = 1e-3F, .rms = s.pick(0, 1)};
  if (s.one_in(2)) s.like(broadcastable(x, s));
  if (s.operands.size() == 2 && s.one_in(2)) s.like(broadcastable(x, s));
  s.set_params(p);
}

void pool2d(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32, kI8, ElementType::kU8, kI16}), 4, 4);
  Pool2dParams p{.kind = s.enumerator<PoolKind>()};
  window(s, p);
  p.kernel_h = s.pick(1, 4);
  p.kernel_w = s.pick(1, 4);
  p.ceil_mode = s.pick(0, 1);
  p.count_include_pad = s.pick(0, 1);
  if (x.type == kF32) p.activation = s.activation();
  p.minimum = x.type == ElementType::kU8 ? 0 : -128;
  p.maximum = x.type == ElementType::kU8 ? 255 : 127;
  s.set_params(p);
}

void resize(Sampling& s) {
  ResizeParams p{.mode = s.enumerator<ResizeMode>(),
                 .coordinates = s.enumerator<ResizeCoordinates>(),
                 .nearest = s.enumerator<ResizeNearest>()};
  const TensorDesc x = p.mode == ResizeMode::kNearest ? s.any(1, 4) : s.any(s.type({kF32}), 1, 4);
  p.sizes.size = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    p.sizes.v[i] = x.dims[i] == 0 || s.one_in(2) ? x.dims[i] : s.pick(1, 2 * x.dims[i]);
    if (x.dims[i] != 0) p.scales[i] = static_cast<float>(p.sizes.v[i]) / static_cast<float>(x.dims[i]);
  }
  p.exclude_outside = p.mode == ResizeMode::kCubic ? s.pick(0, 1) : 0;
  s.set_params(p);
}

void softmax(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32, ElementType::kF64}), 1, 4);
  s.set_params(SoftmaxParams{s.axis(x), s.pick(0, 1)});
}

void softmax_q(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, ElementType::kU8, kI16}), 1, 4);
  if (x.type == kI16) {
    // Tables of exponentials and reciprocals; any numbers are permitted.
    s.constant(dense_desc(kI16, {513}), {0.0, 32767.0});
    s.constant(dense_desc(kI16, {513}), {16384.0, 32767.0});
    return s.set_params(SoftmaxQParams{kI16, s.pick(1 << 30, 0x7fffffff), s.pick(-4, 4)});
  }
  s.set_params(
      SoftmaxQParams{s.one_in(3) ? kI16 : x.type, s.pick(1 << 30, 0x7fffffff), s.pick(18, 24), s.pick(-200, -10)});
}

/// Quantised LSTM; a row of multipliers each, that keep sums within 16 bits.
void lstm_q(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kI16}), 3, 3);
  const std::int64_t h = s.pick(1, 9);
  s.constant(dense_desc(kI8, {4 * h, x.dims[2]}), {-127.0, 127.0});
  s.constant(dense_desc(kI8, {4 * h, h}), {-127.0, 127.0});
  s.constant(dense_desc(x.type == kI8 ? kI32 : ElementType::kI64, {4 * h}), {-1000.0, 1000.0});
  s.like(dense_desc(x.type, {x.dims[1], h}));
  s.like(dense_desc(kI16, {x.dims[1], h}));
  LstmQParams p;
  for (int gate = 0; gate < 4; ++gate) {
    p.input_multiplier[gate] = p.recurrent_multiplier[gate] = s.pick(1 << 30, 0x7fffffff);
    p.input_shift[gate] = p.recurrent_shift[gate] = s.pick(-6, -2);
  }
  p.forget_multiplier = p.cell_multiplier = p.hidden_multiplier = s.pick(1 << 30, 0x7fffffff);
  p.forget_shift = p.cell_shift = -15;
  p.hidden_shift = x.type == kI8 ? -22 : -15;
  p.input_zero_point = x.type == kI8 ? s.pick(-128, 127) : 0;
  p.hidden_zero_point = x.type == kI8 ? s.pick(-128, 127) : 0;
  p.cell_clip = s.one_in(2) ? 0 : 20000;
  s.set_params(p);
}

void svdf(Sampling& s) {
  const TensorDesc x = s.any(s.type({kF32, kI8, kI16}), 2, 2);
  SvdfParams p{.rank = x.dims[1] % 2 == 0 && s.one_in(2) ? 2 : 1};
  const std::int64_t memory = s.pick(1, 5);
  s.like(dense_desc(x.type, {x.dims[0], x.dims[1] * memory}));
  s.like(dense_desc(x.type, {x.dims[1], memory}));
  if (s.one_in(2)) s.like(dense_desc(x.type == kF32 ? kF32 : kI32, {x.dims[1] / p.rank}));
  if (x.type == kF32) p.activation = s.activation();
  p.multiplier = s.pick(1 << 30, 0x7fffffff);
  p.shift = s.pick(-20, -5);
  s.set_params(p);
}

constexpr SamplerRow kRows[] = {{&kAttention, attention},
                                {&kConv2d, conv2d},
                                {&kConvTranspose2d, conv_transpose2d},
                                {&kDepthwiseConv2d, depthwise_conv2d},
                                {&kGru, gru},
                                {&kLstm, lstm},
                                {&kLstmQ, lstm_q},
                                {&kMatmul, matmul},
                                {&kNorm, norm},
                                {&kPool2d, pool2d},
                                {&kResize, resize},
                                {&kPlanarConv2d, planar_conv2d},
                                {&kSeparableConv2d, separable_conv2d},
                                {&kSimpleRnn, simple_rnn},
                                {&kSoftmax, softmax},
                                {&kSoftmaxQ, softmax_q},
                                {&kSvdf, svdf}};

}  // namespace

std::span<const SamplerRow> nn_samplers() { return kRows; }

}  // namespace bantam::ops::testing
