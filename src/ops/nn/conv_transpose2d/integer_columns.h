// Transposed convolution of 8-bit integers with few output channels: one matrix product gives the results of all phases
// (phases.h) for an input position, as columns [vertical phase, horizontal phase, output channel]; they are then copied
// to where they belong. Products by phase would leave most of a panel's columns empty. Kernels that are no multiple of
// the stride are extended by taps that add nothing. Used by conv_transpose2d and conv_transpose2d_affine; lives on the
// caller's stack while they run. Freestanding; images are dense, of one group, and dilations are 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/nn/conv_transpose2d/phases.h"

namespace bantam::ops::conv_transpose2d {

/// The windows of one axis that all phases share.
struct AxisColumns {
  std::int64_t first = 0;  ///< position q gives the outputs stride * q - pad and the stride - 1 that follow
  std::int64_t count = 0;
  WindowAxis window;  ///< of the convolution that gives them, the last tap first

  explicit AxisColumns(const Axis& a) noexcept : first(a.pad / a.stride) {
    const std::int64_t taps = (a.kernel + a.stride - 1) / a.stride;
    count = (a.out - 1 + a.pad) / a.stride - first + 1;
    window = {.kernel = static_cast<std::int32_t>(taps), .pad_before = static_cast<std::int32_t>(taps - 1 - first)};
  }

  /// The tap of the kernel that is tap `i` of the window in `phase`; may be beyond the kernel.
  std::int64_t tap(const Axis& a, std::int64_t i, std::int64_t phase) const noexcept {
    return (window.kernel - 1 - i) * a.stride + phase;
  }
};

inline std::int64_t phase_count(const Geometry& g) noexcept { return g.vertical.stride * g.horizontal.stride; }

/// The product of all positions; its results are y [positions, columns], not an image that exists.
struct ColumnsProblem {
  AxisColumns vertical;
  AxisColumns horizontal;
  conv2d::Problem product;

  ColumnsProblem(const Geometry& g, const TensorDesc& x) noexcept : vertical(g.vertical), horizontal(g.horizontal) {
    ImageShape y;
    y.n = static_cast<std::int32_t>(g.batch);
    y.h = static_cast<std::int32_t>(vertical.count);
    y.w = static_cast<std::int32_t>(horizontal.count);
    y.c = static_cast<std::int32_t>(phase_count(g) * g.channels_out);
    y.w_stride = y.c;
    y.h_stride = y.w * y.w_stride;
    y.n_stride = y.h * y.h_stride;
    product = convolution_of(g, ImageShape(x), y, vertical.window, horizontal.window);
  }

  std::int64_t columns() const noexcept { return product.group_outputs; }
};

/// Is one product less work than those by phase, and are its columns few? Requires elements in all operands.
inline bool columns_fit(const Geometry& g) noexcept {
  constexpr std::int64_t kMostColumns = 64;
  const std::int64_t columns = phase_count(g) * g.channels_out;
  const auto taps = [](const Axis& a) { return (a.kernel + a.stride - 1) / a.stride; };
  if (g.groups != 1 || g.vertical.dilation != 1 || g.horizontal.dilation != 1 || columns > kMostColumns ||
      !phases_fit(g))
    return false;
  return taps(g.vertical) * taps(g.horizontal) * gemm::panel_count(columns) <
         g.vertical.kernel * g.horizontal.kernel * gemm::panel_count(g.channels_out);
}

/// Lists of one number per channel, of 32 bits each, that are repeated for every phase.
inline constexpr std::int64_t kRepeatedLists = 3;

/// Positions whose results are computed, then copied.
inline std::int64_t columns_block(const ColumnsProblem& p) noexcept {
  constexpr std::int64_t kMostPositions = 128;
  return std::min<std::int64_t>(std::int64_t{p.product.g.y.n} * p.product.g.y.h * p.product.g.y.w, kMostPositions);
}

/// Bytes of the repeated lists, which lie at the beginning of the scratch.
inline std::int64_t columns_lists_bytes(const ColumnsProblem& p) noexcept {
  return align_up(kRepeatedLists * p.columns() * static_cast<std::int64_t>(sizeof(std::int32_t)), kAlignment);
}

/// Bytes of a block's results, which lie at the beginning of a thread's part.
inline std::int64_t columns_results_bytes(const ColumnsProblem& p, ElementType type) noexcept {
  return align_up(columns_block(p) * p.columns() * element_size(type), kAlignment);
}

inline Footprint columns_footprint_of(const OpCall& call, const Geometry& g, int threads) {
  const ColumnsProblem p(g, call.in(0));
  const gemm::ProductScratch product = conv2d::product_scratch(p.product);
  const std::int64_t results = columns_results_bytes(p, call.out().type);
  const std::int64_t lists = columns_lists_bytes(p);
  return {.scratch_bytes = lists + (results + product.least) * threads,
          .useful_scratch_bytes = lists + (results + product.useful) * threads};
}

inline std::int64_t columns_packed_bytes_of(const OpCall& call, const Geometry& g) {
  return conv2d::packed_window_bytes(ColumnsProblem(g, call.in(0)).product);
}

/// Packs operand 1 with the bits of `flip` inverted; taps beyond the kernel are `nothing`.
inline void pack_columns(const OpCall& call, const Geometry& g, std::uint8_t flip, std::int32_t nothing,
                         std::byte* destination) {
  const ColumnsProblem p(g, call.in(0));
  const auto* data = static_cast<const std::uint8_t*>(call.inputs[1].data);
  gemm::pack_panels_of(
      p.product.k, p.columns(),
      [&](std::int64_t k, std::int64_t n) {
        const std::int64_t window_tap = k / g.channels_in;
        const std::int64_t phase = n / g.channels_out;
        const std::int64_t kh =
            p.vertical.tap(g.vertical, window_tap / p.horizontal.window.kernel, phase / g.horizontal.stride);
        const std::int64_t kw =
            p.horizontal.tap(g.horizontal, window_tap % p.horizontal.window.kernel, phase % g.horizontal.stride);
        if (kh >= g.vertical.kernel || kw >= g.horizontal.kernel) return static_cast<std::int8_t>(nothing);
        const std::int64_t i =
            ((n % g.channels_out * g.vertical.kernel + kh) * g.horizontal.kernel + kw) * g.channels_in +
            k % g.channels_in;
        return static_cast<std::int8_t>(data[i] ^ flip);
      },
      reinterpret_cast<std::int8_t*>(destination));
}

/// Writes `list`, one number for each of the channels, once per phase to the scratch as list `i`; null where it is.
template <typename T>
const T* repeated(const Invocation& call, const Geometry& g, const T* list, int i) {
  static_assert(sizeof(T) == sizeof(std::int32_t));
  if (list == nullptr) return nullptr;
  T* to = reinterpret_cast<T*>(call.scratch) + i * phase_count(g) * g.channels_out;
  for (std::int64_t phase = 0; phase < phase_count(g); ++phase)
    std::memcpy(to + phase * g.channels_out, list, static_cast<std::size_t>(g.channels_out) * sizeof(T));
  return to;
}

/// Copies the results of `count` positions of a row from `at` on, one vertical phase of them, to the row `y`. Of the
/// first and the last position some may be outside.
template <typename Y>
void copy_columns(const Axis& a, std::int64_t channels, std::int64_t q, std::int64_t count, const Y* from,
                  std::int64_t from_step, Y* y) {
  const std::int64_t row = a.out * channels;
  const std::int64_t run = a.stride * channels;
  const auto copy_clipped = [&] {
    const std::int64_t at = q * run - a.pad * channels;
    const std::int64_t first = std::max<std::int64_t>(-at, 0);
    const std::int64_t last = std::min(row - at, run);
    if (first < last) conv2d::copy_numbers(1, last - first, from + first, 0, y + at + first, 0);
    from += from_step;
    ++q;
    --count;
  };
  if (count > 0 && q * a.stride < a.pad) copy_clipped();
  const std::int64_t whole = std::clamp<std::int64_t>((a.out + a.pad) / a.stride - q, 0, count);
  if (whole > 0) conv2d::copy_numbers(whole, run, from, from_step, y + q * run - a.pad * channels, run);
  from += whole * from_step;
  q += whole;
  count -= whole;
  if (count > 0) copy_clipped();
}

/// Copies the results of positions [begin, end) to y.
template <typename Y>
void scatter_columns(const Geometry& g, const ColumnsProblem& p, std::int64_t begin, std::int64_t end, const Y* from,
                     Y* y) {
  const std::int64_t run = g.horizontal.stride * g.channels_out;
  while (begin < end) {
    const conv2d::Pixel at = conv2d::pixel_at(p.product.g.y, begin);
    const std::int64_t count = std::min(end - begin, p.horizontal.count - at.x);
    for (std::int64_t phase = 0; phase < g.vertical.stride; ++phase) {
      const std::int64_t oh = (at.y + p.vertical.first) * g.vertical.stride + phase - g.vertical.pad;
      if (oh < 0 || oh >= g.vertical.out) continue;
      copy_columns(g.horizontal, g.channels_out, at.x + p.horizontal.first, count, from + phase * run, p.columns(),
                   y + (at.n * g.vertical.out + oh) * g.horizontal.out * g.channels_out);
    }
    from += count * p.columns();
    begin += count;
  }
}

/// Calls multiply(rows, workspace, panels, results [rows, columns]) for blocks of results that make up y, from several
/// threads. x: operand 0, bytes of this form; operand 1 is packed.
template <typename Y, typename Multiply>
void run_columns_of(const Invocation& call, const Geometry& g, gemm::ByteForm form, Y* y, Multiply multiply) {
  const ColumnsProblem p(g, call.in(0));
  const std::int64_t lists = columns_lists_bytes(p);
  const std::int64_t results_bytes = columns_results_bytes(p, call.out().type);
  const std::int64_t positions = std::int64_t{p.product.g.y.n} * p.product.g.y.h * p.product.g.y.w;
  const gemm::RightPanelsI8 panels{call.input<std::int8_t>(1), p.columns(), 0, gemm::panel_count(p.columns())};
  parallel_slots(*call.threads, positions, conv2d::product_grain(p.product),
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   const std::int64_t bytes = slot_scratch_bytes(call, lists);
                   std::byte* scratch = call.scratch + lists + slot * bytes;
                   auto* results = reinterpret_cast<Y*>(scratch);
                   const gemm::Workspace workspace{
                       reinterpret_cast<std::int16_t*>(scratch + results_bytes),
                       (bytes - results_bytes) / static_cast<std::int64_t>(sizeof(std::int16_t))};
                   for (std::int64_t next = 0; begin < end; begin = next) {
                     next = std::min(begin + columns_block(p), end);
                     const conv2d::Windows<std::uint8_t> windows(p.product, call.input<std::uint8_t>(0), form, begin);
                     multiply(windows.rows(next - begin, false), workspace, panels, results);
                     scatter_columns(g, p, begin, next, results, y);
                   }
                 });
}

}  // namespace bantam::ops::conv_transpose2d
