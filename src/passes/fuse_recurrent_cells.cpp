// Computes a step of an LSTM or a GRU that exporters write out as arithmetic by the operator that has it.
//
//   gates = x W + h R + b            in any order, or [x, h] (W over R) + b; each gate is a slice of it
//   c' = s(f) c + s(i) t(g)          each gate may add a constant of its own, such as a forget bias
//   h' = s(o) u(c')                  -> lstm of one position
//
//   a = x W + b, e = h R + d         of which z, r and n have a slice each
//   n = t(a_n + s(a_r + e_r) e_n), z = s(a_z + e_z)
//   h' = n + z (h - n), or z h + (1 - z) n -> gru of one position that multiplies before the reset
//
// Weights are given the standard's order of gates. s, t and u are sigmoid and tanh, or others that the operator knows.
// What else reads the gates keeps a product from being replaced, as it would be computed twice. The sums are the same
// over the reals; float results differ by a few units in the last place.
#include <array>
#include <map>
#include <span>
#include <utility>

#include "ops/data/concat/concat.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/matmul/matmul.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using ops::BinaryFunction;
using ops::RnnActivation;
using ops::RnnFunction;
using ops::UnaryFunction;
using Replacement = std::optional<ValueId>;

std::int64_t last_dim(const TensorDesc& desc) { return desc.dims[desc.rank - 1]; }

/// A constant that is a row of `width` numbers or one number.
bool is_row(const Rewriter& rewriter, ValueId id, std::int64_t width) {
  const TensorDesc& d = rewriter.desc(id);
  const std::int64_t elements = d.elements();
  return rewriter.graph().is_constant(id) && d.type == ElementType::kF32 &&
         (elements == 1 || (elements == width && d.rank > 0 && last_dim(d) == width));
}

/// Rows of constant weights that `x` is multiplied with.
struct Product {
  ValueId x = kNone;
  ValueId weights = kNone;  ///< [K,N], or [N,K] where `transposed`
  bool transposed = false;
  std::int64_t first = 0;  ///< the row that the first of x meets
  std::int64_t rows = 0;   ///< the width of x
};

/// What is added up to gates.
struct Sum {
  std::vector<Product> products;
  std::vector<ValueId> biases;  ///< rows of the gates' width, or single numbers
};

/// Adds the product `node` and its bias.
bool read_product(const Rewriter& rewriter, const Node& node, Sum* sum) {
  const auto& p = node.as<ops::MatmulParams>();
  const ValueId x = node.inputs[0];
  const graph::Value& w = rewriter.value(node.inputs[1]);
  if (p.transpose_a != 0 || p.activation.function != UnaryFunction::kIdentity || !w.constant || w.desc.rank != 2 ||
      w.desc.type != ElementType::kF32 || w.quantized_source || rewriter.desc(x).type != ElementType::kF32)
    return false;
  if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
    if (!is_row(rewriter, node.inputs[2], last_dim(rewriter.desc(node.outputs[0])))) return false;
    sum->biases.push_back(node.inputs[2]);
  }
  sum->products.push_back({x, node.inputs[1], p.transpose_b != 0, 0, last_dim(rewriter.desc(x))});
  return true;
}

/// Makes two products of one whose left side is two tensors side by side.
void split_product(const Rewriter& rewriter, Sum* sum) {
  const Product whole = sum->products[0];
  const Node* concat = rewriter.producer(whole.x, ops::kConcat);
  if (concat == nullptr || concat->inputs.size() != 2 ||
      concat->as<ops::ConcatParams>().axis != rewriter.desc(whole.x).rank - 1)
    return;
  sum->products.clear();
  std::int64_t first = 0;
  for (const ValueId x : concat->inputs) {
    const std::int64_t rows = last_dim(rewriter.desc(x));
    sum->products.push_back({x, whole.weights, whole.transposed, first, rows});
    first += rows;
  }
}

/// Reads the terms that `id`, of the gates' shape, adds up. A number of terms that no cell has ends it, so that its
/// depth is bounded.
bool read_sum(const Rewriter& rewriter, ValueId id, const TensorDesc& gates, Sum* sum) {
  if (sum->products.size() > 2 || sum->biases.size() > 4 || !same_shape_and_type(rewriter.desc(id), gates))
    return false;
  if (const Node* product = rewriter.producer(id, ops::kMatmul)) return read_product(rewriter, *product, sum);
  const Node* add = plain_binary(rewriter, id, BinaryFunction::kAdd);
  if (add == nullptr) return false;
  for (const ValueId term : add->inputs) {
    if (is_row(rewriter, term, last_dim(gates))) {
      sum->biases.push_back(term);
    } else if (!rewriter.only_reader(term) || !read_sum(rewriter, term, gates, sum)) {
      return false;
    }
  }
  return true;
}

/// A part of the gates, with what is added to it alone, and the function of it.
struct Gate {
  ValueId sum = kNone;
  std::int64_t start = 0;
  std::vector<ValueId> biases;
  RnnActivation activation;
};

bool same(const RnnActivation& a, const RnnActivation& b) {
  return a.function == b.function && a.alpha == b.alpha && a.beta == b.beta;
}

std::optional<RnnActivation> rnn_activation(const Node& node) {
  const auto& p = node.as<ops::UnaryParams>();
  switch (p.function) {
    case UnaryFunction::kSigmoid: return RnnActivation{RnnFunction::kSigmoid};
    case UnaryFunction::kTanh: return RnnActivation{RnnFunction::kTanh};
    case UnaryFunction::kRelu: return RnnActivation{RnnFunction::kRelu};
    case UnaryFunction::kHardSigmoid: return RnnActivation{RnnFunction::kHardSigmoid, p.a, p.b};
    default: return std::nullopt;
  }
}

/// A slice along the last axis.
struct Part {
  ValueId whole = kNone;
  std::int64_t start = 0;
};

/// The one of `count` equal parts of something that `id` is.
std::optional<Part> read_part(const Rewriter& rewriter, ValueId id, std::int64_t count) {
  const Node* slice = rewriter.producer(id, ops::kSlice);
  if (slice == nullptr) return std::nullopt;
  const auto& p = slice->as<ops::SliceParams>();
  const TensorDesc& whole = rewriter.desc(slice->inputs[0]);
  const TensorDesc& part = rewriter.desc(id);
  for (int i = 0; i < whole.rank - 1; ++i)
    if (p.steps.v[i] != 1 || whole.dims[i] != part.dims[i]) return std::nullopt;
  if (whole.rank == 0 || p.steps.v[whole.rank - 1] != 1 || last_dim(whole) != count * last_dim(part))
    return std::nullopt;
  return Part{slice->inputs[0], p.starts.v[whole.rank - 1]};
}

/// The function that gives `id`, if the operators have it.
std::optional<RnnActivation> read_function(const Rewriter& rewriter, ValueId id, ValueId* x) {
  const Node* function = rewriter.producer(id, ops::kUnary);
  if (function == nullptr) return std::nullopt;
  *x = function->inputs[0];
  return rnn_activation(*function);
}

/// The gate of an LSTM that `id` is, its function applied.
std::optional<Gate> read_gate(const Rewriter& rewriter, ValueId id) {
  Gate gate;
  ValueId x = kNone;
  const auto activation = read_function(rewriter, id, &x);
  if (!activation) return std::nullopt;
  gate.activation = *activation;
  if (const Node* add = plain_binary(rewriter, x, BinaryFunction::kAdd)) {
    const std::int64_t width = rewriter.desc(x).rank > 0 ? last_dim(rewriter.desc(x)) : 0;
    const std::size_t constant = is_row(rewriter, add->inputs[1], width) ? 1 : 0;
    if (!is_row(rewriter, add->inputs[constant], width)) return std::nullopt;
    gate.biases.push_back(add->inputs[constant]);
    x = add->inputs[1 - constant];
  }
  const auto part = read_part(rewriter, x, 4);
  if (!part || !same_shape_and_type(rewriter.desc(x), rewriter.desc(id))) return std::nullopt;
  gate.sum = part->whole;
  gate.start = part->start;
  return gate;
}

/// The gates in the standard's order.
enum GateIndex : std::size_t { kInput, kOutput, kForget, kCandidate, kGates };

struct Cell {
  std::array<Gate, kGates> gates;
  RnnActivation out;  ///< of the cell on its way out
  ValueId c = kNone;  ///< the cell's state before the step
};

/// Reads c' = s(f) c + s(i) t(g), all gates but the output's.
bool read_state(const Rewriter& rewriter, const Node& add, Cell* cell) {
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}}) {
    const Node* old = plain_binary(rewriter, add.inputs[kept], BinaryFunction::kMul);
    const Node* fresh = plain_binary(rewriter, add.inputs[1 - kept], BinaryFunction::kMul);
    if (old == nullptr || fresh == nullptr) return false;
    auto input = read_gate(rewriter, fresh->inputs[0]);
    auto candidate = read_gate(rewriter, fresh->inputs[1]);
    if (!input || !candidate || input->sum != candidate->sum) continue;
    for (const std::size_t gate : {std::size_t{0}, std::size_t{1}}) {
      const auto forget = read_gate(rewriter, old->inputs[gate]);
      if (!forget || forget->sum != input->sum) continue;
      if (!same(input->activation, forget->activation)) std::swap(input, candidate);
      if (!same(input->activation, forget->activation)) continue;
      cell->gates[kInput] = *input;
      cell->gates[kForget] = *forget;
      cell->gates[kCandidate] = *candidate;
      cell->c = old->inputs[1 - gate];
      return same_shape_and_type(rewriter.desc(cell->c), rewriter.desc(add.outputs[0]));
    }
  }
  return false;
}

/// True when the gates are the four parts of one sum, with one function but for the candidate.
bool gates_fit(const Cell& cell) {
  const auto& gates = cell.gates;
  if (!same(gates[kOutput].activation, gates[kForget].activation)) return false;
  for (std::size_t a = 0; a < kGates; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (gates[a].sum != gates[b].sum || gates[a].start == gates[b].start) return false;
  return true;
}

/// The weights of a product as [1, gates * H, K], for gates that begin at these columns.
ValueId weights_of(Rewriter& rewriter, const Product& product, std::span<const std::int64_t> starts,
                   std::int64_t hidden) {
  const std::vector<float> source = *graph::constant_floats(rewriter.graph(), product.weights);
  const TensorDesc& d = rewriter.desc(product.weights);
  const std::int64_t k_step = product.transposed ? 1 : d.dims[1];
  const std::int64_t n_step = product.transposed ? d.dims[1] : 1;
  const std::int64_t columns = static_cast<std::int64_t>(starts.size()) * hidden;
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(columns * product.rows));
  for (const std::int64_t start : starts)
    for (std::int64_t n = start; n < start + hidden; ++n)
      for (std::int64_t k = 0; k < product.rows; ++k)
        weights.push_back(source[static_cast<std::size_t>((product.first + k) * k_step + n * n_step)]);
  return rewriter.constant<float>(std::array{std::int64_t{1}, columns, product.rows}, weights);
}

/// Adds the numbers of `rows` from column `start` on to a gate's bias.
void add_biases(const Rewriter& rewriter, std::span<const ValueId> rows, std::int64_t start, std::span<float> bias) {
  for (const ValueId row : rows) {
    const std::vector<float> elements = *graph::constant_floats(rewriter.graph(), row);
    for (std::size_t j = 0; j < bias.size(); ++j)
      bias[j] += elements[elements.size() == 1 ? 0 : static_cast<std::size_t>(start) + j];
  }
}

/// A bias of both products, as [1, size].
ValueId bias_constant(Rewriter& rewriter, std::span<const float> bias) {
  return rewriter.constant<float>(std::array{std::int64_t{1}, static_cast<std::int64_t>(bias.size())}, bias);
}

/// A tensor of rows as [1,rows,width].
Replacement rows_of(Rewriter& rewriter, ValueId id) {
  TensorDesc rows = rewriter.desc(id);
  const std::int32_t width = rows.last(0);
  const std::int64_t count = width > 0 ? rows.elements() / width : 0;
  rows.rank = 3;
  rows.dims[0] = 1;
  rows.dims[1] = static_cast<std::int32_t>(count);
  rows.dims[2] = width;
  return rewriter.reshape(id, rows);
}

/// The same functions in both directions.
template <std::size_t kCount>
ops::RnnActivations<static_cast<int>(kCount)> activations_of(const std::array<RnnActivation, kCount>& functions) {
  ops::RnnActivations<static_cast<int>(kCount)> all;
  for (std::size_t i = 0; i < 2 * kCount; ++i) {
    all.functions[i] = functions[i % kCount].function;
    all.alpha[i] = functions[i % kCount].alpha;
    all.beta[i] = functions[i % kCount].beta;
  }
  return all;
}

/// h' and what it is made of, besides the state.
struct Output {
  ValueId h = kNone;
  Gate gate;
  RnnActivation function;
};

/// Reads h' = s(o) u(c').
std::optional<std::pair<ValueId, Output>> read_output(const Rewriter& rewriter, const Node& node) {
  for (const std::size_t state : {std::size_t{0}, std::size_t{1}}) {
    ValueId c = kNone;
    const auto activation = read_function(rewriter, node.inputs[state], &c);
    if (!activation || plain_binary(rewriter, c, BinaryFunction::kAdd) == nullptr) continue;
    const auto gate = read_gate(rewriter, node.inputs[1 - state]);
    if (gate && same_shape_and_type(rewriter.desc(node.outputs[0]), rewriter.desc(c)))
      return std::pair{c, Output{node.outputs[0], *gate, *activation}};
  }
  return std::nullopt;
}

class LstmFusion {
 public:
  /// Finds the outputs that cells may have. Their states come first in the graph's order, so that who reads these
  /// reads the operator.
  LstmFusion(const Rewriter& rewriter, const graph::Graph& graph) {
    for (const Node& node : graph.nodes)
      if (is_plain_binary(node, BinaryFunction::kMul))
        if (auto output = read_output(rewriter, node)) outputs_.insert(std::move(*output));
  }

  Replacement operator()(Rewriter& rewriter, const Node& node) {
    if (const auto h = results_.find(node.outputs[0]); h != results_.end())
      return rewriter.reshape(h->second, rewriter.desc(node.outputs[0]));
    const auto output = outputs_.find(node.outputs[0]);
    return output != outputs_.end() ? state(rewriter, node, output->second) : std::nullopt;
  }

 private:
  /// The state after the step, by the operator.
  Replacement state(Rewriter& rewriter, const Node& node, const Output& output) {
    Cell cell;
    cell.gates[kOutput] = output.gate;
    cell.out = output.function;
    if (!read_state(rewriter, node, &cell) || !gates_fit(cell)) return std::nullopt;
    const ValueId gates = cell.gates[kInput].sum;
    const TensorDesc after = rewriter.desc(node.outputs[0]);
    Sum sum;
    if (rewriter.readers(gates) != kGates || !read_sum(rewriter, gates, rewriter.desc(gates), &sum))
      return std::nullopt;
    if (sum.products.size() == 1) split_product(rewriter, &sum);
    // For a single step either product may be the recurrent one. Exporters write it last.
    const std::int64_t hidden = last_dim(after);
    if (sum.products.size() != 2) return std::nullopt;
    if (sum.products[1].rows != hidden) std::swap(sum.products[0], sum.products[1]);
    if (sum.products[1].rows != hidden) return std::nullopt;

    rewriter.set_fused_source(*rewriter.producer(gates), node);
    const auto x = rows_of(rewriter, sum.products[0].x);
    const auto h = rows_of(rewriter, sum.products[1].x);
    const auto c = rows_of(rewriter, cell.c);
    if (!x || !h || !c) return std::nullopt;
    ops::LstmParams params;
    params.activations =
        activations_of<3>({cell.gates[kInput].activation, cell.gates[kCandidate].activation, cell.out});
    std::array<std::int64_t, kGates> starts{};
    std::vector<float> bias(static_cast<std::size_t>(2 * kGates * hidden), 0.0F);
    for (std::size_t g = 0; g < kGates; ++g) {
      const Gate& gate = cell.gates[g];
      const std::span<float> own(&bias[g * static_cast<std::size_t>(hidden)], static_cast<std::size_t>(hidden));
      starts[g] = gate.start;
      add_biases(rewriter, sum.biases, gate.start, own);
      add_biases(rewriter, gate.biases, 0, own);
    }
    const ValueId w = weights_of(rewriter, sum.products[0], starts, hidden);
    const ValueId r = weights_of(rewriter, sum.products[1], starts, hidden);
    const ValueId b = bias_constant(rewriter, bias);
    const auto results = rewriter.emit_all(ops::kLstm, graph::Params::of(params), {*x, w, r, b, kNone, *h, *c, kNone});
    const auto state = results ? rewriter.reshape((*results)[2], after) : std::nullopt;
    if (state) results_.emplace(output.h, (*results)[1]);
    return state;
  }

  std::map<ValueId, Output> outputs_;   ///< by the state that they are made of
  std::map<ValueId, ValueId> results_;  ///< by the output they stand for, what the operator gives
};

/// A gate of a GRU: the function of the sum of a part of each product, with its bias.
struct GruGate {
  Part parts[2];
  RnnActivation activation;

  /// Where it begins in `whole`, of which it must have a part, as of `other`.
  std::optional<std::int64_t> start_in(ValueId whole, ValueId other) const {
    if (parts[0].whole == whole && parts[1].whole == other) return parts[0].start;
    if (parts[1].whole == whole && parts[0].whole == other) return parts[1].start;
    return std::nullopt;
  }
};

std::optional<GruGate> read_gru_gate(const Rewriter& rewriter, ValueId id) {
  ValueId x = kNone;
  const auto activation = read_function(rewriter, id, &x);
  const Node* add = activation ? plain_binary(rewriter, x, BinaryFunction::kAdd) : nullptr;
  if (add == nullptr) return std::nullopt;
  const auto a = read_part(rewriter, add->inputs[0], 3);
  const auto b = read_part(rewriter, add->inputs[1], 3);
  if (!a || !b) return std::nullopt;
  return GruGate{{*a, *b}, *activation};
}

/// The candidate t(a_n + r e_n).
struct GruCandidate {
  Part input;  ///< a_n
  Part state;  ///< e_n
  GruGate reset;
  RnnActivation activation;
};

std::optional<GruCandidate> read_candidate(const Rewriter& rewriter, ValueId id) {
  ValueId x = kNone;
  const auto activation = read_function(rewriter, id, &x);
  const Node* add = activation ? plain_binary(rewriter, x, BinaryFunction::kAdd) : nullptr;
  if (add == nullptr) return std::nullopt;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* product = plain_binary(rewriter, add->inputs[i], BinaryFunction::kMul);
    const auto input = read_part(rewriter, add->inputs[1 - i], 3);
    if (product == nullptr || !input) continue;
    for (const std::size_t j : {std::size_t{0}, std::size_t{1}}) {
      const auto reset = read_gru_gate(rewriter, product->inputs[j]);
      const auto state = read_part(rewriter, product->inputs[1 - j], 3);
      if (reset && state) return GruCandidate{*input, *state, *reset, *activation};
    }
  }
  return std::nullopt;
}

/// What a GRU's state is mixed of: z h + (1 - z) n.
struct Mix {
  ValueId z = kNone;
  ValueId h = kNone;
  ValueId n = kNone;
};

/// n + z (h - n).
std::optional<Mix> read_step_towards(const Rewriter& rewriter, const Node& add) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* step = plain_binary(rewriter, add.inputs[1 - i], BinaryFunction::kMul);
    for (const std::size_t j : {std::size_t{0}, std::size_t{1}}) {
      const Node* way = step != nullptr ? plain_binary(rewriter, step->inputs[j], BinaryFunction::kSub) : nullptr;
      if (way != nullptr && way->inputs[1] == add.inputs[i])
        return Mix{step->inputs[1 - j], way->inputs[0], add.inputs[i]};
    }
  }
  return std::nullopt;
}

/// z h + (1 - z) n.
std::optional<Mix> read_weighted_sum(const Rewriter& rewriter, const Node& add) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Node* kept = plain_binary(rewriter, add.inputs[i], BinaryFunction::kMul);
    const Node* fresh = plain_binary(rewriter, add.inputs[1 - i], BinaryFunction::kMul);
    if (kept == nullptr || fresh == nullptr) return std::nullopt;
    for (const std::size_t j : {std::size_t{0}, std::size_t{1}}) {
      const Node* rest = plain_binary(rewriter, fresh->inputs[j], BinaryFunction::kSub);
      if (rest == nullptr || splat(rewriter.graph(), rest->inputs[0]) != 1.0F) continue;
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
        if (kept->inputs[k] == rest->inputs[1]) return Mix{rest->inputs[1], kept->inputs[1 - k], fresh->inputs[1 - j]};
    }
  }
  return std::nullopt;
}

/// What `id` is without the reshapes before it.
ValueId without_reshapes(const Rewriter& rewriter, ValueId id) {
  while (const Node* reshape = rewriter.producer(id, ops::kReshape)) id = reshape->inputs[0];
  return id;
}

/// One product and its biases, that nobody but its three gates reads.
bool read_gru_sum(const Rewriter& rewriter, ValueId id, Sum* sum) {
  return rewriter.readers(id) == 3 && read_sum(rewriter, id, rewriter.desc(id), sum) && sum->products.size() == 1;
}

/// The state after a step of a GRU, by the operator.
Replacement fuse_gru(Rewriter& rewriter, const Node& node) {
  if (!is_plain_binary(node, BinaryFunction::kAdd)) return std::nullopt;
  const TensorDesc after = rewriter.desc(node.outputs[0]);
  auto mix = read_step_towards(rewriter, node);
  if (!mix) mix = read_weighted_sum(rewriter, node);
  const auto update = mix ? read_gru_gate(rewriter, mix->z) : std::nullopt;
  const auto candidate = update ? read_candidate(rewriter, mix->n) : std::nullopt;
  if (!candidate || !same(update->activation, candidate->reset.activation)) return std::nullopt;
  const ValueId input = candidate->input.whole;
  const ValueId state = candidate->state.whole;
  const GruGate* gates[] = {&*update, &candidate->reset};
  std::array<std::int64_t, 3> input_starts{};
  std::array<std::int64_t, 3> state_starts{};
  for (std::size_t g = 0; g < 2; ++g) {
    const auto in_input = gates[g]->start_in(input, state);
    const auto in_state = gates[g]->start_in(state, input);
    if (!in_input || !in_state) return std::nullopt;
    input_starts[g] = *in_input;
    state_starts[g] = *in_state;
  }
  input_starts[2] = candidate->input.start;
  state_starts[2] = candidate->state.start;
  Sum of_input;
  Sum of_state;
  if (input == state || !read_gru_sum(rewriter, input, &of_input) || !read_gru_sum(rewriter, state, &of_state) ||
      !same_shape_and_type(rewriter.desc(input), rewriter.desc(state)) ||
      !same_shape_and_type(rewriter.desc(mix->h), after) || !same_shape_and_type(rewriter.desc(mix->n), after) ||
      without_reshapes(rewriter, of_state.products[0].x) != without_reshapes(rewriter, mix->h))
    return std::nullopt;

  rewriter.set_fused_source(*rewriter.producer(input), node);
  const std::int64_t hidden = last_dim(after);
  std::vector<float> bias(static_cast<std::size_t>(6 * hidden), 0.0F);
  for (std::size_t g = 0; g < 3; ++g) {
    const auto width = static_cast<std::size_t>(hidden);
    add_biases(rewriter, of_input.biases, input_starts[g], {&bias[g * width], width});
    add_biases(rewriter, of_state.biases, state_starts[g], {&bias[(3 + g) * width], width});
  }
  const auto x = rows_of(rewriter, of_input.products[0].x);
  const auto h = rows_of(rewriter, mix->h);
  if (!x || !h) return std::nullopt;
  ops::GruParams params{.linear_before_reset = 1};
  params.activations = activations_of<2>({update->activation, candidate->activation});
  const ValueId w = weights_of(rewriter, of_input.products[0], input_starts, hidden);
  const ValueId r = weights_of(rewriter, of_state.products[0], state_starts, hidden);
  const ValueId b = bias_constant(rewriter, bias);
  const auto results = rewriter.emit_all(ops::kGru, graph::Params::of(params), {*x, w, r, b, kNone, *h});
  return results ? rewriter.reshape((*results)[1], after) : std::nullopt;
}

}  // namespace

Result<bool> fuse_recurrent_cells(graph::Graph& graph) {
  Rewriter rewriter(graph);
  LstmFusion lstm(rewriter, graph);
  return rewriter.sweep([&](Rewriter& r, const Node& node) -> Replacement {
    if (!node.is(ops::kBinary)) return std::nullopt;
    const auto state = lstm(r, node);
    return state ? state : fuse_gru(r, node);
  });
}

}  // namespace bantam::passes
