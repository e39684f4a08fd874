// matmul in int8, int16 and hybrid form on packed panels: a block of rows of a is widened to int16, for the hybrid form
// after quantising it, and multiplied by the packed weights.
#include <algorithm>
#include <cstring>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

constexpr std::int64_t kBlockRows = gemm::kMaxTileRows;

MatmulGeometry geometry(const OpCall& call) {
  return matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t row_numbers(const MatmulGeometry& g) { return 2 * gemm::pair_count(g.k); }

/// One thread's scratch: a block of widened rows, and the int8 row that the hybrid form quantises into.
std::int64_t block_bytes(const MatmulGeometry& g) {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  return align_up(std::min<std::int64_t>(kBlockRows, g.m) * row_numbers(g) * kNumber, kAlignment) +
         align_up(g.k, kAlignment);
}

/// How many panels one task takes: about ten microseconds of work.
std::int64_t panel_grain(const MatmulGeometry& g) {
  const std::int64_t rows = std::min<std::int64_t>(kBlockRows, g.m);
  return std::max<std::int64_t>(200'000 / (gemm::kPanel * g.k * rows), 4);
}

/// Widens rows with widen_row(source row, to), then calls multiply(rows, first row, panels) for blocks of all rows of
/// one product and ranges of panels.
template <typename WidenRow, typename Multiply>
void for_each_block(const Invocation& call, const MatmulGeometry& g, WidenRow widen_row, Multiply multiply) {
  const auto block = [&](std::int64_t slot, std::int64_t m, std::int64_t first, std::int64_t last) {
    std::byte* scratch = call.scratch + slot * block_bytes(g);
    auto* rows = reinterpret_cast<std::int16_t*>(scratch);
    auto* quantized = reinterpret_cast<std::int8_t*>(scratch + block_bytes(g) - align_up(g.k, kAlignment));
    const std::int64_t count = std::min(kBlockRows, g.m - m);
    float scales[kBlockRows] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      std::int16_t* row = rows + i * row_numbers(g);
      scales[i] = widen_row(m + i, quantized, row);
      if (g.k % 2 != 0) row[g.k] = 0;
    }
    multiply(gemm::LeftRowsI16{rows, count, gemm::pair_count(g.k)}, m,
             gemm::RightPanelsI8{call.input<std::int8_t>(1), g.n, first, last}, scales);
  };
  const std::int64_t panels = gemm::panel_count(g.n);
  if (g.m > kBlockRows) {
    parallel_slots(*call.threads, g.m, kBlockRows, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = begin; m < end; m += kBlockRows) block(slot, m, 0, panels);
    });
  } else {
    parallel_slots(*call.threads, panels, panel_grain(g),
                   [&](std::int64_t slot, std::int64_t first, std::int64_t last) { block(slot, 0, first, last); });
  }
}

void run_int8_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  const auto& params = call.as<MatmulParams>();
  const Requantizer requantize = make_requantizer(call, int8_range(params));
  const std::int8_t* a = call.input<std::int8_t>(0) + a_offset;
  std::int8_t* y = call.output<std::int8_t>() + y_offset;
  for_each_block(
      call, g,
      [&](std::int64_t m, std::int8_t*, std::int16_t* to) {
        gemm::widen(a + m * g.a.row_stride, g.k, params.input_zero_point, to);
        return 1.0F;
      },
      [&](const gemm::LeftRowsI16& rows, std::int64_t m, const gemm::RightPanelsI8& weights, const float*) {
        multiply(rows, weights, gemm::Int8Result{y + m * g.y.row_stride, g.y.row_stride, requantize});
      });
}

void run_int16_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  const Requantizer16 requantize = make_requantizer16(call, int8_range(call.as<MatmulParams>()));
  const std::int16_t* a = call.input<std::int16_t>(0) + a_offset;
  std::int16_t* y = call.output<std::int16_t>() + y_offset;
  for_each_block(
      call, g,
      [&](std::int64_t m, std::int8_t*, std::int16_t* to) {
        std::memcpy(to, a + m * g.a.row_stride, static_cast<std::size_t>(g.k) * sizeof *to);
        return 1.0F;
      },
      [&](const gemm::LeftRowsI16& rows, std::int64_t m, const gemm::RightPanelsI8& weights, const float*) {
        multiply(rows, weights, gemm::Int16Result{y + m * g.y.row_stride, g.y.row_stride, requantize});
      });
}

void run_hybrid_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  const HybridScaler scaler = make_hybrid_scaler(call);
  const bool asymmetric = call.as<MatmulParams>().asymmetric != 0;
  const float* a = call.input<float>(0) + a_offset;
  float* y = call.output<float>() + y_offset;
  for_each_block(
      call, g,
      [&](std::int64_t m, std::int8_t* quantized, std::int16_t* to) {
        const float* row = a + m * g.a.row_stride;
        if (asymmetric) {
          const RowQuantization quantization = quantize_asymmetric(row, g.k, quantized);
          gemm::widen(quantized, g.k, quantization.zero_point, to);
          return quantization.scale;
        }
        const float scale = symmetric_scale(gemm::largest_magnitude_simd(row, g.k, 0.0F));
        gemm::quantize_symmetric_simd(row, g.k, scale, quantized);
        gemm::widen(quantized, g.k, 0, to);
        return scale;
      },
      [&](const gemm::LeftRowsI16& rows, std::int64_t m, const gemm::RightPanelsI8& weights, const float* scales) {
        multiply(rows, weights,
                 gemm::HybridResult{y + m * g.y.row_stride, g.y.row_stride, scales, scaler,
                                    call.as<MatmulParams>().activation});
      });
}

}  // namespace

bool int8_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) != LinearForm::kFloat && call.inputs[1].data != nullptr &&
         call.in(1).is_dense() && call.as<MatmulParams>().weights_zero_point == 0 && call.in(0).elements() > 0 &&
         call.in(1).elements() > 0;
}

Footprint int8_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = block_bytes(fold_batch(geometry(call))) * threads};
}

std::int64_t int8_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? gemm::packed_i8_bytes(call.in(1).dims[1], call.in(1).dims[0]) : 0;
}

void int8_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const std::int64_t n = call.in(1).dims[0];
  const std::int64_t k = call.in(1).dims[1];
  gemm::pack_panels_i8(static_cast<const std::int8_t*>(call.inputs[1].data), k, n, 1, k,
                       reinterpret_cast<std::int8_t*>(destination));
}

Status run_int8(const Invocation& call) {
  const MatmulGeometry g = fold_batch(matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out()));
  const LinearForm form = linear_form(call.in(0), call.in(1));
  const auto run_form = form == LinearForm::kInt8    ? run_int8_form
                        : form == LinearForm::kInt16 ? run_int16_form
                                                     : run_hybrid_form;
  for_each_element(g.batch, [&](const auto& offsets) { run_form(call, g, offsets[0], offsets[1]); });
  return ok_status();
}

}  // namespace bantam::ops::matmul
