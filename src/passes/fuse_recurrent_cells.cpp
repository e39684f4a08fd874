// Computes a step of an LSTM that exporters write out as arithmetic by the operator that has it.
//
//   gates = x W + h R + b            in any order, or [x, h] (W over R) + b; each gate is a slice of it
//   c' = s(f) c + s(i) t(g)          each gate may add a constant of its own, such as a forget bias
//   h' = s(o) u(c')                  -> lstm of one position, whose weights have the standard's order of gates
//
// s, t and u are sigmoid and tanh, or others that the operator knows. What else reads the gates keeps a product from
// being replaced, as it would be computed twice. The sums are the same over the reals; float results differ by a few
// units in the last place.
#include <algorithm>
#include <array>
#include <map>

#include "ops/data/concat/concat.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
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

const Node* binary(const Rewriter& rewriter, ValueId id, BinaryFunction function) {
  const Node* node = rewriter.producer(id, ops::kBinary);
  if (node == nullptr) return nullptr;
  const auto& p = node->as<ops::BinaryParams>();
  return p.function == function && p.activation.function == UnaryFunction::kIdentity ? node : nullptr;
}

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
  const Node* add = binary(rewriter, id, BinaryFunction::kAdd);
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

/// Where `id` begins in what it is a slice of along the last axis alone.
std::optional<std::int64_t> start_of_slice(const Rewriter& rewriter, const Node& slice) {
  const auto& p = slice.as<ops::SliceParams>();
  const TensorDesc& whole = rewriter.desc(slice.inputs[0]);
  const TensorDesc& part = rewriter.desc(slice.outputs[0]);
  for (int i = 0; i < whole.rank - 1; ++i)
    if (p.steps.v[i] != 1 || whole.dims[i] != part.dims[i]) return std::nullopt;
  if (whole.rank == 0 || p.steps.v[whole.rank - 1] != 1 || last_dim(whole) != 4 * last_dim(part)) return std::nullopt;
  return p.starts.v[whole.rank - 1];
}

/// The gate that `id` is, its function applied.
std::optional<Gate> read_gate(const Rewriter& rewriter, ValueId id) {
  const Node* function = rewriter.producer(id, ops::kUnary);
  const auto activation = function != nullptr ? rnn_activation(*function) : std::nullopt;
  if (!activation) return std::nullopt;
  Gate gate;
  gate.activation = *activation;
  ValueId x = function->inputs[0];
  if (const Node* add = binary(rewriter, x, BinaryFunction::kAdd)) {
    const std::int64_t width = rewriter.desc(x).rank > 0 ? last_dim(rewriter.desc(x)) : 0;
    const std::size_t constant = is_row(rewriter, add->inputs[1], width) ? 1 : 0;
    if (!is_row(rewriter, add->inputs[constant], width)) return std::nullopt;
    gate.biases.push_back(add->inputs[constant]);
    x = add->inputs[1 - constant];
  }
  const Node* slice = rewriter.producer(x, ops::kSlice);
  const auto start = slice != nullptr && same_shape_and_type(rewriter.desc(x), rewriter.desc(id))
                         ? start_of_slice(rewriter, *slice)
                         : std::nullopt;
  if (!start) return std::nullopt;
  gate.sum = slice->inputs[0];
  gate.start = *start;
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
    const Node* old = binary(rewriter, add.inputs[kept], BinaryFunction::kMul);
    const Node* fresh = binary(rewriter, add.inputs[1 - kept], BinaryFunction::kMul);
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

/// The weights of a product as [1,4H,K] in the standard's order of gates.
ValueId weights_of(Rewriter& rewriter, const Product& product, const Cell& cell, std::int64_t hidden) {
  const std::vector<float> source = *graph::constant_floats(rewriter.graph(), product.weights);
  const TensorDesc& d = rewriter.desc(product.weights);
  const std::int64_t k_step = product.transposed ? 1 : d.dims[1];
  const std::int64_t n_step = product.transposed ? d.dims[1] : 1;
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(4 * hidden * product.rows));
  for (const Gate& gate : cell.gates)
    for (std::int64_t j = 0; j < hidden; ++j)
      for (std::int64_t k = 0; k < product.rows; ++k)
        weights.push_back(source[static_cast<std::size_t>((product.first + k) * k_step + (gate.start + j) * n_step)]);
  return rewriter.constant<float>(std::array{std::int64_t{1}, 4 * hidden, product.rows}, weights);
}

/// The biases as [1,8H], those of the recurrent product zero.
ValueId bias_of(Rewriter& rewriter, const Sum& sum, const Cell& cell, std::int64_t hidden) {
  std::vector<float> bias(static_cast<std::size_t>(8 * hidden), 0.0F);
  const auto add = [&](ValueId row, std::size_t gate, std::int64_t start) {
    const std::vector<float> elements = *graph::constant_floats(rewriter.graph(), row);
    for (std::size_t j = 0; j < static_cast<std::size_t>(hidden); ++j)
      bias[gate * static_cast<std::size_t>(hidden) + j] +=
          elements[elements.size() == 1 ? 0 : static_cast<std::size_t>(start) + j];
  };
  for (std::size_t g = 0; g < kGates; ++g) {
    for (const ValueId id : sum.biases) add(id, g, cell.gates[g].start);
    for (const ValueId id : cell.gates[g].biases) add(id, g, 0);
  }
  return rewriter.constant<float>(std::array{std::int64_t{1}, 8 * hidden}, bias);
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
    const Node* function = rewriter.producer(node.inputs[state], ops::kUnary);
    const auto activation = function != nullptr ? rnn_activation(*function) : std::nullopt;
    if (!activation || binary(rewriter, function->inputs[0], BinaryFunction::kAdd) == nullptr) continue;
    const auto gate = read_gate(rewriter, node.inputs[1 - state]);
    if (gate && same_shape_and_type(rewriter.desc(node.outputs[0]), rewriter.desc(function->inputs[0])))
      return std::pair{function->inputs[0], Output{node.outputs[0], *gate, *activation}};
  }
  return std::nullopt;
}

class CellFusion {
 public:
  /// Finds the outputs that cells may have. Their states come first in the graph's order, so that who reads these
  /// reads the operator.
  CellFusion(const Rewriter& rewriter, const graph::Graph& graph) {
    for (const Node& node : graph.nodes)
      if (node.op != nullptr && node.is(ops::kBinary) &&
          binary(rewriter, node.outputs[0], BinaryFunction::kMul) != nullptr)
        if (auto output = read_output(rewriter, node)) outputs_.insert(std::move(*output));
  }

  Replacement operator()(Rewriter& rewriter, const Node& node) {
    if (!node.is(ops::kBinary)) return std::nullopt;
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
    params.activations = activations_of(cell);
    const ValueId w = weights_of(rewriter, sum.products[0], cell, hidden);
    const ValueId r = weights_of(rewriter, sum.products[1], cell, hidden);
    const ValueId b = bias_of(rewriter, sum, cell, hidden);
    const auto results = rewriter.emit_all(ops::kLstm, graph::Params::of(params), {*x, w, r, b, kNone, *h, *c, kNone});
    const auto state = results ? rewriter.reshape((*results)[2], after) : std::nullopt;
    if (state) results_.emplace(output.h, (*results)[1]);
    return state;
  }

  /// A tensor of rows as [1,rows,width].
  static Replacement rows_of(Rewriter& rewriter, ValueId id) {
    TensorDesc rows = rewriter.desc(id);
    const std::int32_t width = rows.last(0);
    const std::int64_t count = width > 0 ? rows.elements() / width : 0;
    rows.rank = 3;
    rows.dims[0] = 1;
    rows.dims[1] = static_cast<std::int32_t>(count);
    rows.dims[2] = width;
    return rewriter.reshape(id, rows);
  }

  static ops::RnnActivations<3> activations_of(const Cell& cell) {
    ops::RnnActivations<3> all;
    const RnnActivation of_direction[] = {cell.gates[kInput].activation, cell.gates[kCandidate].activation, cell.out};
    for (std::size_t i = 0; i < 6; ++i) {
      all.functions[i] = of_direction[i % 3].function;
      all.alpha[i] = of_direction[i % 3].alpha;
      all.beta[i] = of_direction[i % 3].beta;
    }
    return all;
  }

  std::map<ValueId, Output> outputs_;   ///< by the state that they are made of
  std::map<ValueId, ValueId> results_;  ///< by the output they stand for, what the operator gives
};

}  // namespace

Result<bool> fuse_recurrent_cells(graph::Graph& graph) {
  Rewriter rewriter(graph);
  CellFusion fusion(rewriter, graph);
  return rewriter.sweep([&](Rewriter& r, const Node& node) { return fusion(r, node); });
}

}  // namespace bantam::passes
