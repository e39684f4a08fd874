// ONNX recurrent layers: RNN, LSTM and GRU.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/lowering.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/simple_rnn/simple_rnn.h"

namespace bantam::import::onnx {
namespace {

ops::RnnDirection read_direction(NodeLowering& n) {
  const std::string_view name = n.attr_string("direction", "forward");
  if (name == "forward") return ops::RnnDirection::kForward;
  if (name == "reverse") return ops::RnnDirection::kReverse;
  if (name == "bidirectional") return ops::RnnDirection::kBidirectional;
  n.fail(fmt::format("attribute 'direction' = '{}' is not valid", printable(name)), StatusCode::kInvalidModel);
  return ops::RnnDirection::kForward;
}

using ops::RnnFunction;

/// An activation of the standard, and which of alpha and beta it takes.
struct ActivationRow {
  std::string_view name;  ///< lower case: exporters do not agree about the case
  RnnFunction function;
  int parameters = 0;  ///< 1: alpha; 2: alpha and beta
  float alpha = 0.0F;  ///< where the lists end
  float beta = 0.0F;
};

constexpr ActivationRow kActivations[] = {
    {"affine", RnnFunction::kAffine, 2, 1.0F, 0.0F},
    {"elu", RnnFunction::kElu, 1, 1.0F},
    {"hardsigmoid", RnnFunction::kHardSigmoid, 2, 0.2F, 0.5F},
    {"leakyrelu", RnnFunction::kLeakyRelu, 1, 0.01F},
    {"relu", RnnFunction::kRelu},
    {"scaledtanh", RnnFunction::kScaledTanh, 2, 1.0F, 1.0F},
    {"sigmoid", RnnFunction::kSigmoid},
    {"softplus", RnnFunction::kSoftplus},
    {"softsign", RnnFunction::kSoftsign},
    {"tanh", RnnFunction::kTanh},
    {"thresholdedrelu", RnnFunction::kThresholdedRelu, 1, 1.0F},
};

const ActivationRow* find_activation(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const auto* row = std::ranges::find(kActivations, lower, &ActivationRow::name);
  return row != std::end(kActivations) ? row : nullptr;
}

/// Reads `activations`, which names `count` functions for each direction; alphas and betas belong to the functions that
/// take them, in that order.
template <int count>
void read_activations(NodeLowering& n, ops::RnnDirection direction, ops::RnnActivations<count>& activations) {
  const auto names = n.attr_strings("activations");
  const auto alphas = n.attr_floats("activation_alpha");
  const auto betas = n.attr_floats("activation_beta");
  if (names.empty()) return;
  const std::size_t wanted = direction == ops::RnnDirection::kBidirectional ? 2 * count : count;
  if (names.size() != wanted)
    return n.fail(fmt::format("attribute 'activations' has {} names, expected {}", names.size(), wanted),
                  StatusCode::kInvalidModel);
  std::size_t next_alpha = 0;
  std::size_t next_beta = 0;
  for (std::size_t i = 0; i < wanted; ++i) {
    const ActivationRow* row = find_activation(names[i]);
    if (row == nullptr) return n.fail(fmt::format("activation '{}' is not one of the standard's", printable(names[i])));
    const bool has_alpha = row->parameters >= 1 && next_alpha < alphas.size();
    const bool has_beta = row->parameters >= 2 && next_beta < betas.size();
    activations.functions[i] = row->function;
    activations.alpha[i] = has_alpha ? alphas[next_alpha++] : row->alpha;
    activations.beta[i] = has_beta ? betas[next_beta++] : row->beta;
  }
}

void check_hidden_size(NodeLowering& n, ValueId recurrence) {
  const TensorDesc& r = n.desc(recurrence);
  const std::int64_t hidden = n.attr_int("hidden_size", r.rank == 3 ? r.dims[2] : 0);
  if (!n.failed() && (r.rank != 3 || hidden != r.dims[2]))
    n.fail(fmt::format("attribute 'hidden_size' = {} does not agree with the recurrence weights, {}", hidden,
                       format_desc(r)),
           StatusCode::kInvalidModel);
}

/// What the layers share: operands turned to [time, batch, ...] when layout is 1, results turned back.
class Sequence {
 public:
  explicit Sequence(NodeLowering& n) : n_(n), batch_first_(n.attr_int("layout", 0) != 0) {}

  ValueId operand(int i) { return batch_first_ && n_.has(i) ? n_.transpose(n_.input(i), {1, 0, 2}) : n_.optional(i); }
  void all_steps(ValueId y) { n_.set_output(0, batch_first_ ? n_.transpose(y, {2, 0, 1, 3}) : y); }
  void last_step(int i, ValueId y) { n_.set_output(i, batch_first_ ? n_.transpose(y, {1, 0, 2}) : y); }

 private:
  NodeLowering& n_;
  bool batch_first_;
};

void lower_lstm(NodeLowering& n) {
  Sequence sequence(n);
  ops::LstmParams params;
  params.direction = read_direction(n);
  params.clip = n.attr_float("clip", 0.0F);
  params.input_forget = n.attr_int("input_forget", 0) != 0 ? 1 : 0;
  n.ignore({"output_sequence"});  // of operator set 1: all results are there to be read
  read_activations(n, params.direction, params.activations);
  const ValueId recurrence = n.input(2);
  check_hidden_size(n, recurrence);
  n.input(0);
  const auto results = n.emit_all(ops::kLstm, graph::Params::of(params),
                                  {sequence.operand(0), n.input(1), recurrence, n.optional(3), n.optional(4),
                                   sequence.operand(5), sequence.operand(6), n.optional(7)});
  if (n.failed()) return;
  sequence.all_steps(results[0]);
  sequence.last_step(1, results[1]);
  sequence.last_step(2, results[2]);
}

/// What a GRU and a simple RNN have in common: all but `params`' own fields.
template <typename Params>
void lower_stateful(NodeLowering& n, const ops::OpDef& op, Params params) {
  Sequence sequence(n);
  params.direction = read_direction(n);
  params.clip = n.attr_float("clip", 0.0F);
  n.ignore({"output_sequence"});
  read_activations(n, params.direction, params.activations);
  const ValueId recurrence = n.input(2);
  check_hidden_size(n, recurrence);
  n.input(0);
  const auto results =
      n.emit_all(op, graph::Params::of(params),
                 {sequence.operand(0), n.input(1), recurrence, n.optional(3), n.optional(4), sequence.operand(5)});
  if (n.failed()) return;
  sequence.all_steps(results[0]);
  sequence.last_step(1, results[1]);
}

void lower_gru(NodeLowering& n) {
  ops::GruParams params;
  params.linear_before_reset = n.attr_int("linear_before_reset", 0) != 0 ? 1 : 0;
  lower_stateful(n, ops::kGru, params);
}

void lower_rnn(NodeLowering& n) { lower_stateful(n, ops::kSimpleRnn, ops::SimpleRnnParams{}); }

constexpr OperatorRow kRecurrentOperators[] = {
    {"", "GRU", 7, kNewest, lower_gru},
    {"", "LSTM", 7, kNewest, lower_lstm},
    {"", "RNN", 7, kNewest, lower_rnn},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRecurrentOperators; }

}  // namespace bantam::import::onnx
