// ONNX recurrent layers: LSTM and GRU.
#include <fmt/format.h>

#include <array>

#include "import/onnx/lowering.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/lstm.h"

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

/// The kernels have the default activations built in; a list is accepted when it repeats them.
void check_activations(NodeLowering& n, std::span<const std::string_view> defaults) {
  const auto names = n.attr_strings("activations");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == defaults[i % defaults.size()]) continue;
    n.fail(fmt::format("activation '{}' is not supported, only the default '{}' at this place", printable(names[i]),
                       defaults[i % defaults.size()]));
  }
  if (names.empty()) return;
  n.ignore({"activation_alpha", "activation_beta"});  // the default functions have no parameters
}

void check_hidden_size(NodeLowering& n, ValueId recurrence) {
  const TensorDesc& r = n.desc(recurrence);
  const std::int64_t hidden = n.attr_int("hidden_size", r.rank == 3 ? r.dims[2] : 0);
  if (!n.failed() && (r.rank != 3 || hidden != r.dims[2]))
    n.fail(fmt::format("attribute 'hidden_size' = {} does not agree with the recurrence weights, {}", hidden,
                       format_desc(r)),
           StatusCode::kInvalidModel);
}

/// What both layers share: operands turned to [time, batch, ...] when layout is 1, results turned back.
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
  constexpr std::string_view kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
  check_activations(n, kDefaults);
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

void lower_gru(NodeLowering& n) {
  Sequence sequence(n);
  ops::GruParams params;
  params.direction = read_direction(n);
  params.clip = n.attr_float("clip", 0.0F);
  params.linear_before_reset = n.attr_int("linear_before_reset", 0) != 0 ? 1 : 0;
  constexpr std::string_view kDefaults[] = {"Sigmoid", "Tanh"};
  check_activations(n, kDefaults);
  const ValueId recurrence = n.input(2);
  check_hidden_size(n, recurrence);
  n.input(0);
  const auto results =
      n.emit_all(ops::kGru, graph::Params::of(params),
                 {sequence.operand(0), n.input(1), recurrence, n.optional(3), n.optional(4), sequence.operand(5)});
  if (n.failed()) return;
  sequence.all_steps(results[0]);
  sequence.last_step(1, results[1]);
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "GRU", 7, kNewest, lower_gru},
    {"", "LSTM", 7, kNewest, lower_lstm},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRows; }

}  // namespace bantam::import::onnx
