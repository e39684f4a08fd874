// How a separable convolution is computed: bands of a few rows go through the kernels of its two convolutions, the rows
// between them in scratch. Whatever a band's height, results are the same to the bit: both kernels compute every
// result by itself. The variants of separable_conv2d and separable_conv2d_affine are rows made by `band_variant`.
// Freestanding, re-entrant.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/separable_conv2d/halves.h"

namespace bantam::ops::separable {

/// The kernels of the two convolutions. Neither result depends on how many rows it is computed by. The first needs no
/// scratch; the second's for fewer rows is at most what it calls useful for more, and its least is the same for all
/// bands of gemm::kMaxTileRows pixels or more.
struct Pair {
  KernelVariant first;
  KernelVariant second;
};

/// Rows of a band at most: enough pixels to use each weight that was loaded many times, in a buffer that stays in the
/// second-level cache.
inline std::int64_t useful_rows(std::int64_t row_bytes, std::int64_t width, std::int64_t rows) noexcept {
  constexpr std::int64_t kPixels = 96;
  constexpr std::int64_t kBufferBytes = 65536;
  const std::int64_t enough = (kPixels + width - 1) / std::max<std::int64_t>(width, 1);
  const std::int64_t fit = kBufferBytes / std::max<std::int64_t>(row_bytes, 1);
  return std::max<std::int64_t>(std::min({enough, fit, rows}), 1);
}

/// What one thread needs: a buffer of rows, then scratch of the second convolution.
struct BandScratch {
  std::int64_t row_bytes = 0;
  std::int64_t rows = 0;          ///< of a band at most
  std::int64_t least_second = 0;  ///< bytes in which the second convolution works, whatever the band
  std::int64_t useful_second = 0;

  std::int64_t bytes(std::int64_t buffer_rows, std::int64_t second) const noexcept {
    return align_up(buffer_rows * row_bytes, kAlignment) + align_up(second, kAlignment);
  }
};

/// With what the highest band needs as least_second. Leaves `halves` with other rows.
template <typename Form>
BandScratch useful_scratch(const Pair& kernels, Halves<Form>& halves) {
  BandScratch scratch;
  scratch.row_bytes = halves.middle_row_bytes();
  scratch.rows = useful_rows(scratch.row_bytes, halves.middle().dims[2], halves.middle().dims[1]);
  halves.select_rows(scratch.rows);
  const Footprint f = footprint(kernels.second, halves.second(), 1);
  scratch.least_second = f.scratch_bytes;
  scratch.useful_second = std::max(f.scratch_bytes, f.useful_scratch_bytes);
  return scratch;
}

/// Raises least_second to what lower bands need.
template <typename Form>
void find_least(const Pair& kernels, Halves<Form>& halves, BandScratch* scratch) {
  const std::int64_t width = std::max<std::int64_t>(halves.middle().dims[2], 1);
  const std::int64_t last = std::min(scratch->rows - 1, gemm::kMaxTileRows / width + 1);
  for (std::int64_t rows = 1; rows <= last; ++rows) {
    halves.select_rows(rows);
    scratch->least_second =
        std::max(scratch->least_second, footprint(kernels.second, halves.second(), 1).scratch_bytes);
  }
}

template <typename Form>
bool supports(const Pair& kernels, const OpCall& call) {
  const Halves<Form> halves(call.params, call.inputs, call.out());
  return supports(kernels.first, halves.first()) && supports(kernels.second, halves.second());
}

template <typename Form>
Footprint band_footprint(const Pair& kernels, const OpCall& call, int threads) {
  Halves<Form> halves(call.params, call.inputs, call.out());
  const ConvGeometry g{ImageShape(call.in(0)), ImageShape(call.out()), halves.vertical(), {}, 1};
  BandScratch scratch = useful_scratch(kernels, halves);
  find_least(kernels, halves, &scratch);
  Footprint result{.scratch_bytes = scratch.bytes(1, scratch.least_second) * threads,
                   .useful_scratch_bytes = scratch.bytes(scratch.rows, scratch.useful_second) * threads};
  if (can_overlap(call, threads)) {
    const std::int64_t lead = row_lead_bytes(g, element_size(call.in(0).type), element_size(call.out().type));
    if (lead < call.out().bytes()) result.lead_bytes = lead;
  }
  return result;
}

template <typename Form>
std::int64_t band_packed_bytes(const Pair& kernels, const OpCall& call, int input) {
  const Halves<Form> halves(call.params, call.inputs, call.out());
  const auto [second, operand] = Halves<Form>::place(input);
  return second ? packed_bytes(kernels.second, halves.second(), operand)
                : packed_bytes(kernels.first, halves.first(), operand);
}

template <typename Form>
void band_pack(const Pair& kernels, const OpCall& call, int input, std::byte* destination) {
  const Halves<Form> halves(call.params, call.inputs, call.out());
  const auto [second, operand] = Halves<Form>::place(input);
  if (second) {
    kernels.second.pack(halves.second(), operand, destination);
  } else {
    kernels.first.pack(halves.first(), operand, destination);
  }
}

/// Rows [begin, end), counted through all items, with the scratch of one thread.
template <typename Form>
Status run_rows(const Pair& kernels, const Invocation& call, std::int64_t begin, std::int64_t end, std::byte* memory,
                std::int64_t bytes) {
  Halves<Form> halves(call.params, call.inputs, call.out());
  BandScratch scratch = useful_scratch(kernels, halves);
  if (bytes < scratch.bytes(scratch.rows, scratch.useful_second)) {
    find_least(kernels, halves, &scratch);
    while (scratch.rows > 1 && bytes < scratch.bytes(scratch.rows, scratch.least_second)) --scratch.rows;
  }
  const std::int64_t buffer = align_up(scratch.rows * scratch.row_bytes, kAlignment);
  const Threads one;
  const std::int64_t height = call.out().dims[1];
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t at = row % height;
    const std::int64_t rows = std::min({scratch.rows, height - at, end - row});
    halves.select_rows(call.inputs[0], call.outputs[0], row / height, at, rows, memory);
    BANTAM_RETURN_IF_ERROR(kernels.first.run(halves.run_first(one)));
    BANTAM_RETURN_IF_ERROR(kernels.second.run(halves.run_second(one, memory + buffer, bytes - buffer)));
    row += rows;
  }
  return ok_status();
}

template <typename Form>
Status run_bands(const Pair& kernels, const Invocation& call) {
  const TensorDesc& y = call.out();
  if (y.elements() == 0) return ok_status();
  const OpCall whole{call.params, call.inputs, call.outputs};
  const std::int64_t rows = std::int64_t{y.dims[0]} * y.dims[1];
  // Tasks of at least some ten thousand multiply-adds.
  const std::int64_t grain = std::max<std::int64_t>(50'000 / std::max<std::int64_t>(Form::work(whole) / rows, 1), 1);
  const std::int64_t bytes = slot_scratch_bytes(call);
  parallel_slots(*call.threads, rows, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    // Convolutions have no faults that depend on data.
    static_cast<void>(run_rows<Form>(kernels, call, begin, end, call.scratch + slot * bytes, bytes));
  });
  return ok_status();
}

/// The row of a variants table for two kernels.
template <typename Form, const Pair& kPair>
constexpr KernelVariant band_variant(std::string_view name, Accuracy accuracy = {}) {
  return {.name = name,
          .supports = [](const OpCall& call) { return separable::supports<Form>(kPair, call); },
          .footprint = [](const OpCall& call, int threads) { return band_footprint<Form>(kPair, call, threads); },
          .packed_bytes = [](const OpCall& call, int input) { return band_packed_bytes<Form>(kPair, call, input); },
          .pack = [](const OpCall& call, int input,
                     std::byte* destination) { band_pack<Form>(kPair, call, input, destination); },
          .run = [](const Invocation& call) { return run_bands<Form>(kPair, call); },
          .accuracy = accuracy};
}

}  // namespace bantam::ops::separable
