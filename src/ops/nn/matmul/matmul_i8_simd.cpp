// matmul in int8, int16 and hybrid form on packed panels: rows of a, for the hybrid form quantised and widened to 16
// bits, are multiplied by the packed weights.
#include <algorithm>
#include <cstring>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/int8_grain.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

constexpr std::int64_t kBlockRows = gemm::kMaxTileRows;
constexpr std::int64_t kNumber = sizeof(std::int16_t);

MatmulGeometry geometry(const OpCall& call) {
  return matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t block_rows(const MatmulGeometry& g) { return std::min<std::int64_t>(kBlockRows, g.m); }

/// Calls product(workspace, first row, rows, panels) for parts of all rows of one product or of its panels.
template <typename Product>
void for_each_part(const Invocation& call, const MatmulGeometry& g, Product product) {
  const std::int64_t bytes = slot_scratch_bytes(call);
  const auto part = [&](std::int64_t slot, std::int64_t m, std::int64_t rows, std::int64_t first, std::int64_t last) {
    const gemm::Workspace workspace{reinterpret_cast<std::int16_t*>(call.scratch + slot * bytes), bytes / kNumber};
    product(workspace, m, rows, gemm::RightPanelsI8{call.input<std::int8_t>(1), g.n, first, last});
  };
  const std::int64_t panels = gemm::panel_count(g.n);
  if (g.m > kBlockRows) {
    parallel_slots(*call.threads, g.m, int8_row_grain(g), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      part(slot, begin, end - begin, 0, panels);
    });
  } else {
    parallel_slots(*call.threads, panels, int8_panel_grain(g),
                   [&](std::int64_t slot, std::int64_t first, std::int64_t last) { part(slot, 0, g.m, first, last); });
  }
}

/// The left matrix of the int16 form.
struct Int16Rows {
  const std::int16_t* a;
  std::int64_t row_stride;

  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                     std::int64_t stride, std::int16_t* to) {
    const Int16Rows& self = *static_cast<const Int16Rows*>(context);
    for (std::int64_t m = row; m < row + rows; ++m, to += stride)
      std::memcpy(to, self.a + m * self.row_stride + first, static_cast<std::size_t>(count) * sizeof *to);
  }
};

template <typename X, typename Result, typename Requantize>
void run_integer_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset,
                      const Requantize& requantize) {
  const X* a = call.input<X>(0) + a_offset;
  X* y = call.output<X>() + y_offset;
  for_each_part(
      call, g,
      [&](const gemm::Workspace& workspace, std::int64_t m, std::int64_t rows, const gemm::RightPanelsI8& weights) {
        const X* first_row = a + m * g.a.row_stride;
        gemm::LeftSource left{.rows = rows, .k = g.k};
        Int16Rows numbers{};
        if constexpr (sizeof(X) == 1) {
          const gemm::ByteForm form = gemm::byte_form(0, call.as<MatmulParams>().input_zero_point);
          left.flip = form.flip;
          left.zero = form.zero;
          left.data = reinterpret_cast<const std::uint8_t*>(first_row);
          left.row_stride = g.a.row_stride;
        } else {
          numbers = {first_row, g.a.row_stride};
          left.gather_numbers = Int16Rows::gather;
          left.context = &numbers;
        }
        multiply(left, workspace, weights, Result{y + m * g.y.row_stride, g.y.row_stride, requantize});
      });
}

void run_int8_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  run_integer_form<std::int8_t, gemm::Int8Result>(call, g, y_offset, a_offset,
                                                  make_requantizer(call, int8_range(call.as<MatmulParams>())));
}

void run_int16_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  run_integer_form<std::int16_t, gemm::Int16Result>(call, g, y_offset, a_offset,
                                                    make_requantizer16(call, int8_range(call.as<MatmulParams>())));
}

/// The left matrix of the hybrid form. Rows come in full: the scale of each is found when it is asked for.
struct HybridRows {
  const float* a;
  std::int64_t row_stride;
  bool asymmetric;
  float* scales;  ///< by row

  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t /*first*/,
                     std::int64_t count, std::int64_t stride, std::int16_t* to) {
    const HybridRows& self = *static_cast<const HybridRows*>(context);
    for (std::int64_t m = row; m < row + rows; ++m, to += stride)
      self.scales[m] = self.widen_row(self.a + m * self.row_stride, count, to);
  }

  static void widen(const std::int8_t* from, std::int64_t k, std::int32_t zero_point, std::int16_t* to) {
    gemm::widen(reinterpret_cast<const std::uint8_t*>(from), k, gemm::byte_form(0, zero_point), to);
  }

  /// Returns the scale.
  float widen_row(const float* from, std::int64_t k, std::int16_t* to) const {
    // In the upper half of the row's own place: widening from front to back catches up with it only at the end.
    std::int8_t* quantized = reinterpret_cast<std::int8_t*>(to) + k;
    if (asymmetric) {
      const RowQuantization quantization = quantize_asymmetric(from, k, quantized);
      widen(quantized, k, quantization.zero_point, to);
      return quantization.scale;
    }
    const float scale = symmetric_scale(gemm::largest_magnitude_simd(from, k, 0.0F));
    gemm::quantize_symmetric_simd(from, k, scale, quantized);
    widen(quantized, k, 0, to);
    return scale;
  }
};

void run_hybrid_form(const Invocation& call, const MatmulGeometry& g, std::int64_t y_offset, std::int64_t a_offset) {
  const HybridScaler scaler = make_hybrid_scaler(call);
  const float* a = call.input<float>(0) + a_offset;
  float* y = call.output<float>() + y_offset;
  for_each_part(
      call, g,
      [&](const gemm::Workspace& workspace, std::int64_t m, std::int64_t rows, const gemm::RightPanelsI8& weights) {
        const std::int64_t most = std::min(rows, kBlockRows);
        const std::int64_t fit = std::clamp<std::int64_t>(workspace.count / gemm::row_numbers(g.k), 1, most);
        for (std::int64_t i = m; i < m + rows; i += fit) {
          float scales[kBlockRows] = {};
          const HybridRows left{a + i * g.a.row_stride, g.a.row_stride, call.as<MatmulParams>().asymmetric != 0,
                                scales};
          multiply(
              {.rows = std::min(fit, m + rows - i), .k = g.k, .gather_numbers = HybridRows::gather, .context = &left},
              workspace, weights,
              gemm::HybridResult{y + i * g.y.row_stride, g.y.row_stride, scales, scaler,
                                 call.as<MatmulParams>().activation});
        }
      });
}

}  // namespace

bool int8_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) != LinearForm::kFloat && call.inputs[1].data != nullptr &&
         call.in(1).is_dense() && call.as<MatmulParams>().weights_zero_point == 0 && call.in(0).elements() > 0 &&
         call.in(1).elements() > 0;
}

Footprint int8_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = fold_batch(geometry(call));
  const bool hybrid = linear_form(call.in(0), call.in(1)) == LinearForm::kHybrid;
  const std::int64_t bytes = call.in(0).bytes() + call.in(1).bytes() + call.out().bytes();
  const gemm::ProductScratch scratch = gemm::product_scratch(hybrid ? block_rows(g) : g.m, g.k, bytes);
  // Rows of the hybrid form come in full.
  const std::int64_t row = hybrid ? align_up(gemm::row_numbers(g.k) * kNumber, kAlignment) : 0;
  return {.scratch_bytes = std::max(scratch.least, row) * threads, .useful_scratch_bytes = scratch.useful * threads};
}

std::int64_t int8_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? gemm::packed_i8_bytes(call.in(1).dims[1], call.in(1).dims[0]) : 0;
}

void int8_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const std::int64_t n = call.in(1).dims[0];
  const std::int64_t k = call.in(1).dims[1];
  gemm::pack_panels_i8(static_cast<const std::int8_t*>(call.inputs[1].data), k, n, 1, k, 0,
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
