// How the operators of audio features are drawn.
#include <cmath>
#include <numbers>

#include "ops/signal/auto_scale/auto_scale.h"
#include "ops/signal/dft/dft.h"
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
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

constexpr ElementType kI16 = ElementType::kI16;
constexpr ElementType kI32 = ElementType::kI32;
constexpr ElementType kU32 = ElementType::kU32;

void auto_scale(Sampling& s) { s.any(s.type({kI16}), 0, 3); }

template <typename T>
TestTensor twiddles(std::int64_t n) {
  std::vector<T> table;
  for (std::int64_t k = 0; k < n; ++k) {
    const T phase = 2 * std::numbers::pi_v<T> * static_cast<T>(k) / static_cast<T>(n);
    table.push_back(std::cos(phase));
    table.push_back(-std::sin(phase));
  }
  return tensor_of<T>({n, 2}, table).with_placement(Placement::kAligned);
}

void dft(Sampling& s) {
  const TensorDesc x = s.any(s.type({ElementType::kF32, ElementType::kF64}), 3, 3);
  const DftParams p{s.pick(1, 12), s.one_in(2) ? 0 : s.pick(1, 4), s.pick(0, 1), s.pick(0, 1)};
  s.constant(x.type == ElementType::kF64 ? twiddles<double>(p.length) : twiddles<float>(p.length));
  if (p.step > 0 && s.one_in(2)) s.like(dense_desc(x.type, {s.pick(1, p.length)}));
  s.set_params(p);
}

/// Bands whose slopes lie side by side, each over three bins and three weights.
void filter_bank(Sampling& s) {
  constexpr std::int64_t kWidth = 3;
  const std::int64_t bands = s.pick(1, 6);
  const std::int64_t bins = (bands + 1) * kWidth;
  s.fresh(dense_desc(s.type({kU32}), {bins}), {0.0, 1e6});
  for (int table = 0; table < 2; ++table) s.constant(dense_desc(kI16, {bins}), {0.0, 4096.0});
  std::vector<std::int16_t> first(static_cast<std::size_t>(bands + 1));
  for (std::size_t b = 0; b < first.size(); ++b) first[b] = static_cast<std::int16_t>(b * kWidth);
  s.constant(tensor_of<std::int16_t>({bands + 1}, first).with_placement(Placement::kAligned));
  s.constant(tensor_of<std::int16_t>({bands + 1}, first).with_placement(Placement::kAligned));
  s.constant(dense_desc(kI16, {bands + 1}), {1.0, static_cast<double>(kWidth)});
}

void framer(Sampling& s) {
  FramerParams p{.push = s.pick(1, 4), .frame = s.pick(1, 8)};
  p.discard = s.pick(1, p.frame);
  p.repeats = s.pick(0, 2);
  const std::int64_t rows = s.pick(1, 3);
  s.like(dense_desc(s.type({kI16}), {rows, s.pick(1, 3) * p.push}));
  s.like(dense_desc(kI16, {rows, framer_capacity(p)}));
  s.fresh(dense_desc(kI32, {}), {-1.0, static_cast<double>(p.frame) - 1.0});
  s.set_params(p);
}

void overlap_add(Sampling& s) {
  const std::int64_t frame = s.pick(1, 8);
  const std::int64_t rows = s.pick(1, 3);
  const ElementType type = s.type({kI16, ElementType::kF32});
  s.like(dense_desc(type, {rows, s.pick(1, 4), frame}));
  s.like(dense_desc(type, {rows, frame}));
  s.set_params(OverlapAddParams{s.pick(1, frame)});
}

void pcan(Sampling& s) {
  const TensorDesc bands = dense_desc(s.type({kU32}), {s.pick(1, 9)});
  s.fresh(bands, {0.0, 1e6});
  s.fresh(bands, {0.0, 1e6});
  s.constant(dense_desc(kI16, {s.pick(125, 140)}), {0.0, 2000.0});
  s.set_params(PcanParams{s.pick(0, 20)});
}

void real_fft(Sampling& s) {
  const std::int32_t n = s.one_of({4, 6, 8, 10, 12, 16, 20, 24});
  const RealFftParams p{n, s.pick(0, 1)};
  const ElementType type = s.type({kI16, kI32, ElementType::kF32});
  s.like(dense_desc(type, {s.pick(1, 3), p.inverse != 0 ? n + 2 : s.pick(1, n)}));
  const double largest = type == kI16 ? 32767.0 : (type == kI32 ? 2147483647.0 : 1.0);
  s.constant(dense_desc(type, {n / 2 + n / 4, 2}), {-largest, largest});
  s.set_params(p);
}

void rounded_root(Sampling& s) {
  s.fresh(dense_desc(s.type({ElementType::kU64}), {s.pick(1, 9)}), {0.0, 1e15});
  s.fresh(dense_desc(kI32, {}), {0.0, 31.0});
}

void scaled_log(Sampling& s) {
  s.fresh(dense_desc(s.type({kU32}), {s.pick(1, 9)}), {0.0, 1e6});
  s.set_params(ScaledLogParams{s.pick(1, 1600), s.pick(0, 8)});
}

void signal_window(Sampling& s) {
  const std::int64_t width = s.pick(1, 20);
  s.like(dense_desc(s.type({kI16}), {s.pick(1, 4), width}));
  s.constant(dense_desc(kI16, {width}), {0.0, 4096.0});
  s.set_params(SignalWindowParams{12});
}

void spectral_subtraction(Sampling& s) {
  const TensorDesc bands = dense_desc(s.type({kU32}), {s.pick(1, 9)});
  s.fresh(bands, {0.0, 1e6});
  s.fresh(bands, {0.0, 1e6});
  SpectralSubtractionParams p{.smoothing = s.pick(0, 1 << 14), .alternate_smoothing = s.pick(0, 1 << 14)};
  p.one_minus_smoothing = (1 << 14) - p.smoothing;
  p.alternate_one_minus_smoothing = (1 << 14) - p.alternate_smoothing;
  p.min_signal_remaining = s.pick(0, 1 << 13);
  p.smoothing_bits = s.pick(0, 10);
  p.share_bits = 14;
  p.clamping = s.pick(0, 1);
  s.set_params(p);
}

void spectrum_energy(Sampling& s) {
  const std::int32_t bins = s.pick(1, 12);
  s.like(dense_desc(s.type({kI16}), {2 * bins}));
  const std::int32_t begin = s.pick(0, bins);
  s.set_params(SpectrumEnergyParams{begin, s.pick(begin, bins)});
}

constexpr SamplerRow kRows[] = {{&kAutoScale, auto_scale},
                                {&kDft, dft},
                                {&kFilterBank, filter_bank},
                                {&kFramer, framer},
                                {&kOverlapAdd, overlap_add},
                                {&kPcan, pcan},
                                {&kRealFft, real_fft},
                                {&kRoundedRoot, rounded_root},
                                {&kScaledLog, scaled_log},
                                {&kSignalWindow, signal_window},
                                {&kSpectralSubtraction, spectral_subtraction},
                                {&kSpectrumEnergy, spectrum_energy}};

}  // namespace

std::span<const SamplerRow> signal_samplers() { return kRows; }

}  // namespace bantam::ops::testing
