// Attention and rotary positions: ONNX's own operators and those of com.microsoft.
#include "ops/nn/attention/attention.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "import/onnx/lowering.h"
#include "ops/data/gather/gather.h"
#include "ops/data/range/range.h"
#include "ops/elementwise/select/select.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::import::onnx {
namespace {

using ops::BinaryFunction;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What an attention is made of, each of rank 4.
struct Attention {
  ops::AttentionParams params;
  ValueId q = kNone;
  ValueId k = kNone;
  ValueId v = kNone;
  ValueId bias = kNone;
  ValueId mask = kNone;
  ValueId lengths = kNone;
};

/// [B,S,heads * width] as [B,S,heads,width].
ValueId split_heads(NodeLowering& n, ValueId x, std::int64_t heads) {
  if (n.failed()) return kNone;
  const TensorDesc d = n.desc(x);
  if (d.rank == 3 && heads > 0 && d.dims[2] % heads == 0)
    return n.reshape(x, {d.dims[0], d.dims[1], heads, d.dims[2] / heads});
  n.fail(fmt::format("operand {} cannot be split into {} heads", format_desc(d), heads), StatusCode::kInvalidModel);
  return kNone;
}

/// [B,S,heads,width] as [B,S,heads * width].
ValueId join_heads(NodeLowering& n, ValueId x) {
  if (n.failed()) return kNone;
  const TensorDesc d = n.desc(x);
  return n.reshape(x, {d.dims[0], d.dims[1], static_cast<std::int64_t>(d.dims[2]) * d.dims[3]});
}

ValueId heads_first(NodeLowering& n, ValueId x, bool heads_last) {
  return heads_last && !n.failed() ? n.transpose(x, {0, 2, 1, 3}) : x;
}

/// Appends keys and values to those of a cache [B,heads,P,width] and hands out both together. Without a cache, what is
/// handed out are the keys and values themselves.
void extend_cache(NodeLowering& n, Attention& a, ValueId past_k, ValueId past_v, int present) {
  if (past_k == kNone && !n.wants(present) && !n.wants(present + 1)) return;
  a.k = heads_first(n, a.k, a.params.k_heads_last != 0);
  a.v = heads_first(n, a.v, a.params.v_heads_last != 0);
  a.params.k_heads_last = a.params.v_heads_last = 0;
  if (past_k != kNone) {
    a.k = n.concat({past_k, a.k}, 2);
    a.v = n.concat({past_v, a.v}, 2);
  }
  n.set_output(present, a.k);
  n.set_output(present + 1, a.v);
}

ValueId emit_attention(NodeLowering& n, const Attention& a) {
  return n.emit(ops::kAttention, a.params, {a.q, a.k, a.v, a.bias, a.mask, a.lengths});
}

/// 1 / sqrt(width) unless an attribute says otherwise.
float read_scale(NodeLowering& n, ValueId q, bool zero_is_default) {
  const float scale = n.attr_float("scale", 0.0F);
  if (n.has_attr("scale") && !(zero_is_default && scale == 0.0F)) return scale;
  const TensorDesc& d = n.desc(q);
  return d.rank == 4 && d.dims[3] > 0 ? 1.0F / std::sqrt(static_cast<float>(d.dims[3])) : 1.0F;
}

/// A mask whose last dimension is shorter than the keys is continued with what leaves keys out.
ValueId extend_mask(NodeLowering& n, ValueId mask, std::int64_t keys) {
  const TensorDesc d = n.desc(mask);
  if (n.failed() || d.rank == 0 || d.last(0) >= keys) return mask;
  auto dims = n.dims(mask);
  dims.back() = keys - dims.back();
  const ValueId out = d.type == ElementType::kBool ? n.cast(n.scalar(0.0F), ElementType::kBool) : n.scalar(-kInfinity);
  return n.concat({mask, n.expand(out, dims)}, d.rank - 1);
}

/// The keys that come after a query are out of its sight.
void limit_to_past(Attention& a) { a.params.right = a.params.right < 0 ? 0 : a.params.right; }

void lower_attention(NodeLowering& n) {
  n.ignore({"softmax_precision"});  // it is computed in float
  n.require("qk_matmul_output_mode", 0);
  Attention a;
  a.q = n.input(0);
  a.k = n.input(1);
  a.v = n.input(2);
  const bool flat = n.rank(a.q) == 3;
  const std::int64_t q_heads = n.attr_int("q_num_heads", 0);
  const std::int64_t kv_heads = n.attr_int("kv_num_heads", 0);
  if (flat) {
    a.q = split_heads(n, a.q, q_heads);
    a.k = split_heads(n, a.k, kv_heads);
    a.v = split_heads(n, a.v, kv_heads);
    a.params.q_heads_last = a.params.k_heads_last = a.params.v_heads_last = a.params.y_heads_last = 1;
  }
  const ValueId past_k = n.optional(4);
  const ValueId past_v = n.optional(5);
  const ValueId lengths = n.optional(6);
  if (n.failed()) return;
  if ((past_k == kNone) != (past_v == kNone) || (past_k != kNone && lengths != kNone))
    return n.fail("past keys and values come together, and without nonpad_kv_seqlen", StatusCode::kInvalidModel);
  const int length_axis = flat ? 1 : 2;
  const bool causal = n.attr_int("is_causal", 0) != 0;
  a.params.left = n.attr_int32("left_window_size", -1);
  a.params.right = n.attr_int32("right_window_size", -1);
  const bool positions = causal || a.params.left >= 0 || a.params.right >= 0;
  if (n.rank(a.q) != 4 || n.rank(a.k) != 4)
    return n.fail("queries, keys and values must have rank 3 or 4", StatusCode::kInvalidModel);
  if (past_k != kNone && positions && n.desc(a.q).dims[length_axis] != n.desc(a.k).dims[length_axis])
    return n.fail("with past keys, positions need as many new keys as queries");
  extend_cache(n, a, past_k, past_v, 1);
  if (n.failed()) return;
  if (causal) limit_to_past(a);
  a.params.aligned_end = past_k != kNone || lengths != kNone ? 1 : 0;
  a.params.scale = read_scale(n, a.q, false);
  a.params.softcap = n.attr_float("softcap", 0.0F);
  a.params.empty_rows_zero = 1;
  if (lengths != kNone) a.lengths = n.cast(lengths, ElementType::kI32);
  const std::int64_t keys = n.desc(a.k).dims[a.params.k_heads_last != 0 ? 1 : 2];
  if (const ValueId mask = n.optional(3); mask != kNone)
    (n.type(mask) == ElementType::kBool ? a.mask : a.bias) = extend_mask(n, mask, keys);
  const ValueId y = emit_attention(n, a);
  n.set_output(0, flat ? join_heads(n, y) : y);
}

/// A bias that is 0 where `mask` (0 or 1) keeps a key and `filter` elsewhere.
ValueId bias_of_mask(NodeLowering& n, ValueId mask, float filter) {
  const ValueId kept = n.cast(mask, ElementType::kBool);
  return n.emit(ops::kSelect, {kept, n.scalar(0.0F), n.scalar(filter)});
}

ValueId sum_of(NodeLowering& n, ValueId a, ValueId b) {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  return n.binary(BinaryFunction::kAdd, a, b);
}

/// com.microsoft masks: [B] counts keys, [B,T], [B,S,T] and [B,1,S,T] hold 0 where a key is left out.
void read_contrib_mask(NodeLowering& n, Attention& a, ValueId mask, float filter, std::int64_t batch) {
  if (n.failed() || mask == kNone) return;
  const auto dims = n.dims(mask);
  if (dims.size() == 1 && dims[0] == batch) {
    a.lengths = n.cast(mask, ElementType::kI32);
  } else if (dims.size() == 2) {
    a.bias = sum_of(n, a.bias, bias_of_mask(n, n.reshape(mask, {dims[0], 1, 1, dims[1]}), filter));
  } else if (dims.size() == 3) {
    a.bias = sum_of(n, a.bias, bias_of_mask(n, n.reshape(mask, {dims[0], 1, dims[1], dims[2]}), filter));
  } else if (dims.size() == 4) {
    a.bias = sum_of(n, a.bias, bias_of_mask(n, mask, filter));
  } else {
    n.fail(fmt::format("a mask of shape {} is not supported", format_desc(n.desc(mask))));
  }
}

/// Part i of `count` equal parts of axis `axis`, which is left out.
ValueId part(NodeLowering& n, ValueId x, int axis, std::int64_t i) {
  auto dims = n.dims(x);
  if (n.failed()) return kNone;
  dims.erase(dims.begin() + axis);
  return n.reshape(n.slice(x, axis, i, 1), dims);
}

/// Elements [first, first + count) of the innermost axis of an optional operand.
ValueId columns(NodeLowering& n, ValueId x, std::int64_t first, std::int64_t count) {
  return x == kNone || n.failed() ? kNone : n.slice(x, n.rank(x) - 1, first, count);
}

/// com.microsoft MultiHeadAttention: queries, keys and values apart, as [B,S,heads * width], packed as
/// [B,S,heads,3,width] or [B,T,heads,2,width], or keys and values as [B,heads,T,width].
void lower_multi_head_attention(NodeLowering& n) {
  Attention a;
  const std::int64_t heads = n.attr_int("num_heads", 0);
  const float filter = n.attr_float("mask_filter_value", -10000.0F);
  a.q = n.input(0);
  a.params.q_heads_last = a.params.k_heads_last = a.params.v_heads_last = a.params.y_heads_last = 1;
  const ValueId bias = n.optional(3);
  if (n.rank(a.q) == 5) {
    const ValueId packed = a.q;
    a.q = part(n, packed, 3, 0);
    a.k = part(n, packed, 3, 1);
    a.v = part(n, packed, 3, 2);
  } else {
    const ValueId q = a.q;
    const std::int64_t hidden = n.rank(q) == 3 ? n.desc(q).dims[2] : 0;
    const ValueId q_bias = columns(n, bias, 0, hidden);
    a.q = split_heads(n, q_bias != kNone ? n.binary(BinaryFunction::kAdd, q, q_bias) : q, heads);
    a.k = n.input(1);
    if (n.rank(a.k) == 5) {
      const ValueId packed = a.k;
      a.k = part(n, packed, 3, 0);
      a.v = part(n, packed, 3, 1);
    } else if (n.rank(a.k) == 4) {
      a.v = n.input(2);
      a.params.k_heads_last = a.params.v_heads_last = 0;
    } else {
      a.v = n.input(2);
      const std::int64_t width = n.rank(a.v) == 3 ? n.desc(a.v).dims[2] : 0;
      if (bias != kNone) {
        a.k = n.binary(BinaryFunction::kAdd, a.k, columns(n, bias, hidden, hidden));
        a.v = n.binary(BinaryFunction::kAdd, a.v, columns(n, bias, 2 * hidden, width));
      }
      a.k = split_heads(n, a.k, heads);
      a.v = split_heads(n, a.v, heads);
    }
  }
  if (n.failed()) return;
  extend_cache(n, a, n.optional(6), n.optional(7), 1);
  a.params.scale = read_scale(n, a.q, true);
  if (n.attr_int("unidirectional", 0) != 0) limit_to_past(a);
  a.params.aligned_end = 1;
  if (n.failed()) return;
  a.bias = n.optional(5);
  read_contrib_mask(n, a, n.optional(4), filter, n.desc(a.q).dims[0]);
  n.set_output(0, join_heads(n, emit_attention(n, a)));
}

/// com.microsoft Attention: projections included; `past` and `present` hold keys and values in one tensor.
void lower_attention_with_projections(NodeLowering& n) {
  n.require("do_rotary", 0);
  n.require("past_present_share_buffer", 0);
  n.ignore({"rotary_embedding_dim"});
  const std::int64_t heads = n.attr_int("num_heads", 0);
  const float filter = n.attr_float("mask_filter_value", -10000.0F);
  auto sizes = n.attr_ints("qkv_hidden_sizes");
  const ValueId x = n.input(0);
  const ValueId weights = n.input(1);
  const ValueId bias = n.optional(2);
  if (n.failed()) return;
  if (n.rank(weights) != 2) return n.fail("the weights must be a matrix", StatusCode::kInvalidModel);
  const std::int64_t all = n.desc(weights).dims[1];
  if (sizes.empty()) sizes.assign(3, all / 3);
  if (sizes.size() != 3 || sizes[0] < 0 || sizes[1] < 0 || sizes[2] < 0 || sizes[0] > all || sizes[1] > all ||
      sizes[2] > all || sizes[0] + sizes[1] + sizes[2] != all)
    return n.fail(
        fmt::format("attribute 'qkv_hidden_sizes' does not agree with weights {}", format_desc(n.desc(weights))),
        StatusCode::kInvalidModel);
  std::array<ValueId, 3> projected{};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 3; first += sizes[i], ++i)
    projected[i] = split_heads(n,
                               n.emit(ops::kMatmul, ops::MatmulParams{},
                                      {x, columns(n, weights, first, sizes[i]), columns(n, bias, first, sizes[i])}),
                               heads);
  Attention a;
  a.q = projected[0];
  a.k = projected[1];
  a.v = projected[2];
  a.params.q_heads_last = a.params.k_heads_last = a.params.v_heads_last = a.params.y_heads_last = 1;
  const ValueId past = n.optional(4);
  if (past != kNone || n.wants(1)) {
    a.k = heads_first(n, a.k, true);
    a.v = heads_first(n, a.v, true);
    a.params.k_heads_last = a.params.v_heads_last = 0;
    if (past != kNone) {
      a.k = n.concat({part(n, past, 0, 0), a.k}, 2);
      a.v = n.concat({part(n, past, 0, 1), a.v}, 2);
    }
    if (n.failed()) return;
    auto dims = n.dims(a.k);
    dims.insert(dims.begin(), 1);
    n.set_output(1, n.concat({n.reshape(a.k, dims), n.reshape(a.v, dims)}, 0));
  }
  if (n.failed()) return;
  a.params.scale = read_scale(n, a.q, true);
  if (n.attr_int("unidirectional", 0) != 0) limit_to_past(a);
  a.params.aligned_end = 1;
  a.bias = n.optional(5);
  read_contrib_mask(n, a, n.optional(3), filter, n.desc(a.q).dims[0]);
  n.set_output(0, join_heads(n, emit_attention(n, a)));
}

/// How rotary positions turn pairs of numbers.
struct Rotation {
  ValueId cos = kNone;  ///< [B,S,pairs] or [S,pairs]
  ValueId sin = kNone;
  bool interleaved = false;  ///< pairs are neighbours; else the first half and the second
};

/// Turns the first 2 * pairs numbers of x [B,heads,S,width], or [B,S,heads,width].
ValueId rotate(NodeLowering& n, ValueId x, bool heads_last, const Rotation& rotation) {
  if (n.failed()) return kNone;
  const auto dims = n.dims(x);
  const auto angles = n.dims(rotation.cos);
  if (dims.size() != 4 || angles.size() < 2 || angles.size() > 3 || angles.back() * 2 > dims[3] ||
      n.dims(rotation.sin) != angles) {
    n.fail(fmt::format("angles {} do not belong to {}", format_desc(n.desc(rotation.cos)), format_desc(n.desc(x))),
           StatusCode::kInvalidModel);
    return kNone;
  }
  const std::int64_t pairs = angles.back();
  const std::int64_t batch = angles.size() == 3 ? angles[0] : 1;
  const std::int64_t steps = angles[angles.size() - 2];
  const auto spread = [&](ValueId angle) {
    return heads_last ? n.reshape(angle, {batch, steps, 1, pairs}) : n.reshape(angle, {batch, 1, steps, pairs});
  };
  const ValueId turned = n.slice(x, 3, 0, 2 * pairs);
  const auto member = [&](std::int64_t i) {
    if (!rotation.interleaved) return n.slice(turned, 3, i * pairs, pairs);
    return part(n, n.reshape(turned, {dims[0], dims[1], dims[2], pairs, 2}), 4, i);
  };
  const ValueId cos = spread(rotation.cos);
  const ValueId sin = spread(rotation.sin);
  const ValueId a = member(0);
  const ValueId b = member(1);
  const auto product = [&](ValueId left, ValueId right) { return n.binary(BinaryFunction::kMul, left, right); };
  ValueId real = n.binary(BinaryFunction::kSub, product(a, cos), product(b, sin));
  ValueId imaginary = n.binary(BinaryFunction::kAdd, product(a, sin), product(b, cos));
  if (n.failed()) return kNone;
  ValueId y = kNone;
  if (rotation.interleaved) {
    const auto column = [&](ValueId v) { return n.reshape(v, {dims[0], dims[1], dims[2], pairs, 1}); };
    y = n.reshape(n.concat({column(real), column(imaginary)}, 4), {dims[0], dims[1], dims[2], 2 * pairs});
  } else {
    y = n.concat({real, imaginary}, 3);
  }
  const std::int64_t rest = dims[3] - 2 * pairs;
  return rest == 0 ? y : n.concat({y, n.slice(x, 3, 2 * pairs, rest)}, 3);
}

/// The rows of a table of angles at `positions`.
ValueId angles_at(NodeLowering& n, ValueId table, ValueId positions) {
  return n.emit(ops::kGather, ops::GatherParams{}, {table, positions});
}

/// What both forms of RotaryEmbedding share, once the angles are chosen.
void finish_rotary(NodeLowering& n, ValueId x, Rotation rotation) {
  rotation.interleaved = n.attr_int("interleaved", 0) != 0;
  const std::int64_t width = n.attr_int("rotary_embedding_dim", 0);
  std::int64_t heads = n.attr_int("num_heads", 0);
  if (n.failed()) return;
  if (width != 0 && width != 2 * n.desc(rotation.cos).last(0))
    return n.fail(fmt::format("attribute 'rotary_embedding_dim' = {} does not agree with angles {}", width,
                              format_desc(n.desc(rotation.cos))),
                  StatusCode::kInvalidModel);
  if (n.rank(x) == 4) return n.set_output(0, rotate(n, x, false, rotation));
  // com.microsoft leaves the number of heads out when all of a head is turned.
  if (heads == 0 && n.rank(x) == 3 && n.desc(rotation.cos).last(0) > 0)
    heads = n.desc(x).dims[2] / (2 * n.desc(rotation.cos).last(0));
  n.set_output(0, join_heads(n, rotate(n, split_heads(n, x, heads), true, rotation)));
}

void lower_rotary(NodeLowering& n) {
  Rotation rotation{n.input(1), n.input(2), false};
  if (n.has(3)) {
    rotation.cos = angles_at(n, rotation.cos, n.input(3));
    rotation.sin = angles_at(n, rotation.sin, n.input(3));
  }
  finish_rotary(n, n.input(0), rotation);
}

/// com.microsoft RotaryEmbedding: positions [B,S], or [1], the position of the first step.
void lower_contrib_rotary(NodeLowering& n) {
  n.require("is_packed_batching", 0);
  if (const float scale = n.attr_float("scale", 1.0F); scale != 1.0F)
    n.fail(fmt::format("attribute 'scale' = {} is not supported, only 1", scale));
  const ValueId x = n.input(0);
  ValueId positions = n.input(1);
  if (n.failed()) return;
  if (n.rank(positions) == 1) {
    const std::int64_t steps = n.desc(x).dims[n.rank(x) == 4 ? 2 : 1];
    const ElementType type = n.type(positions);
    const ValueId count =
        n.emit(ops::kRange, {n.scalar(type, 0), n.scalar(type, static_cast<double>(steps)), n.scalar(type, 1)});
    positions = n.binary(BinaryFunction::kAdd, count, positions);
  }
  finish_rotary(n, x, {angles_at(n, n.input(2), positions), angles_at(n, n.input(3), positions), false});
}

/// com.microsoft GroupQueryAttention with a cache that grows by the new keys. The number of valid keys is an operand;
/// it must be known, because a cache that is only partly filled would be read at other places.
void lower_group_query_attention(NodeLowering& n) {
  n.require("smooth_softmax", 0);
  n.ignore({"kv_cache_bit_width", "k_quant_type", "v_quant_type"});
  for (int i = 11; i < n.inputs(); ++i)
    if (n.has(i)) return n.fail(fmt::format("operand {} is not supported", i));
  const std::int64_t heads = n.attr_int("num_heads", 0);
  const std::int64_t kv_heads = n.attr_int("kv_num_heads", 0);
  const ValueId packed = n.input(0);
  Attention a;
  a.params.q_heads_last = a.params.k_heads_last = a.params.v_heads_last = a.params.y_heads_last = 1;
  if (n.failed()) return;
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    return n.fail("attributes 'num_heads' and 'kv_num_heads' do not belong together", StatusCode::kInvalidModel);
  if (n.has(1)) {
    a.q = split_heads(n, packed, heads);
    a.k = split_heads(n, n.input(1), kv_heads);
    a.v = split_heads(n, n.input(2), kv_heads);
  } else {
    const ValueId rows = split_heads(n, packed, heads + 2 * kv_heads);
    a.q = n.slice(rows, 2, 0, heads);
    a.k = n.slice(rows, 2, heads, kv_heads);
    a.v = n.slice(rows, 2, heads + kv_heads, kv_heads);
  }
  const ValueId past_k = n.optional(3);
  const ValueId past_v = n.optional(4);
  const std::int64_t total = n.integer(6, "total_sequence_length");
  if (n.failed()) return;
  const std::int64_t steps = n.desc(a.q).dims[1];
  const std::int64_t past = past_k != kNone && n.rank(past_k) == 4 ? n.desc(past_k).dims[2] : 0;
  if (total != past + steps)
    return n.fail(fmt::format("a cache of {} keys with room for more than the {} that are valid is not supported", past,
                              total - steps));
  if (n.attr_int("do_rotary", 0) != 0) {
    Rotation rotation{n.input(7), n.input(8), n.attr_int("rotary_interleaved", 0) != 0};
    if (n.failed()) return;
    if (n.has(9)) {
      rotation.cos = angles_at(n, rotation.cos, n.input(9));
      rotation.sin = angles_at(n, rotation.sin, n.input(9));
    } else if (n.rank(rotation.cos) == 2 && n.desc(rotation.cos).dims[0] >= total) {
      rotation.cos = n.slice(rotation.cos, 0, past, steps);
      rotation.sin = n.slice(rotation.sin, 0, past, steps);
    } else {
      return n.fail(fmt::format("the table of angles has no {} positions", total), StatusCode::kInvalidModel);
    }
    a.q = rotate(n, a.q, true, rotation);
    a.k = rotate(n, a.k, true, rotation);
  } else {
    n.ignore({"rotary_interleaved"});
  }
  extend_cache(n, a, past_k, past_v, 1);
  if (n.failed()) return;
  a.params.scale = read_scale(n, a.q, true);
  a.params.softcap = n.attr_float("softcap", 0.0F);
  a.params.right = 0;
  a.params.aligned_end = 1;
  // ONNX Runtime counts the query's own key among those of the window.
  if (const std::int32_t window = n.attr_int32("local_window_size", -1); window > 0) a.params.left = window - 1;
  a.bias = n.optional(10);
  n.set_output(0, join_heads(n, emit_attention(n, a)));
}

constexpr OperatorRow kAttentionOperators[] = {
    {"", "Attention", 23, kNewest, lower_attention},
    {"", "RotaryEmbedding", 23, kNewest, lower_rotary},
    {"com.microsoft", "Attention", 1, kNewest, lower_attention_with_projections},
    {"com.microsoft", "GroupQueryAttention", 1, kNewest, lower_group_query_attention},
    {"com.microsoft", "MultiHeadAttention", 1, kNewest, lower_multi_head_attention},
    {"com.microsoft", "RotaryEmbedding", 1, kNewest, lower_contrib_rotary},
};

}  // namespace

std::span<const OperatorRow> attention_operators() { return kAttentionOperators; }

}  // namespace bantam::import::onnx
