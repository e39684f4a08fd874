// Recurrent layers whose memory is a variable tensor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "import/tflite/importer.h"
#include "import/tflite/operators.h"
#include "import/tflite/weighted.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/lstm_q/lstm_q.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/svdf/svdf.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

void require_variable(Lowering& op, int operand) {
  if (!op.failed() && (!op.has(operand) || !op.in_tensor(operand).is_variable()))
    op.invalid(fmt::format("operand {}, a state, is no variable", operand), "a variable");
}

/// The next value of a state in any shape of as many elements.
void write_state(Lowering& op, int operand, ValueId value) {
  if (op.failed()) return;
  const ValueId next = op.reshape(value, op.dims(op.in(operand)));
  if (op.failed()) return;
  Variable& variable = op.importer().variable_tensor(op.in_index(operand), op.in_desc(operand));
  if (const auto written = op.importer().write_variable(variable, next); !written) op.fail_with(written.error());
}

/// Weights of a float layer, dequantised where the file stores them as i8 per tensor.
ValueId float_weights(Lowering& op, int operand) {
  if (op.in_type(operand) == kF32 || op.failed()) return op.in(operand);
  if (!op.require_type(operand, {kF32, kI8})) return kNoValue;
  const Affine weights = op.in_affine(operand);
  const ValueId scale = op.constant<float>({}, std::span<const float>(&weights.scale, 1));
  const ValueId zero_point = op.reshape(op.integers({weights.zero_point}, kI8), {});
  return op.emit(ops::kDequantize, ops::DequantizeParams{}, {op.in(operand), scale, zero_point});
}

// Operands of UNIDIRECTIONAL_SEQUENCE_LSTM. Gates come in the order input, forget, cell, output in the file and
// input, output, forget, cell in the core operators.
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

/// What the core operators cannot express.
void check_lstm(Lowering& op, const schema::UnidirectionalSequenceLSTMOptions& o) {
  if (!op.require_rank(0, 3, 3) || !op.require_type(0, {kF32, kI8, kI16})) return;
  for (int i = kInputWeights; i < kPeepholes; ++i)
    if (!op.has(i)) return op.unsupported("a coupled input and forget gate", "four gates");
  for (int i = kInputWeights; i < kPeepholes; ++i)
    if (!op.require_type(i, {kF32, kI8}) || !op.require_rank(i, 2, 2)) return;
  for (int i = kBiases; i < kProjection; ++i)
    if (!op.has(i)) return op.invalid("a gate without bias", "four biases");
  if (op.has(kProjection) || op.has(kProjection + 1)) return op.unsupported("a projection", "none");
  for (int i = kLayerNorm; i < op.operands(); ++i)
    if (op.has(i)) return op.unsupported("layer normalisation", "none");
  for (const int i : {kOutputState, kCellState}) require_variable(op, i);
  if (!(o.cell_clip() >= 0) || !std::isfinite(o.cell_clip()))
    return op.invalid(fmt::format("cell_clip {}", o.cell_clip()), "a number that is not negative");
  if (o.activation() != schema::Activation::TANH)
    return op.unsupported(fmt::format("fused_activation_function {}", static_cast<int>(o.activation())), "TANH");
  if (o.diagonal_recurrent_tensors()) op.unsupported("diagonal_recurrent_tensors", "full matrices");
}

/// One tensor per gate, beginning at operand `first`, joined along dimension 0.
template <typename Read>
ValueId stack_gates(Lowering& op, int first, Read read) {
  std::vector<ValueId> gates;
  for (const int gate : kGateOrder) gates.push_back(read(op, first + gate));
  return op.concat(std::move(gates), 0);
}

ValueId as_stored(Lowering& op, int operand) { return op.in(operand); }

/// [1, 8H]: input biases, then zero recurrent biases.
ValueId float_biases(Lowering& op, std::int64_t hidden) {
  const std::vector<float> zeros(static_cast<std::size_t>(4 * hidden), 0.0F);
  const ValueId recurrent = op.constant<float>({4 * hidden}, zeros);
  return op.reshape(op.concat({stack_gates(op, kBiases, as_stored), recurrent}, 0), {1, 8 * hidden});
}

ValueId stack_peepholes(Lowering& op, std::int64_t hidden) {
  std::vector<ValueId> parts;
  for (const int gate : kPeepholeOrder) {
    if (!op.has(kPeepholes + gate)) return kNoValue;
    parts.push_back(float_weights(op, kPeepholes + gate));
  }
  return op.reshape(op.concat(std::move(parts), 0), {1, 3 * hidden});
}

/// The sizes of a layer whose operands check_lstm accepted, and its input [T,B,I].
struct LstmLayer {
  ValueId sequence = kNoValue;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t input = 0;
  std::int64_t hidden = 0;
};

std::vector<ValueId> emit_float_lstm(Lowering& op, const LstmLayer& layer, float cell_clip) {
  ops::LstmParams params;
  params.cell_clip = cell_clip;
  const std::int64_t h = layer.hidden;
  const Dims state{1, layer.batch, h};
  return op.emit_all(
      ops::kLstm, params,
      {layer.sequence, op.reshape(stack_gates(op, kInputWeights, float_weights), {1, 4 * h, layer.input}),
       op.reshape(stack_gates(op, kRecurrentWeights, float_weights), {1, 4 * h, h}), float_biases(op, h), kNoValue,
       op.reshape(op.in(kOutputState), state), op.reshape(op.in(kCellState), state), stack_peepholes(op, h)});
}

/// The multiplier from a gate's products with `weights` to Q12.
FixedMultiplier gate_multiplier(Lowering& op, const Affine& input, int weights) {
  constexpr float kQ12 = 1.0F / 4096;
  const Affine scale = op.in_affine(weights);
  if (scale.zero_point != 0) op.unsupported(fmt::format("operand {} with asymmetric weights", weights), "zero point 0");
  return op.multiplier(fully_connected_scale(input.scale, scale.scale, kQ12));
}

/// How a cell state of that scale reaches the argument of tanh, which takes powers of two.
void set_tanh_input(ops::LstmQParams& params, float cell_scale) {
  const int power = binary_logarithm(cell_scale).rounded + 12;
  params.tanh_multiplier = power > 0 ? 3 << std::min(power, 28) : 3;
  params.tanh_right_shift = power < 0 ? std::min(-power, 31) : 0;
}

std::int32_t stored_clip(float clip, float scale) {
  return static_cast<std::int32_t>(std::min(static_cast<double>(clip) / static_cast<double>(scale), 32767.0));
}

ops::LstmQParams integer_lstm_params(Lowering& op, float cell_clip) {
  constexpr double kQ15 = 1.0 / 32768;
  ops::LstmQParams params;
  const Affine input = op.in_affine(0);
  const Affine hidden = op.in_affine(kOutputState);
  const Affine cell = op.in_affine(kCellState);
  for (std::size_t g = 0; g < kGateOrder.size() && !op.failed(); ++g) {
    const FixedMultiplier of_input = gate_multiplier(op, input, kInputWeights + kGateOrder[g]);
    const FixedMultiplier of_state = gate_multiplier(op, hidden, kRecurrentWeights + kGateOrder[g]);
    params.input_multiplier[g] = of_input.multiplier;
    params.input_shift[g] = of_input.shift;
    params.recurrent_multiplier[g] = of_state.multiplier;
    params.recurrent_shift[g] = of_state.shift;
  }
  const auto cell_scale = static_cast<double>(cell.scale);
  const FixedMultiplier forget = op.multiplier(kQ15 * cell_scale / cell_scale);
  const FixedMultiplier added = op.multiplier(kQ15 * kQ15 / cell_scale);
  const FixedMultiplier out = op.multiplier(kQ15 * kQ15 / static_cast<double>(hidden.scale));
  params.input_zero_point = input.zero_point;
  params.hidden_zero_point = hidden.zero_point;
  params.forget_multiplier = forget.multiplier;
  params.forget_shift = forget.shift;
  params.cell_multiplier = added.multiplier;
  params.cell_shift = added.shift;
  params.hidden_multiplier = out.multiplier;
  params.hidden_shift = out.shift;
  set_tanh_input(params, cell.scale);
  params.cell_clip = stored_clip(cell_clip, cell.scale);
  return params;
}

std::vector<ValueId> emit_integer_lstm(Lowering& op, const LstmLayer& layer, float cell_clip) {
  for (int i = kInputWeights; i < kPeepholes; ++i) op.require_type(i, {kI8});
  for (int i = kPeepholes; i < kBiases; ++i)
    if (op.has(i)) op.unsupported("a peephole of an integer layer", "none");
  op.require_type(kOutputState, {op.in_type(0)});
  op.require_type(kCellState, {kI16});
  const ops::LstmQParams params = integer_lstm_params(op, cell_clip);
  const Dims state{layer.batch, layer.hidden};
  return op.emit_all(ops::kLstmQ, params,
                     {layer.sequence, stack_gates(op, kInputWeights, as_stored),
                      stack_gates(op, kRecurrentWeights, as_stored), stack_gates(op, kBiases, as_stored),
                      op.reshape(op.in(kOutputState), state), op.reshape(op.in(kCellState), state)});
}

void lower_unidirectional_sequence_lstm(Lowering& op) {
  const auto& o = op.options<schema::UnidirectionalSequenceLSTMOptions>();
  check_lstm(op, o);
  if (op.failed()) return;
  LstmLayer layer;
  layer.sequence = o.time_major() ? op.in(0) : op.transpose(op.in(0), {1, 0, 2});
  if (op.failed()) return;
  const TensorDesc& sequence = op.desc(layer.sequence);
  layer.steps = sequence.dims[0];
  layer.batch = sequence.dims[1];
  layer.input = sequence.dims[2];
  layer.hidden = op.in_desc(kRecurrentWeights).dims[1];
  const bool is_float = op.in_type(0) == kF32;
  const auto results = (is_float ? emit_float_lstm : emit_integer_lstm)(op, layer, o.cell_clip());
  const ValueId y = op.reshape(results[0], {layer.steps, layer.batch, layer.hidden});
  op.result(0, o.time_major() ? y : op.transpose(y, {1, 0, 2}));
  write_state(op, kOutputState, results[1]);
  write_state(op, kCellState, results[2]);
}

// Operands of SVDF.
constexpr int kFeatureWeights = 1;
constexpr int kTimeWeights = 2;
constexpr int kSvdfBias = 3;
constexpr int kSvdfState = 4;

/// The filters' products with the input, in float.
ValueId float_features(Lowering& op, const schema::SVDFOptions& o) {
  ops::MatmulParams params;
  params.transpose_b = 1;
  if (!op.require_type(kFeatureWeights, {kF32, kI8})) return kNoValue;
  if (op.in_type(kFeatureWeights) == kF32) return op.emit(ops::kMatmul, params, {op.in(0), op.in(kFeatureWeights)});
  params.asymmetric = o.asymmetric_quantize_inputs() ? 1 : 0;
  return op.emit(ops::kMatmul, params,
                 {op.in(0), op.in(kFeatureWeights), kNoValue, weight_scale_operand(op, {.weights = kFeatureWeights})});
}

/// The same in integers of the state's type, without its zero point. Sums are 32 bits wide, also for an i16 state.
ValueId integer_features(Lowering& op, const FixedMultiplier& scale) {
  const Affine input = op.in_affine(0);
  const std::int64_t filters = op.in_desc(kFeatureWeights).dims[0];
  const auto repeated = [&](std::int32_t value) {
    const std::vector<std::int32_t> values(static_cast<std::size_t>(filters), value);
    return op.constant<std::int32_t>({filters}, values);
  };
  ops::MatmulParams params;
  params.transpose_b = 1;
  ValueId x = op.in(0);
  ValueId bias = kNoValue;
  if (op.in_type(kSvdfState) == kI16) {
    const IntegerRange range = *type_range(kI16);
    params.minimum = range.minimum;
    params.maximum = range.maximum;
    const FixedMultiplier one = quantize_multiplier(1.0);
    x = op.emit(ops::kRequantize, ops::RequantizeParams{kI16, input.zero_point, 0, one.multiplier, one.shift}, {x});
    bias = repeated(0);
  } else {
    params.input_zero_point = input.zero_point;
  }
  return op.emit(ops::kMatmul, params,
                 {x, op.in(kFeatureWeights), bias, repeated(scale.multiplier), repeated(scale.shift)});
}

void emit_svdf(Lowering& op, const ops::SvdfParams& params, ValueId features, ValueId time_weights) {
  const auto results = op.emit_all(ops::kSvdf, params, {features, op.in(kSvdfState), time_weights, op.in(kSvdfBias)});
  op.result(0, results[0]);
  write_state(op, kSvdfState, results[1]);
}

void lower_integer_svdf(Lowering& op, ops::SvdfParams params) {
  if (!op.require_type(kFeatureWeights, {kI8}) || !op.require_type(kTimeWeights, {kI8, kI16}) ||
      !op.require_type(kSvdfState, {op.in_type(kTimeWeights)}))
    return;
  const Affine input = op.in_affine(0);
  const Affine output = op.out_affine();
  const Affine state = op.in_affine(kSvdfState);
  const Affine feature_weights = op.in_affine(kFeatureWeights);
  const Affine time_weights = op.in_affine(kTimeWeights);
  if (feature_weights.zero_point != 0 || time_weights.zero_point != 0)
    return op.unsupported("asymmetric weights", "zero point 0");
  const FixedMultiplier to_state =
      op.multiplier(static_cast<double>(input.scale * feature_weights.scale / state.scale));
  const FixedMultiplier to_output = op.multiplier(static_cast<double>(state.scale * time_weights.scale / output.scale));
  params.state_zero_point = state.zero_point;
  params.output_zero_point = output.zero_point;
  params.multiplier = to_output.multiplier;
  params.shift = to_output.shift;
  emit_svdf(op, params, integer_features(op, to_state), op.in(kTimeWeights));
}

void lower_svdf(Lowering& op) {
  const auto& o = op.options<schema::SVDFOptions>();
  if (!op.require_type(0, {kF32, kI8}) || !op.require_rank(0, 2, 2) || !op.require_rank(kFeatureWeights, 2, 2)) return;
  require_variable(op, kSvdfState);
  ops::SvdfParams params;
  params.rank = o.rank();
  // The integer kernels leave the activation to the result's range.
  if (op.in_type(0) == kI8) return lower_integer_svdf(op, params);
  params.activation = op.float_activation(o.activation());
  emit_svdf(op, params, float_features(op, o), float_weights(op, kTimeWeights));
}

constexpr OperatorRow kRecurrentOperators[] = {
    {schema::BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, 1, 24, 1, lower_unidirectional_sequence_lstm},
    {schema::BuiltinOperator::SVDF, 3, 5, 1, lower_svdf},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() noexcept { return kRecurrentOperators; }

}  // namespace bantam::import::tflite
