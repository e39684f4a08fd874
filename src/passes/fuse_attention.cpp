// Computes attention that exporters write out as products and a softmax by the operator that needs no matrix of scores.
//
//   matmul(softmax(scores), v) -> attention(q, k, v), where scores is, from the inside out:
//     matmul(q, k transposed); times or divided by a number and plus a bias, in any order; where(mask, number, .)
//
// Around the softmax: where(mask, 0, .) with the mask of the scores, and where(is_nan(.), 0, .), which make rows
// without keys zero. Numbers that scale q or k beforehand become part of the scale. Transposes that bring heads before
// positions are left out where the operator reads and writes heads last, also where q, k and v are parts of one
// transposed projection; heads of keys and values that are repeated for several of queries are shared. What other nodes
// read of the scores stays written out. The sums are the same over the reals; float results differ by a few units in
// the last place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/data/expand/expand.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
#include "ops/data/transpose/transpose.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/select/select.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/softmax/softmax.h"
#include "passes/list.h"
#include "passes/permutation.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using ops::BinaryFunction;
using Replacement = std::optional<ValueId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Scores at or below this weigh nothing beside real ones.
constexpr float kAsGoodAsMasked = -1e4F;

/// True for a matrix product of float operands without bias, activation or turned left side.
bool is_plain_product(const Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kMatmul)) return false;
  const auto& p = node.as<ops::MatmulParams>();
  return p.transpose_a == 0 && p.activation.function == ops::UnaryFunction::kIdentity &&
         (node.inputs.size() < 3 || node.inputs[2] == kNone) &&
         rewriter.desc(node.inputs[0]).type == ElementType::kF32 &&
         rewriter.desc(node.inputs[1]).type == ElementType::kF32;
}

/// The operand of a product or quotient with one finite number, and the factor that it is.
struct Scaled {
  ValueId x;
  float factor;
};
std::optional<Scaled> scaled(const Rewriter& rewriter, ValueId id) {
  const Node* node = rewriter.producer(id, ops::kBinary);
  if (node == nullptr || node->as<ops::BinaryParams>().activation.function != ops::UnaryFunction::kIdentity)
    return std::nullopt;
  const BinaryFunction function = node->as<ops::BinaryParams>().function;
  if (function != BinaryFunction::kMul && function != BinaryFunction::kDiv) return std::nullopt;
  for (const std::size_t c : {std::size_t{1}, std::size_t{0}}) {
    if (c == 0 && function == BinaryFunction::kDiv) break;
    const auto number = splat(rewriter.graph(), node->inputs[c]);
    const ValueId x = node->inputs[1 - c];
    if (!number || !same_shape_and_type(rewriter.desc(x), rewriter.desc(id))) continue;
    const float factor = function == BinaryFunction::kMul ? *number : 1.0F / *number;
    if (std::isfinite(factor)) return Scaled{x, factor};
  }
  return std::nullopt;
}

/// A select between a number and a tensor of the result's shape.
struct Masked {
  ValueId mask;
  ValueId x;
  float number;
  bool keeps;  ///< a true element keeps x
};
std::optional<Masked> masked(const Rewriter& rewriter, ValueId id) {
  const Node* node = rewriter.producer(id, ops::kSelect);
  if (node == nullptr) return std::nullopt;
  for (const std::size_t x : {std::size_t{2}, std::size_t{1}}) {
    const auto number = splat(rewriter.graph(), node->inputs[3 - x]);
    if (number && !std::isnan(*number) && same_shape_and_type(rewriter.desc(node->inputs[x]), rewriter.desc(id)))
      return Masked{node->inputs[0], node->inputs[x], *number, x == 1};
  }
  return std::nullopt;
}

/// What has been read of the scores on the way in.
struct Scores {
  ops::AttentionParams params;
  ValueId bias = kNone;
  ValueId mask = kNone;
  const Node* product = nullptr;
};

/// Reads scores from the outside in. `factor` is what everything further in is multiplied by.
bool read_scores(const Rewriter& rewriter, ValueId id, float factor, Scores* scores) {
  if (!rewriter.only_reader(id)) return false;
  if (const Node* product = rewriter.producer(id); product != nullptr && is_plain_product(rewriter, *product)) {
    scores->product = product;
    scores->params.scale = factor;
    return true;
  }
  if (const auto s = scaled(rewriter, id)) return read_scores(rewriter, s->x, factor * s->factor, scores);
  if (const auto m = masked(rewriter, id); m && scores->mask == kNone && scores->bias == kNone) {
    const float value = m->number * factor;
    if (std::isnan(value)) return false;
    scores->mask = m->mask;
    scores->params.masked_value = value;
    scores->params.mask_keeps = m->keeps ? 1 : 0;
    return read_scores(rewriter, m->x, factor, scores);
  }
  const Node* sum = plain_binary(rewriter, id, BinaryFunction::kAdd);
  if (sum == nullptr || scores->bias != kNone) return false;
  for (const std::size_t x : {std::size_t{0}, std::size_t{1}}) {
    if (!same_shape_and_type(rewriter.desc(sum->inputs[x]), rewriter.desc(id))) continue;
    Scores attempt = *scores;
    attempt.bias = sum->inputs[1 - x];
    attempt.params.bias_scale = factor;
    if (!read_scores(rewriter, sum->inputs[x], factor, &attempt)) continue;
    *scores = attempt;
    return true;
  }
  return false;
}

/// The softmax over the last axis that produces `id`.
const Node* softmax_of(const Rewriter& rewriter, ValueId id) {
  const Node* node = rewriter.producer(id, ops::kSoftmax);
  if (node == nullptr) return nullptr;
  const auto& p = node->as<ops::SoftmaxParams>();
  const int rank = rewriter.desc(id).rank;
  return p.log == 0 && (p.axis == rank - 1 || p.axis == -1) ? node : nullptr;
}

/// Reads the weights: a softmax, or one whose empty or masked elements are replaced by zero.
bool read_weights(const Rewriter& rewriter, ValueId id, Scores* scores) {
  if (!rewriter.only_reader(id)) return false;
  if (const Node* softmax = softmax_of(rewriter, id)) return read_scores(rewriter, softmax->inputs[0], 1.0F, scores);
  const auto m = masked(rewriter, id);
  const Node* softmax = m && m->number == 0.0F ? softmax_of(rewriter, m->x) : nullptr;
  if (softmax == nullptr) return false;
  scores->params.empty_rows_zero = 1;
  const Node* is_nan = rewriter.producer(m->mask, ops::kUnary);
  if (!m->keeps && is_nan != nullptr && is_nan->as<ops::UnaryParams>().function == ops::UnaryFunction::kIsNan &&
      is_nan->inputs[0] == m->x)
    return rewriter.only_reader(m->mask) && read_scores(rewriter, softmax->inputs[0], 1.0F, scores);
  if (!rewriter.only_reader(m->x) || !read_scores(rewriter, softmax->inputs[0], 1.0F, scores)) return false;
  if (scores->mask != m->mask || (scores->params.mask_keeps != 0) != m->keeps ||
      scores->params.masked_value > kAsGoodAsMasked)
    return false;
  scores->params.masked_value = -kInfinity;
  return true;
}

/// A tensor [..., heads, length, width] as an operand of rank 4: what is before the heads is one batch.
struct HeadOperand {
  ValueId value = kNone;
  std::int32_t heads_last = 0;
};

Permutation heads_moved(int rank) {
  Permutation p = Permutation::identity(rank);
  std::swap(p.v[static_cast<std::size_t>(rank - 3)], p.v[static_cast<std::size_t>(rank - 2)]);
  return p;
}

/// The last three dimensions, and all in front of them as one.
TensorDesc with_leading_as_one(const TensorDesc& d) {
  constexpr int kLast = 3;
  TensorDesc joined = d;
  joined.rank = kLast + 1;
  std::int64_t leading = 1;
  for (int i = 0; i < d.rank - kLast; ++i) leading *= d.dims[i];
  // One that is too large has another number of elements, which no reshape takes.
  joined.dims[0] = static_cast<std::int32_t>(std::min<std::int64_t>(leading, std::numeric_limits<std::int32_t>::max()));
  for (int i = 0; i < kLast; ++i) joined.dims[kLast - i] = i < d.rank ? d.last(i) : 1;
  return joined;
}

/// `x` with ones in front, or with what is in front as one, of rank 4.
Replacement with_rank_4(Rewriter& rewriter, ValueId x) {
  const TensorDesc& d = rewriter.desc(x);
  return d.rank == 4 ? x : rewriter.reshape(x, with_leading_as_one(d));
}

/// The operand that is transpose(x, perm), perm being the identity or moving heads where that costs nothing.
std::optional<HeadOperand> head_operand(Rewriter& rewriter, ValueId x, const Permutation& perm) {
  HeadOperand operand{x, 0};
  if (perm.rank >= 3 && perm == heads_moved(perm.rank)) {
    operand.heads_last = 1;
  } else if (!perm.is_identity()) {
    const auto turned = rewriter.transpose(x, perm.span());
    if (!turned) return std::nullopt;
    operand.value = *turned;
  }
  const auto value = with_rank_4(rewriter, operand.value);
  if (!value) return std::nullopt;
  operand.value = *value;
  return operand;
}

/// The tensor that is index `index` along axis `axis` of `x`, without that axis.
struct Selection {
  ValueId x;
  int axis;
  std::int32_t index;
};
std::optional<Selection> selection(const Rewriter& rewriter, ValueId id) {
  const Node* reshape = rewriter.producer(id, ops::kReshape);
  const Node* slice = reshape != nullptr ? rewriter.producer(reshape->inputs[0], ops::kSlice) : nullptr;
  if (slice == nullptr) return std::nullopt;
  const auto& p = slice->as<ops::SliceParams>();
  const TensorDesc& all = rewriter.desc(slice->inputs[0]);
  int axis = -1;
  for (int i = 0; i < all.rank; ++i) {
    if (p.sizes.v[i] == all.dims[i] && p.steps.v[i] == 1) continue;
    if (axis >= 0 || p.sizes.v[i] != 1) return std::nullopt;
    axis = i;
  }
  const TensorDesc& kept = rewriter.desc(id);
  if (axis < 0 || kept.rank != all.rank - 1) return std::nullopt;
  for (int i = 0; i < kept.rank; ++i)
    if (kept.dims[i] != all.dims[i < axis ? i : i + 1]) return std::nullopt;
  return Selection{slice->inputs[0], axis, p.starts.v[axis]};
}

/// Index `index` along axis `axis` of x, without that axis.
Replacement select(Rewriter& rewriter, ValueId x, int axis, std::int32_t index) {
  TensorDesc rest = rewriter.desc(x);
  ops::SliceParams slice;
  slice.starts.size = slice.steps.size = slice.sizes.size = rest.rank;
  std::fill_n(slice.steps.v, rest.rank, 1);
  std::copy_n(rest.dims, rest.rank, slice.sizes.v);
  slice.starts.v[axis] = index;
  slice.sizes.v[axis] = 1;
  std::copy(rest.dims + axis + 1, rest.dims + rest.rank, rest.dims + axis);
  --rest.rank;
  const auto sliced = rewriter.emit(ops::kSlice, slice, {x});
  return sliced ? rewriter.reshape(*sliced, rest) : std::nullopt;
}

/// The transposition of the other axes where `perm` has axis `position` of its result.
Permutation without(const Permutation& perm, int position) {
  Permutation rest = Permutation::identity(perm.rank - 1);
  for (int i = 0; i < rest.rank; ++i) {
    const int from = perm[i < position ? i : i + 1];
    rest.v[static_cast<std::size_t>(i)] = from < perm[position] ? from : from - 1;
  }
  return rest;
}

/// A tensor, and how another is transposed from it.
struct Turned {
  ValueId x;
  Permutation perm;
};

/// `id` as the transpose that it is, or, where it selects from a transpose, as that of a selection: exporters transpose
/// a projection of queries, keys and values as one, and take it apart behind that.
std::optional<Turned> turned(Rewriter& rewriter, ValueId id) {
  const auto of = selection(rewriter, id);
  const Node* transpose = rewriter.producer(of ? of->x : id, ops::kTranspose);
  if (transpose == nullptr) return std::nullopt;
  const ValueId x = transpose->inputs[0];
  const Permutation perm = Permutation::of(transpose->as<ops::TransposeParams>().perm);
  if (!of) return Turned{x, perm};
  const auto selected = select(rewriter, x, perm[of->axis], of->index);
  return selected ? std::optional(Turned{*selected, without(perm, of->axis)}) : std::nullopt;
}

/// Takes transposes off `x`, which are composed with `perm`, and numbers before, between and after them, when `scale`
/// is given. Returns whether there was a transpose.
bool look_through(Rewriter& rewriter, ValueId* x, Permutation* perm, float* scale) {
  const auto take_scale = [&] {
    const auto s = scale != nullptr ? scaled(rewriter, *x) : std::nullopt;
    if (!s) return;
    *x = s->x;
    *scale *= s->factor;
  };
  bool any = false;
  take_scale();
  while (const auto t = turned(rewriter, *x)) {
    *perm = t->perm.then(*perm);
    *x = t->x;
    any = true;
    take_scale();
  }
  return any;
}

Permutation last_two_swapped(int rank) {
  Permutation p = Permutation::identity(rank);
  std::swap(p.v[static_cast<std::size_t>(rank - 1)], p.v[static_cast<std::size_t>(rank - 2)]);
  return p;
}

/// An optional operand of scores as it broadcasts to those of rank 4: with all of what is in front of the heads as one,
/// or nothing there.
Replacement beside_rank_4(Rewriter& rewriter, ValueId id, const TensorDesc& scores) {
  if (id == kNone || scores.rank <= 4) return id;
  const TensorDesc& d = rewriter.desc(id);
  if (d.rank <= 3) return id;
  TensorDesc joined = with_leading_as_one(d);
  const bool is_whole = d.rank == scores.rank && std::equal(d.dims, d.dims + d.rank - 3, scores.dims);
  return is_whole || joined.dims[0] == 1 ? rewriter.reshape(id, joined) : std::nullopt;
}

/// An optional operand must broadcast to [...,S,T] without a leading dimension of its own.
bool fits_scores(const Rewriter& rewriter, ValueId id, const TensorDesc& scores, ElementType type) {
  if (id == kNone) return true;
  const TensorDesc& d = rewriter.desc(id);
  if (d.type != type || d.rank > scores.rank) return false;
  for (int i = 0; i < d.rank; ++i)
    if (d.last(i) != 1 && d.last(i) != scores.last(i)) return false;
  return true;
}

/// x [B,heads,length,width] when `id` is each head of it several times over, as reshape(expand(reshape(x))).
Replacement before_repetition(const Rewriter& rewriter, ValueId id) {
  const Node* joined = rewriter.producer(id, ops::kReshape);
  const Node* expand = joined != nullptr ? rewriter.producer(joined->inputs[0], ops::kExpand) : nullptr;
  const Node* apart = expand != nullptr ? rewriter.producer(expand->inputs[0], ops::kReshape) : nullptr;
  if (apart == nullptr) return std::nullopt;
  const TensorDesc& x = rewriter.desc(apart->inputs[0]);
  const TensorDesc& one = rewriter.desc(apart->outputs[0]);
  const TensorDesc& all = rewriter.desc(expand->outputs[0]);
  const TensorDesc& y = rewriter.desc(id);
  if (x.rank != 4 || one.rank != 5 || all.rank != 5 || y.rank != 4 || one.dims[2] != 1) return std::nullopt;
  for (const int axis : {0, 1, 3, 4}) {
    const std::int32_t size = x.dims[axis < 2 ? axis : axis - 1];
    if (one.dims[axis] != size || all.dims[axis] != size) return std::nullopt;
  }
  const bool same = y.dims[0] == x.dims[0] && y.dims[2] == x.dims[2] && y.dims[3] == x.dims[3];
  return same ? Replacement(apart->inputs[0]) : std::nullopt;
}

/// Takes the repetition of heads off keys and values, which query heads then share, and transposes behind that.
void look_through_repetition(Rewriter& rewriter, ValueId* k, Permutation* k_perm, ValueId* v, Permutation* v_perm,
                             float* scale) {
  if (!k_perm->is_identity() || !v_perm->is_identity()) return;
  const auto keys = before_repetition(rewriter, *k);
  const auto values = before_repetition(rewriter, *v);
  if (!keys || !values || rewriter.desc(*keys).dims[1] != rewriter.desc(*values).dims[1]) return;
  *k = *keys;
  *v = *values;
  look_through(rewriter, k, k_perm, scale);
  look_through(rewriter, v, v_perm, nullptr);
}

/// The operator does not broadcast leading dimensions.
bool fits_heads(const TensorDesc& operand, const TensorDesc& scores) {
  return operand.rank == scores.rank && scores.rank >= 2 &&
         std::equal(operand.dims, operand.dims + operand.rank - 2, scores.dims);
}

Replacement fuse_heads(Rewriter& rewriter, const Node& node) {
  Scores scores;
  if (!is_plain_product(rewriter, node) || node.as<ops::MatmulParams>().transpose_b != 0) return std::nullopt;
  if (!read_weights(rewriter, node.inputs[0], &scores)) return std::nullopt;
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  const TensorDesc matrix = rewriter.desc(scores.product->outputs[0]);
  const int rank = matrix.rank;
  ValueId q = scores.product->inputs[0];
  ValueId k = scores.product->inputs[1];
  ValueId v = node.inputs[1];
  const bool fits = fits_heads(rewriter.desc(q), matrix) && fits_heads(rewriter.desc(k), matrix) &&
                    fits_heads(rewriter.desc(v), matrix) &&
                    fits_scores(rewriter, scores.bias, matrix, ElementType::kF32) &&
                    fits_scores(rewriter, scores.mask, matrix, ElementType::kBool);
  if (!fits) return std::nullopt;

  Permutation q_perm = Permutation::identity(rank);
  Permutation v_perm = Permutation::identity(rank);
  Permutation k_perm =
      scores.product->as<ops::MatmulParams>().transpose_b != 0 ? Permutation::identity(rank) : last_two_swapped(rank);
  look_through(rewriter, &q, &q_perm, &scores.params.scale);
  look_through(rewriter, &v, &v_perm, nullptr);
  // Keys that are stored as columns, in a cache for example, would have to be copied first.
  if (!look_through(rewriter, &k, &k_perm, &scores.params.scale) && !k_perm.is_identity()) return std::nullopt;
  look_through_repetition(rewriter, &k, &k_perm, &v, &v_perm, &scores.params.scale);
  if (!std::isfinite(scores.params.scale)) return std::nullopt;
  const auto q4 = head_operand(rewriter, q, q_perm);
  const auto k4 = head_operand(rewriter, k, k_perm);
  const auto v4 = head_operand(rewriter, v, v_perm);
  const auto bias = beside_rank_4(rewriter, scores.bias, matrix);
  const auto mask = beside_rank_4(rewriter, scores.mask, matrix);
  if (!q4 || !k4 || !v4 || !bias || !mask) return std::nullopt;
  scores.params.q_heads_last = q4->heads_last;
  scores.params.k_heads_last = k4->heads_last;
  scores.params.v_heads_last = v4->heads_last;
  const auto result =
      rewriter.emit(ops::kAttention, scores.params, {q4->value, k4->value, v4->value, *bias, *mask, kNone});
  return result && rank != 4 ? rewriter.reshape(*result, y) : result;
}

/// transpose(attention) that moves heads last again, or the same with the leading dimensions of another rank.
Replacement write_heads_last(Rewriter& rewriter, const Node& node) {
  const Permutation perm = Permutation::of(node.as<ops::TransposeParams>().perm);
  ValueId x = node.inputs[0];
  if (perm.rank < 3 || perm != heads_moved(perm.rank) || !rewriter.only_reader(x)) return std::nullopt;
  if (perm.rank != 4) {
    const Node* reshape = rewriter.producer(x, ops::kReshape);
    if (reshape == nullptr || !rewriter.only_reader(reshape->inputs[0])) return std::nullopt;
    const TensorDesc& from = rewriter.desc(reshape->inputs[0]);
    if (!same_shape_and_type(from, with_leading_as_one(rewriter.desc(x)))) return std::nullopt;
    x = reshape->inputs[0];
  }
  const Node* attention = rewriter.producer(x, ops::kAttention);
  if (attention == nullptr || attention->as<ops::AttentionParams>().y_heads_last != 0) return std::nullopt;
  ops::AttentionParams params = attention->as<ops::AttentionParams>();
  params.y_heads_last = 1;
  rewriter.set_fused_source(*attention, node);
  const auto result = rewriter.emit(ops::kAttention, params, attention->inputs);
  return result && perm.rank != 4 ? rewriter.reshape(*result, rewriter.desc(node.outputs[0])) : result;
}

}  // namespace

Result<bool> fuse_attention(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    if (node.is(ops::kMatmul)) return fuse_heads(rewriter, node);
    if (node.is(ops::kTranspose)) return write_heads_last(rewriter, node);
    return std::nullopt;
  });
}

}  // namespace bantam::passes
