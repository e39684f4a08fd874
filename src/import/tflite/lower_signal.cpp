// The audio front-end operators of TensorFlow Lite Micro's signal library, which files name as custom operators.
#include <fmt/format.h>

#include "import/tflite/operators.h"
#include "ops/signal/auto_scale/auto_scale.h"
#include "ops/signal/filter_bank/filter_bank.h"
#include "ops/signal/framer/framer.h"
#include "ops/signal/overlap_add/overlap_add.h"
#include "ops/signal/pcan/pcan.h"
#include "ops/signal/real_fft/real_fft.h"
#include "ops/signal/rounded_root/rounded_root.h"
#include "ops/signal/scaled_log/scaled_log.h"
#include "ops/signal/signal_window/signal_window.h"
#include "ops/signal/spectral_subtraction/spectral_subtraction.h"
#include "ops/signal/spectrum_energy/spectrum_energy.h"
#include "signal/real_fft.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

constexpr std::int32_t kMaxBits = 31;
constexpr std::int32_t kMaxSamples = 1 << 24;  ///< of a frame, a queue or a delay

template <typename T>
ValueId twiddles(Lowering& op, int n, bool inverse) {
  const std::size_t count = signal::twiddle_count(n);
  std::vector<signal::Complex<T>> table(count);
  signal::fill_twiddles(n, inverse, table.data());
  std::vector<T> scalars;
  for (const auto& c : table) scalars.insert(scalars.end(), {c.re, c.im});
  return op.constant<T>({static_cast<std::int64_t>(count), 2}, scalars);
}

void lower_fft(Lowering& op, bool inverse) {
  const CustomOptions options = op.custom_options({"T", "fft_length"});
  const std::int32_t n = op.integer_option(options, "fft_length", 4, signal::kMaxFft);
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kI16, kI32, kF32})) return;
  if (!signal::supports_real_fft(n))
    return op.unsupported(fmt::format("fft_length {}", n), "even numbers with the prime factors 2, 3 and 5 only");
  const ElementType type = op.in_type(0);
  const ValueId constants = type == kI16   ? twiddles<std::int16_t>(op, n, inverse)
                            : type == kI32 ? twiddles<std::int32_t>(op, n, inverse)
                                           : twiddles<float>(op, n, inverse);
  op.result(0, op.emit(ops::kRealFft, ops::RealFftParams{n, inverse ? 1 : 0}, {op.in(0), constants}));
}

void lower_window(Lowering& op) {
  const CustomOptions options = op.custom_options({"shift"});
  const ops::SignalWindowParams params{op.integer_option(options, "shift", 0, kMaxBits)};
  op.result(0, op.emit(ops::kSignalWindow, params, {op.in(0), op.in(1)}));
}

void lower_auto_scale(Lowering& op) {
  op.custom_options({});
  const auto results = op.emit_all(ops::kAutoScale, graph::Params{}, {op.in(0)});
  for (int i = 0; i < 2; ++i) op.result(i, results[static_cast<std::size_t>(i)]);
}

void lower_energy(Lowering& op) {
  const CustomOptions options = op.custom_options({"start_index", "end_index"});
  const ops::SpectrumEnergyParams params{op.integer_option(options, "start_index", 0),
                                         op.integer_option(options, "end_index", 0)};
  op.result(0, op.emit(ops::kSpectrumEnergy, params, {op.in(0)}));
}

void lower_filter_bank(Lowering& op) {
  const CustomOptions options = op.custom_options({"num_channels"});
  const std::int32_t slopes = op.integer_option(options, "num_channels", 0, kMaxSamples) + 1;
  std::vector<ValueId> operands{op.in(0), op.in(1), op.in(2)};
  for (int i = 3; i < 6; ++i) {
    if (!op.require_rank(i, 1, 1)) return;
    if (op.in_desc(i).dims[0] < slopes)
      return op.invalid(fmt::format("operand {} has {} elements", i, op.in_desc(i).dims[0]),
                        fmt::format("{}, one more than num_channels", slopes));
    operands.push_back(op.slice_axis(op.in(i), 0, 0, slopes));
  }
  op.result(0, op.emit(ops::kFilterBank, std::move(operands)));
}

void lower_filter_bank_square_root(Lowering& op) {
  op.custom_options({});
  op.result(0, op.emit(ops::kRoundedRoot, {op.in(0), op.in(1)}));
}

void lower_spectral_subtraction(Lowering& op) {
  const CustomOptions options = op.custom_options(
      {"smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing",
       "min_signal_remaining", "smoothing_bits", "spectral_subtraction_bits", "num_channels", "clamping"});
  ops::SpectralSubtractionParams params;
  params.smoothing = op.integer_option(options, "smoothing", 0);
  params.one_minus_smoothing = op.integer_option(options, "one_minus_smoothing", 0);
  params.alternate_smoothing = op.integer_option(options, "alternate_smoothing", 0);
  params.alternate_one_minus_smoothing = op.integer_option(options, "alternate_one_minus_smoothing", 0);
  params.min_signal_remaining = op.integer_option(options, "min_signal_remaining", 0);
  params.smoothing_bits = op.integer_option(options, "smoothing_bits", 0, kMaxBits);
  params.share_bits = op.integer_option(options, "spectral_subtraction_bits", 0, kMaxBits);
  params.clamping = op.flag_option(options, "clamping") ? 1 : 0;
  const std::int64_t channels = op.integer_option(options, "num_channels", 0, kMaxSamples);
  if (!op.require_rank(0, 1, 1)) return;
  if (op.in_desc(0).dims[0] != channels)
    return op.invalid(fmt::format("{} bands with num_channels {}", op.in_desc(0).dims[0], channels), "equal numbers");
  const ValueId estimate = op.read_state("noise_estimate", kU32, {channels});
  const auto results = op.emit_all(ops::kSpectralSubtraction, params, {op.in(0), estimate});
  for (int i = 0; i < 2; ++i) op.result(i, results[static_cast<std::size_t>(i)]);
  op.write_state("noise_estimate", results[1]);
}

void lower_pcan(Lowering& op) {
  const CustomOptions options = op.custom_options({"snr_shift"});
  const ops::PcanParams params{op.integer_option(options, "snr_shift", 0, 63)};
  op.result(0, op.emit(ops::kPcan, params, {op.in(0), op.in(1), op.in(2)}));
}

void lower_filter_bank_log(Lowering& op) {
  const CustomOptions options = op.custom_options({"input_correction_bits", "output_scale"});
  const ops::ScaledLogParams params{op.integer_option(options, "output_scale", 0),
                                    op.integer_option(options, "input_correction_bits", 0, kMaxBits)};
  op.result(0, op.emit(ops::kScaledLog, params, {op.in(0)}));
}

/// Frames, validity, and the queues' new content, from samples [..., hops * push].
std::vector<ValueId> emit_framer(Lowering& op, const ops::FramerParams& params, std::int32_t first_fill) {
  if (!op.require_rank(0, 1, kMaxRank - 1) || !op.require_type(0, {kI16})) return std::vector<ValueId>(4, kNoValue);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < op.rank(0); ++i) rows *= op.in_desc(0).dims[i];
  const ValueId queues = op.read_state("queue", kI16, {rows, ops::framer_capacity(params)});
  const ValueId fill = op.read_state("fill", kI32, {1}, op.constant<std::int32_t>({1}, std::span(&first_fill, 1)));
  auto results = op.emit_all(ops::kFramer, params, {op.in(0), queues, fill});
  op.write_state("queue", results[2]);
  op.write_state("fill", results[3]);
  return results;
}

void lower_framer(Lowering& op) {
  const CustomOptions options = op.custom_options({"frame_size", "frame_step", "prefill"});
  const std::int32_t frame = op.integer_option(options, "frame_size", 1, kMaxSamples);
  const std::int32_t step = op.integer_option(options, "frame_step", 1, frame);
  const auto results = emit_framer(op, {step, frame, step, 0}, op.flag_option(options, "prefill") ? frame - step : 0);
  op.result(0, results[0]);
  op.result(1, results[1]);
}

/// Vectors of channels with those of some invokes before and after them; the first one stands for what came before it.
void lower_stacker(Lowering& op) {
  const CustomOptions options =
      op.custom_options({"num_channels", "stacker_left_context", "stacker_right_context", "stacker_step"});
  constexpr std::int32_t kMaxContext = 1 << 10;
  const std::int32_t channels = op.integer_option(options, "num_channels", 1, kMaxSamples / (2 * kMaxContext + 1));
  const std::int32_t left = op.integer_option(options, "stacker_left_context", 0, kMaxContext);
  const std::int32_t right = op.integer_option(options, "stacker_right_context", 0, kMaxContext);
  const std::int32_t step = op.integer_option(options, "stacker_step", 1, left + right + 1);
  if (!op.require_rank(0, 1, 1)) return;
  if (op.in_desc(0).dims[0] != channels)
    return op.invalid(fmt::format("{} elements with num_channels {}", op.in_desc(0).dims[0], channels),
                      "equal numbers");
  const std::int32_t frame = channels * (left + right + 1);
  const auto results = emit_framer(op, {channels, frame, channels * step, left}, -1);
  op.result(0, op.reshape(results[0], {frame}));
  op.result(1, results[1]);
}

void lower_delay(Lowering& op) {
  const CustomOptions options = op.custom_options({"delay_length"});
  const std::int64_t delay = op.integer_option(options, "delay_length", 0, kMaxSamples);
  if (!op.require_rank(0, 1, kMaxRank) || !op.require_type(0, {kI16})) return;
  if (delay == 0) return op.result(0, op.in(0));
  const int last = op.rank(0) - 1;
  const std::int64_t samples = op.in_desc(0).dims[last];
  Dims kept = op.dims(op.in(0));
  kept.back() = delay;
  const ValueId stream = op.concat({op.read_state("delayed", kI16, kept), op.in(0)}, last);
  op.result(0, op.slice_axis(stream, last, 0, samples));
  op.write_state("delayed", op.slice_axis(stream, last, samples, delay));
}

void lower_overlap_add(Lowering& op) {
  const CustomOptions options = op.custom_options({"T", "frame_step"});
  const ops::OverlapAddParams params{op.integer_option(options, "frame_step", 1, kMaxSamples)};
  if (!op.require_rank(0, 2, kMaxRank) || !op.require_type(0, {kI16, kF32})) return;
  std::int64_t rows = 1;
  for (int i = 0; i + 2 < op.rank(0); ++i) rows *= op.in_desc(0).dims[i];
  const ValueId sums = op.read_state("overlap", op.in_type(0), {rows, op.in_desc(0).last(0)});
  const auto results = op.emit_all(ops::kOverlapAdd, params, {op.in(0), sums});
  op.result(0, results[0]);
  op.write_state("overlap", results[1]);
}

constexpr CustomOperatorRow kSignalOperators[] = {
    {"SignalDelay", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, lower_delay}},
    {"SignalEnergy", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, lower_energy}},
    {"SignalFftAutoScale", {schema::BuiltinOperator::CUSTOM, 1, 1, 2, lower_auto_scale}},
    {"SignalFilterBank", {schema::BuiltinOperator::CUSTOM, 6, 6, 1, lower_filter_bank}},
    {"SignalFilterBankLog", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, lower_filter_bank_log}},
    {"SignalFilterBankSpectralSubtraction", {schema::BuiltinOperator::CUSTOM, 1, 1, 2, lower_spectral_subtraction}},
    {"SignalFilterBankSquareRoot", {schema::BuiltinOperator::CUSTOM, 2, 2, 1, lower_filter_bank_square_root}},
    {"SignalFramer", {schema::BuiltinOperator::CUSTOM, 1, 1, 2, lower_framer}},
    {"SignalIrfft", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, [](Lowering& op) { lower_fft(op, true); }}},
    {"SignalOverlapAdd", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, lower_overlap_add}},
    {"SignalPCAN", {schema::BuiltinOperator::CUSTOM, 3, 3, 1, lower_pcan}},
    {"SignalRfft", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, [](Lowering& op) { lower_fft(op, false); }}},
    {"SignalStacker", {schema::BuiltinOperator::CUSTOM, 1, 1, 2, lower_stacker}},
    {"SignalWindow", {schema::BuiltinOperator::CUSTOM, 2, 2, 1, lower_window}},
};

}  // namespace

std::span<const CustomOperatorRow> signal_operators() noexcept { return kSignalOperators; }

}  // namespace bantam::import::tflite
