// Recognises functions that exporters write out as arithmetic, and computes each by the operator that has it.
//
//   max(min(x, b), a), min(max(x, a), b)       -> clip; max(x, 0) -> relu
//   clip(x + 3, 0, 6) / 6                      -> hard_sigmoid(1/6, 1/2)
//   x * sigmoid(x)                             -> silu
//   x * hard_sigmoid(x; 1/6, 1/2), x * clip(x + 3, 0, 6) / 6   -> hard_swish
//   0.5 x (1 + erf(x / sqrt 2)), in any order  -> gelu; with tanh's approximation -> gelu_tanh
//   1 / sqrt(x)                                -> rsqrt; pow(x, 2), x * x -> square; sum(square(x)) -> sum_square
//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) -> norm; x / sqrt(mean(x^2) + e) -> norm by the root of the mean
//     square; times a constant, plus a constant: its scale and bias
//   exp(x - max(x)) / sum(exp(x - max(x)))     -> softmax
//
// A rule fires at the last node of a pattern and looks backward; what it leaves unread is removed. Where other nodes
// read an inner value, that value stays and the pattern is still replaced: never wrong, at most some work twice. The
// functions are those of the formulas over the reals; float results differ by a few units in the last place.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/norm/norm.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using ops::BinaryFunction;
using ops::ReduceFunction;
using ops::UnaryFunction;
using Replacement = std::optional<ValueId>;

/// Matching helpers: each looks at the producer of a value and gives the operand or operands when it has the form.
class Match {
 public:
  explicit Match(const Rewriter& rewriter) : rewriter_(rewriter) {}

  const Node* binary(ValueId id, BinaryFunction function) const { return plain_binary(rewriter_, id, function); }
  const Node* unary(ValueId id, UnaryFunction function) const {
    const Node* node = rewriter_.producer(id, ops::kUnary);
    return node != nullptr && node->as<ops::UnaryParams>().function == function ? node : nullptr;
  }
  const Node* reduce(ValueId id, ReduceFunction function) const {
    const Node* node = rewriter_.producer(id);
    if (node == nullptr || node->op->name != "reduce") return nullptr;
    return node->as<ops::ReduceParams>().function == function ? node : nullptr;
  }
  /// The operand that is combined with a constant `number` (within float rounding of a written-out constant), either
  /// side for commutative functions; the constant does not change the shape.
  Replacement with(const Node& node, BinaryFunction function, float number) const {
    if (!is_plain_binary(node, function)) return std::nullopt;
    const bool commutes = function == BinaryFunction::kAdd || function == BinaryFunction::kMul;
    for (const std::size_t c : {std::size_t{1}, std::size_t{0}}) {
      if (c == 0 && !commutes) break;
      const auto value = splat(rewriter_.graph(), node.inputs[c]);
      if (value && std::abs(*value - number) <= 1e-5F * std::abs(number) && same_shape(node, 1 - c))
        return node.inputs[1 - c];
    }
    return std::nullopt;
  }
  Replacement with(ValueId id, BinaryFunction function, float number) const {
    const Node* node = rewriter_.producer(id);
    return node != nullptr ? with(*node, function, number) : std::nullopt;
  }
  /// x where the node is x * factor or x / (1 / factor).
  Replacement scaled(const Node& node, float factor) const {
    const auto product = with(node, BinaryFunction::kMul, factor);
    return product ? product : with(node, BinaryFunction::kDiv, 1.0F / factor);
  }
  Replacement scaled(ValueId id, float factor) const {
    const Node* node = rewriter_.producer(id);
    return node != nullptr ? scaled(*node, factor) : std::nullopt;
  }
  bool same_shape(const Node& node, std::size_t operand) const {
    return same_shape_and_type(rewriter_.desc(node.inputs[operand]), rewriter_.desc(node.outputs[0]));
  }
  bool is_f32(ValueId id) const { return rewriter_.desc(id).type == ElementType::kF32; }

 private:
  const Rewriter& rewriter_;
};

bool near(float a, float b) { return std::abs(a - b) <= 1e-5F; }

Replacement emit_unary(Rewriter& rewriter, UnaryFunction function, ValueId x, float a = 0.0F, float b = 0.0F) {
  return rewriter.emit(ops::kUnary, ops::UnaryParams{function, a, b}, {x});
}

/// The factors of a product, nested products opened up to a few levels; x * 0.5 * y gives {x, 0.5, y}.
void collect_factors(const Match& match, ValueId id, int depth, std::vector<ValueId>& factors) {
  const Node* node = depth > 0 ? match.binary(id, BinaryFunction::kMul) : nullptr;
  if (node == nullptr) {
    factors.push_back(id);
    return;
  }
  collect_factors(match, node->inputs[0], depth - 1, factors);
  collect_factors(match, node->inputs[1], depth - 1, factors);
}

/// True when `id` is a x^3 or a x x x: the cubic term of gelu_tanh.
bool is_cubic_term(const Rewriter& rewriter, const Match& match, ValueId id, ValueId x, float a) {
  std::vector<ValueId> factors;
  collect_factors(match, id, 3, factors);
  float number = 1.0F;
  int power = 0;
  for (const ValueId f : factors) {
    if (const auto value = splat(rewriter.graph(), f)) {
      number *= *value;
    } else if (f == x) {
      ++power;
    } else if (const Node* square = match.unary(f, UnaryFunction::kSquare);
               square != nullptr && square->inputs[0] == x) {
      power += 2;
    } else if (match.with(f, BinaryFunction::kPow, 3.0F) == x) {
      power += 3;
    } else {
      return false;
    }
  }
  return power == 3 && near(number, a);
}

/// True when `id` is sqrt(2 / pi) (x + 0.044715 x^3).
bool is_gelu_tanh_argument(const Rewriter& rewriter, const Match& match, ValueId id, ValueId x) {
  const auto sum = match.scaled(id, 0.7978845608F);
  const Node* add = sum ? match.binary(*sum, BinaryFunction::kAdd) : nullptr;
  if (add == nullptr) return false;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (add->inputs[i] == x && is_cubic_term(rewriter, match, add->inputs[1 - i], x, 0.044715F)) return true;
  return false;
}

/// gelu: the factors of the product are x, 0.5 and 1 + erf(x / sqrt 2) or 1 + tanh(...), in any order.
Replacement gelu(Rewriter& rewriter, const Match& match, const Node& node) {
  std::vector<ValueId> factors;
  collect_factors(match, node.inputs[0], 1, factors);
  collect_factors(match, node.inputs[1], 1, factors);
  if (factors.size() != 3) return std::nullopt;
  const auto half = std::find_if(factors.begin(), factors.end(), [&](ValueId id) {
    const auto value = splat(rewriter.graph(), id);
    return value && *value == 0.5F;
  });
  if (half == factors.end()) return std::nullopt;
  factors.erase(half);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const ValueId x = factors[i];
    const auto inner = match.with(factors[1 - i], BinaryFunction::kAdd, 1.0F);
    if (!inner || !same_shape_and_type(rewriter.desc(x), rewriter.desc(node.outputs[0]))) continue;
    if (const Node* erf = match.unary(*inner, UnaryFunction::kErf))
      if (match.scaled(erf->inputs[0], 0.70710678F) == x) return emit_unary(rewriter, UnaryFunction::kGelu, x);
    if (const Node* tanh = match.unary(*inner, UnaryFunction::kTanh))
      if (is_gelu_tanh_argument(rewriter, match, tanh->inputs[0], x))
        return emit_unary(rewriter, UnaryFunction::kGeluTanh, x);
  }
  return std::nullopt;
}

/// x when `id` is clip(x + 3, 0, 6).
Replacement relu6_of_x_plus_3(const Match& match, ValueId id) {
  const Node* clip = match.unary(id, UnaryFunction::kClip);
  if (clip == nullptr) return std::nullopt;
  const auto& p = clip->as<ops::UnaryParams>();
  return p.a == 0.0F && p.b == 6.0F ? match.with(clip->inputs[0], BinaryFunction::kAdd, 3.0F) : std::nullopt;
}

/// True when `id` is the gate that makes x * gate a hard swish.
bool is_hard_gate(const Match& match, ValueId id, ValueId x) {
  const Node* gate = match.unary(id, UnaryFunction::kHardSigmoid);
  if (gate == nullptr || gate->inputs[0] != x) return false;
  const auto& p = gate->as<ops::UnaryParams>();
  return near(p.a, 1.0F / 6.0F) && near(p.b, 0.5F);
}

/// hard_sigmoid and hard_swish as a sixth of something.
Replacement sixth(Rewriter& rewriter, const Match& match, const Node& node) {
  const auto whole = match.scaled(node, 1.0F / 6.0F);
  if (!whole) return std::nullopt;
  if (const auto x = relu6_of_x_plus_3(match, *whole))
    return emit_unary(rewriter, UnaryFunction::kHardSigmoid, *x, 1.0F / 6.0F, 0.5F);
  const Node* product = match.binary(*whole, BinaryFunction::kMul);
  if (product == nullptr) return std::nullopt;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (relu6_of_x_plus_3(match, product->inputs[1 - i]) == product->inputs[i])
      return emit_unary(rewriter, UnaryFunction::kHardSwish, product->inputs[i]);
  return std::nullopt;
}

/// Constants that scale and shift a norm and broadcast to its operand without enlarging it.
bool broadcasts_into(const Rewriter& rewriter, ValueId constant, ValueId x) {
  const TensorDesc& c = rewriter.desc(constant);
  const TensorDesc& d = rewriter.desc(x);
  if (!rewriter.graph().is_constant(constant) || c.type != ElementType::kF32 || c.rank > d.rank) return false;
  for (int i = 0; i < c.rank; ++i)
    if (c.last(i) != 1 && c.last(i) != d.last(i)) return false;
  return true;
}

/// norm(x) * constant or norm(x) + constant.
Replacement norm_affine(Rewriter& rewriter, const Node& node, std::size_t slot) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* norm = rewriter.producer(node.inputs[i], ops::kNorm);
    if (norm == nullptr || !rewriter.only_reader(node.inputs[i])) continue;
    if (!broadcasts_into(rewriter, node.inputs[1 - i], norm->inputs[0])) continue;
    std::vector<ValueId> inputs = norm->inputs;
    inputs.resize(3, kNone);
    // A scale must come before the bias, and neither twice.
    if (inputs[2] != kNone || inputs[slot] != kNone) continue;
    inputs[slot] = node.inputs[1 - i];
    rewriter.set_fused_source(*norm, node);
    return rewriter.emit(ops::kNorm, norm->params, std::move(inputs));
  }
  return std::nullopt;
}

Replacement product(Rewriter& rewriter, const Match& match, const Node& node) {
  const ValueId a = node.inputs[0];
  const ValueId b = node.inputs[1];
  if (a == b) return emit_unary(rewriter, UnaryFunction::kSquare, a);
  for (const auto& [x, gate] : {std::pair{a, b}, std::pair{b, a}}) {
    if (const Node* sigmoid = match.unary(gate, UnaryFunction::kSigmoid); sigmoid != nullptr && sigmoid->inputs[0] == x)
      return emit_unary(rewriter, UnaryFunction::kSilu, x);
    if (is_hard_gate(match, gate, x)) return emit_unary(rewriter, UnaryFunction::kHardSwish, x);
  }
  if (const auto y = sixth(rewriter, match, node)) return y;
  if (const auto y = gelu(rewriter, match, node)) return y;
  return norm_affine(rewriter, node, 1);
}

/// The mean over the axes `like` has (any axes when null), kept as dimensions, of what `id` reduces.
const Node* mean(const Match& match, ValueId id, const ops::IntList* like) {
  const Node* node = match.reduce(id, ReduceFunction::kMean);
  if (node == nullptr) return nullptr;
  const auto& p = node->as<ops::ReduceParams>();
  if (p.keep_dims == 0 || p.axes.size == 0) return nullptr;
  const bool same =
      like == nullptr || (like->size == p.axes.size && std::equal(p.axes.v, p.axes.v + p.axes.size, like->v));
  return same ? node : nullptr;
}

/// What is under the root: the denominator is sqrt(v), or the factor is rsqrt(v).
Replacement under_root(const Match& match, ValueId id, UnaryFunction root) {
  if (const Node* node = match.unary(id, root)) return node->inputs[0];
  return std::nullopt;
}

/// x when `centred` is x - mean(x) over these axes.
Replacement before_centring(const Rewriter& rewriter, const Match& match, ValueId centred, const ops::IntList& axes) {
  const Node* subtract = match.binary(centred, BinaryFunction::kSub);
  const Node* centre = subtract != nullptr ? mean(match, subtract->inputs[1], &axes) : nullptr;
  if (centre == nullptr || centre->inputs[0] != subtract->inputs[0]) return std::nullopt;
  const ValueId x = subtract->inputs[0];
  return same_shape_and_type(rewriter.desc(x), rewriter.desc(centred)) ? Replacement(x) : std::nullopt;
}

/// `x` / sqrt(variance), where variance = mean(x^2) + epsilon: layer normalisation where x is centred, else that by the
/// root of the mean square.
Replacement norm(Rewriter& rewriter, const Match& match, ValueId x, ValueId variance) {
  const Node* add = match.binary(variance, BinaryFunction::kAdd);
  if (add == nullptr) return std::nullopt;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto epsilon = splat(rewriter.graph(), add->inputs[1 - i]);
    const Node* spread = mean(match, add->inputs[i], nullptr);
    // An epsilon of another shape might enlarge the result.
    if (!epsilon || spread == nullptr || !match.same_shape(*add, i)) continue;
    const Node* square = match.unary(spread->inputs[0], UnaryFunction::kSquare);
    if (square == nullptr || square->inputs[0] != x) continue;
    const ops::IntList axes = spread->as<ops::ReduceParams>().axes;
    const auto centred = before_centring(rewriter, match, x, axes);
    return rewriter.emit(ops::kNorm, ops::NormParams{axes, *epsilon, centred ? 0 : 1}, {centred.value_or(x)});
  }
  return std::nullopt;
}

Replacement softmax(Rewriter& rewriter, const Match& match, const Node& node) {
  const Node* sum = match.reduce(node.inputs[1], ReduceFunction::kSum);
  const Node* exp = match.unary(node.inputs[0], UnaryFunction::kExp);
  if (sum == nullptr || exp == nullptr || sum->inputs[0] != node.inputs[0]) return std::nullopt;
  const auto& p = sum->as<ops::ReduceParams>();
  const Node* shifted = match.binary(exp->inputs[0], BinaryFunction::kSub);
  const Node* max = shifted != nullptr ? match.reduce(shifted->inputs[1], ReduceFunction::kMax) : nullptr;
  if (max == nullptr || p.keep_dims == 0 || p.axes.size != 1) return std::nullopt;
  const ValueId x = shifted->inputs[0];
  const auto& q = max->as<ops::ReduceParams>();
  if (max->inputs[0] != x || q.keep_dims == 0 || q.axes.size != 1 || q.axes.v[0] != p.axes.v[0]) return std::nullopt;
  return rewriter.emit(ops::kSoftmax, ops::SoftmaxParams{p.axes.v[0], 0}, {x});
}

Replacement quotient(Rewriter& rewriter, const Match& match, const Node& node) {
  if (const auto variance = under_root(match, node.inputs[1], UnaryFunction::kSqrt)) {
    const auto one = splat(rewriter.graph(), node.inputs[0]);
    if (one && *one == 1.0F && match.same_shape(node, 1)) return emit_unary(rewriter, UnaryFunction::kRsqrt, *variance);
    if (const auto y = norm(rewriter, match, node.inputs[0], *variance)) return y;
  }
  if (const auto y = sixth(rewriter, match, node)) return y;
  return softmax(rewriter, match, node);
}

/// min and max with scalars, one or two, as relu or clip. NaN stays NaN in both forms.
Replacement clip(Rewriter& rewriter, const Match& match, const Node& node) {
  const bool upper = is_plain_binary(node, BinaryFunction::kMin);
  for (const std::size_t c : {std::size_t{1}, std::size_t{0}}) {
    const auto bound = splat(rewriter.graph(), node.inputs[c]);
    const ValueId x = node.inputs[1 - c];
    if (!bound || std::isnan(*bound) || !match.same_shape(node, 1 - c)) continue;
    const Node* relu = match.unary(x, UnaryFunction::kRelu);
    if (upper && relu != nullptr && *bound >= 0.0F)
      return emit_unary(rewriter, UnaryFunction::kClip, relu->inputs[0], 0.0F, *bound);
    if (!upper && *bound == 0.0F && match.binary(x, BinaryFunction::kMin) == nullptr)
      return emit_unary(rewriter, UnaryFunction::kRelu, x);
    const Node* inner = match.binary(x, upper ? BinaryFunction::kMax : BinaryFunction::kMin);
    if (inner == nullptr) return std::nullopt;
    for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const auto other = splat(rewriter.graph(), inner->inputs[i]);
      if (!other || std::isnan(*other) || !match.same_shape(*inner, 1 - i)) continue;
      const float low = upper ? *other : *bound;
      const float high = upper ? *bound : *other;
      if (low <= high) return emit_unary(rewriter, UnaryFunction::kClip, inner->inputs[1 - i], low, high);
    }
  }
  return std::nullopt;
}

Replacement binary(Rewriter& rewriter, const Node& node) {
  const Match match(rewriter);
  const auto& p = node.as<ops::BinaryParams>();
  if (p.activation.function != UnaryFunction::kIdentity || !match.is_f32(node.outputs[0])) return std::nullopt;
  switch (p.function) {
    case BinaryFunction::kMul: {
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
        if (const auto variance = under_root(match, node.inputs[1 - i], UnaryFunction::kRsqrt))
          if (const auto y = norm(rewriter, match, node.inputs[i], *variance)) return y;
      return product(rewriter, match, node);
    }
    case BinaryFunction::kDiv: return quotient(rewriter, match, node);
    case BinaryFunction::kAdd: return norm_affine(rewriter, node, 2);
    case BinaryFunction::kMin:
    case BinaryFunction::kMax: return clip(rewriter, match, node);
    case BinaryFunction::kPow: {
      const auto x = match.with(node, BinaryFunction::kPow, 2.0F);
      return x ? emit_unary(rewriter, UnaryFunction::kSquare, *x) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

Replacement unary(Rewriter& rewriter, const Node& node) {
  const Match match(rewriter);
  if (node.as<ops::UnaryParams>().function != UnaryFunction::kReciprocal || !match.is_f32(node.outputs[0]))
    return std::nullopt;
  const auto x = under_root(match, node.inputs[0], UnaryFunction::kSqrt);
  return x ? emit_unary(rewriter, UnaryFunction::kRsqrt, *x) : std::nullopt;
}

/// Squares that nothing else reads need not be stored.
Replacement reduction(Rewriter& rewriter, const Node& node) {
  const Match match(rewriter);
  const Node* square = match.unary(node.inputs[0], UnaryFunction::kSquare);
  auto params = node.as<ops::ReduceParams>();
  if (params.function != ReduceFunction::kSum || square == nullptr) return std::nullopt;
  if (!match.is_f32(node.outputs[0]) || !rewriter.only_reader(node.inputs[0])) return std::nullopt;
  params.function = ReduceFunction::kSumSquare;
  rewriter.set_fused_source(*square, node);
  return rewriter.emit(ops::kReduce, params, {square->inputs[0]});
}

}  // namespace

Result<bool> recognize_functions(graph::Graph& graph) {
  // Both sides of a pattern must name one value, where exporters write an expression twice.
  const auto shared = common_subexpressions(graph);
  if (!shared) return shared;
  const auto recognized = Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    if (node.is(ops::kBinary)) return binary(rewriter, node);
    if (node.is(ops::kUnary)) return unary(rewriter, node);
    if (node.is(ops::kReduce)) return reduction(rewriter, node);
    return std::nullopt;
  });
  return recognized ? Result<bool>(*shared || *recognized) : recognized;
}

}  // namespace bantam::passes
