// Operators with memory: resource variables, initialisation, recurrent layers with variable tensors.
#include <fmt/format.h>

#include <array>

#include "base/shape.h"
#include "import/tflite/importer.h"
#include "import/tflite/operators.h"
#include "ops/nn/lstm/lstm.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

void lower_var_handle(Lowering& op) {
  const auto& o = op.options<schema::VarHandleOptions>();
  if (op.out_tensor().type() != schema::TensorType::RESOURCE)
    return op.invalid(fmt::format("a result of type {}", type_name(op.out_tensor().type())), "RESOURCE");
  const std::string container = text(o.container());
  const std::string name = text(o.shared_name());
  op.importer().bind_resource(op.out_index(0), container.empty() ? name : container + "/" + name);
}

void lower_read_variable(Lowering& op) {
  const auto variable = op.importer().resource(op.in_index(0));
  if (!variable) return op.fail_with(variable.error());
  TensorDesc desc;
  const Dims shape = integers(op.out_tensor().shape());
  const Status status = make_desc(op.out_type(), shape.data(), static_cast<int>(shape.size()), &desc);
  if (!status.ok()) return op.fail_with(error_from(status));
  const auto value = op.importer().read_variable(**variable, desc);
  if (!value) return op.fail_with(value.error());
  op.result(0, *value);
}

void lower_assign_variable(Lowering& op) {
  const auto variable = op.importer().resource(op.in_index(0));
  if (!variable) return op.fail_with(variable.error());
  if (const auto written = op.importer().write_variable(**variable, op.in(1)); !written) op.fail_with(written.error());
}

void lower_call_once(Lowering& op) {
  const auto called = op.importer().call_once(op.options<schema::CallOnceOptions>().init_subgraph_index());
  if (!called) op.fail_with(called.error());
}

// Operands of UNIDIRECTIONAL_SEQUENCE_LSTM. Gates come in the order input, forget, cell, output in the file and
// input, output, forget, cell in the core operator.
constexpr int kInputWeights = 1;
constexpr int kRecurrentWeights = 5;
constexpr int kPeepholes = 9;  ///< input, forget, output
constexpr int kBiases = 12;
constexpr int kProjection = 16;
constexpr int kOutputState = 18;
constexpr int kCellState = 19;
constexpr int kLayerNorm = 20;
constexpr std::array<int, 4> kGateOrder = {0, 3, 1, 2};
constexpr std::array<int, 3> kPeepholeOrder = {0, 2, 1};

/// What the core operator cannot express.
void check_lstm(Lowering& op, const schema::UnidirectionalSequenceLSTMOptions& o) {
  if (!op.require_rank(0, 3, 3) || !op.require_type(0, {kF32})) return;
  for (int i = kInputWeights; i < kPeepholes; ++i)
    if (!op.has(i)) return op.unsupported("a coupled input and forget gate", "four gates");
  for (int i = kInputWeights; i < kPeepholes; ++i)
    if (!op.require_type(i, {kF32}) || !op.require_rank(i, 2, 2)) return;
  for (int i = kBiases; i < kProjection; ++i)
    if (!op.has(i)) return op.invalid("a gate without bias", "four biases");
  if (op.has(kProjection) || op.has(kProjection + 1)) return op.unsupported("a projection", "none");
  for (int i = kLayerNorm; i < op.operands(); ++i)
    if (op.has(i)) return op.unsupported("layer normalisation", "none");
  for (const int i : {kOutputState, kCellState})
    if (!op.has(i) || !op.in_tensor(i).is_variable()) return op.invalid("a state that is no variable", "a variable");
  if (o.cell_clip() > 0 || o.proj_clip() > 0)
    return op.unsupported(fmt::format("cell_clip {}, proj_clip {}", o.cell_clip(), o.proj_clip()), "0");
  if (o.activation() != schema::Activation::TANH)
    return op.unsupported(fmt::format("fused_activation_function {}", static_cast<int>(o.activation())), "TANH");
  if (o.diagonal_recurrent_tensors()) op.unsupported("diagonal_recurrent_tensors", "full matrices");
}

/// The gates' weights stacked as [1, 4H, columns].
ValueId stack_gates(Lowering& op, int first) {
  std::vector<ValueId> gates;
  for (const int gate : kGateOrder) gates.push_back(op.in(first + gate));
  const ValueId stacked = op.concat(std::move(gates), 0);
  if (op.failed()) return kNoValue;
  const Dims dims = op.dims(stacked);
  return op.reshape(stacked, {1, dims[0], dims[1]});
}

/// [1, 8H]: input biases, then zero recurrent biases.
ValueId stack_biases(Lowering& op, std::int64_t hidden) {
  std::vector<ValueId> parts;
  for (const int gate : kGateOrder) parts.push_back(op.in(kBiases + gate));
  const std::vector<float> zeros(static_cast<std::size_t>(4 * hidden), 0.0F);
  parts.push_back(op.constant<float>({4 * hidden}, zeros));
  return op.reshape(op.concat(std::move(parts), 0), {1, 8 * hidden});
}

ValueId stack_peepholes(Lowering& op, std::int64_t hidden) {
  std::vector<ValueId> parts;
  for (const int gate : kPeepholeOrder) {
    if (!op.has(kPeepholes + gate)) return kNoValue;
    parts.push_back(op.in(kPeepholes + gate));
  }
  return op.reshape(op.concat(std::move(parts), 0), {1, 3 * hidden});
}

void write_state(Lowering& op, int operand, ValueId value) {
  if (op.failed()) return;
  Variable& variable = op.importer().variable_tensor(op.in_index(operand), op.in_desc(operand));
  if (const auto written = op.importer().write_variable(variable, value); !written) op.fail_with(written.error());
}

void lower_unidirectional_sequence_lstm(Lowering& op) {
  const auto& o = op.options<schema::UnidirectionalSequenceLSTMOptions>();
  check_lstm(op, o);
  if (op.failed()) return;
  const std::int64_t hidden = op.in_desc(kRecurrentWeights).dims[1];
  const ValueId sequence = o.time_major() ? op.in(0) : op.transpose(op.in(0), {1, 0, 2});
  if (op.failed()) return;
  const std::int64_t steps = op.desc(sequence).dims[0];
  const std::int64_t batch = op.desc(sequence).dims[1];
  const Dims state{batch, hidden};
  const Dims state_of_one_direction{1, batch, hidden};
  const auto results =
      op.emit_all(ops::kLstm, ops::LstmParams{},
                  {sequence, stack_gates(op, kInputWeights), stack_gates(op, kRecurrentWeights),
                   stack_biases(op, hidden), kNoValue, op.reshape(op.in(kOutputState), state_of_one_direction),
                   op.reshape(op.in(kCellState), state_of_one_direction), stack_peepholes(op, hidden)});
  const ValueId y = op.reshape(results[0], {steps, batch, hidden});
  op.result(0, o.time_major() ? y : op.transpose(y, {1, 0, 2}));
  write_state(op, kOutputState, op.reshape(results[1], state));
  write_state(op, kCellState, op.reshape(results[2], state));
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kRows[] = {
    {VAR_HANDLE, 0, 0, 1, lower_var_handle},
    {READ_VARIABLE, 1, 1, 1, lower_read_variable},
    {ASSIGN_VARIABLE, 2, 2, 0, lower_assign_variable},
    {CALL_ONCE, 0, 0, 0, lower_call_once},
    {UNIDIRECTIONAL_SEQUENCE_LSTM, 1, 24, 1, lower_unidirectional_sequence_lstm},
};

}  // namespace

std::span<const OperatorRow> state_operators() noexcept { return kRows; }

}  // namespace bantam::import::tflite
