// matmul in f32 on packed panels. Constant right operands are packed at compile time; others into scratch, just before
// they are used. Rows of a are read where they lie unless a is transposed.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

bool is_float(const OpCall& call) {
  return call.in(0).type == ElementType::kF32 && call.in(1).type == ElementType::kF32 && call.in(0).elements() > 0 &&
         call.in(1).elements() > 0 && call.out().elements() > 0;
}

bool is_constant(const OpCall& call) { return call.inputs[1].data != nullptr; }

MatmulGeometry geometry(const OpCall& call) {
  return matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t matrix_count(const TensorDesc& desc) { return batch_shape(desc).elements(); }

/// Floats of the tile that rows of a transposed a are gathered into, per thread.
std::int64_t gathered_floats(const MatmulGeometry& g) {
  return g.a.column_stride == 1 ? 0 : align_up(gemm::kMaxTileRows * g.k, kAlignment / kFloat);
}

void multiply_rows(const MatmulGeometry& g, const float* a, const gemm::RightPanels& b, const gemm::Result& y,
                   std::int64_t begin, std::int64_t end, float* gathered) {
  gemm::Result result = y;
  if (g.a.column_stride == 1) {
    result.data += begin * y.row_stride;
    const gemm::LeftRows rows{
        .data = a + begin * g.a.row_stride, .rows = end - begin, .row_stride = g.a.row_stride, .length = g.k};
    multiply(rows, b, result);
    return;
  }
  const std::int64_t tile = gemm::tile_rows();
  for (std::int64_t m = begin; m < end; m += tile) {
    const std::int64_t count = std::min(tile, end - m);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t k = 0; k < g.k; ++k)
        gathered[i * g.k + k] = a[(m + i) * g.a.row_stride + k * g.a.column_stride];
    result.data = y.data + m * y.row_stride;
    multiply({.data = gathered, .rows = count, .row_stride = g.k, .length = g.k}, b, result);
  }
}

/// Products of numbers that are worth a thread, of about ten microseconds with plain instructions: small products do
/// not wake others.
constexpr std::int64_t kWorthOfThread = 100'000;

/// One product of matrices, split over rows, or over panels where there are few rows. Rows are not split into whole
/// tiles: 128 of them are 64 and 64, not 60 and 68.
void multiply_matrix(const Invocation& call, const MatmulGeometry& g, const float* a, const float* panels,
                     const gemm::Result& y, float* gathered) {
  const std::int64_t last = gemm::panel_count(g.n);
  const std::int64_t slot_floats = gathered_floats(g);
  // Rows or panels that are worth a thread where each takes so many products.
  const auto worth = [](std::int64_t length, std::int64_t count) {
    return kWorthOfThread / std::max<std::int64_t>(length * count, 1);
  };
  if (g.m >= 2 * gemm::kMaxTileRows * call.threads->count) {
    const std::int64_t least = std::max(worth(g.n, g.k), gemm::kMaxTileRows);
    parallel_slots(*call.threads, g.m, Grain(least, 2), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      multiply_rows(g, a, {panels, g.n, 0, last}, y, begin, end, gathered + slot * slot_floats);
    });
  } else {
    const std::int64_t least = std::max<std::int64_t>(worth(gemm::kPanel * g.k, g.m), 4);
    parallel_slots(*call.threads, last, least, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      multiply_rows(g, a, {panels, g.n, begin, end}, y, 0, g.m, gathered + slot * slot_floats);
    });
  }
}

/// Calls f(y, a, offset of b) for the products [begin, end) of the batch.
template <typename F>
void for_each_product(const Invocation& call, const MatmulGeometry& g, std::int64_t begin, std::int64_t end, F f) {
  const gemm::Result y{nullptr, g.y.row_stride, optional_input<float>(call, 2), call.as<MatmulParams>().activation};
  for_each_element(g.batch, begin, end, [&](const auto& offsets) {
    gemm::Result result = y;
    result.data = call.output<float>() + offsets[0];
    f(result, call.input<float>(0) + offsets[1], offsets[2]);
  });
}

/// Do threads take whole products of a batch, about as many each, instead of parts of every product?
bool shares_products(const MatmulGeometry& g, std::int32_t threads) {
  constexpr std::int64_t kEven = 4;  // for each thread are shared well enough
  const std::int64_t products = g.batch.elements;
  return threads > 1 && products >= threads && (products % threads == 0 || products >= kEven * threads);
}

/// Products of a batch that are worth a thread: some microseconds of work.
Grain product_grain(const MatmulGeometry& g) {
  constexpr double kWork = 300'000;
  return static_cast<std::int64_t>(kWork / (static_cast<double>(g.m) * g.n * g.k)) + 1;
}

/// Floats for one right operand that is packed when it is used, and rows that are gathered, of one thread.
std::int64_t product_floats(const MatmulGeometry& g) {
  return align_up(gemm::packed_floats(g.k, g.n), kAlignment / kFloat) + gathered_floats(g);
}

/// The products [begin, end) of the batch by one thread.
void multiply_products(const Invocation& call, const MatmulGeometry& g, std::int64_t begin, std::int64_t end,
                       float* panels) {
  const std::int64_t last = gemm::panel_count(g.n);
  std::int64_t packed_offset = -1;
  for_each_product(call, g, begin, end, [&](const gemm::Result& y, const float* a, std::int64_t b_offset) {
    if (b_offset != packed_offset)
      gemm::pack_panels_simd(call.input<float>(1) + b_offset, g.k, g.n, g.b.row_stride, g.b.column_stride, 0, last,
                             panels);
    packed_offset = b_offset;
    multiply_rows(g, a, {panels, g.n, 0, last}, y, 0, g.m, panels + gemm::packed_floats(g.k, g.n));
  });
}

}  // namespace

bool packed_supports(const OpCall& call) { return is_float(call) && is_constant(call) && call.in(1).is_dense(); }

Footprint packed_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = gathered_floats(geometry(call)) * kFloat * threads};
}

std::int64_t packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const MatrixShape b = matrix_shape(call.in(1), call.as<MatmulParams>().transpose_b != 0);
  return matrix_count(call.in(1)) * gemm::packed_floats(b.rows, b.columns) * kFloat;
}

void pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const MatrixShape b = matrix_shape(call.in(1), call.as<MatmulParams>().transpose_b != 0);
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t count = matrix_count(call.in(1));
  for (std::int64_t i = 0; i < count; ++i)
    gemm::pack_panels(data + i * b.rows * b.columns, b.rows, b.columns, b.row_stride, b.column_stride, 0,
                      gemm::panel_count(b.columns), packed + i * gemm::packed_floats(b.rows, b.columns));
}

Status run_packed(const Invocation& call) {
  const MatmulGeometry g = fold_batch(matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out()));
  const std::int64_t matrix = static_cast<std::int64_t>(g.k) * g.n;
  auto* gathered = reinterpret_cast<float*>(call.scratch);
  const auto panels_at = [&](std::int64_t b_offset) {
    return call.input<float>(1) + b_offset / matrix * gemm::packed_floats(g.k, g.n);
  };
  if (shares_products(g, call.threads->count)) {
    const std::int64_t last = gemm::panel_count(g.n);
    parallel_slots(
        *call.threads, g.batch.elements, product_grain(g),
        [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
          for_each_product(call, g, begin, end, [&](const gemm::Result& y, const float* a, std::int64_t b_offset) {
            multiply_rows(g, a, {panels_at(b_offset), g.n, 0, last}, y, 0, g.m, gathered + slot * gathered_floats(g));
          });
        });
    return ok_status();
  }
  for_each_product(call, g, 0, g.batch.elements, [&](const gemm::Result& y, const float* a, std::int64_t b_offset) {
    multiply_matrix(call, g, a, panels_at(b_offset), y, gathered);
  });
  return ok_status();
}

bool dynamic_supports(const OpCall& call) { return is_float(call); }

Footprint dynamic_footprint(const OpCall& call, int threads) {
  constexpr std::int64_t kSmallShare = 16;  // of the result: a plan hardly grows by it
  const MatmulGeometry g = fold_batch(geometry(call));
  const std::int64_t least = (gemm::packed_floats(g.k, g.n) + gathered_floats(g) * threads) * kFloat;
  if (threads == 1 || g.batch.elements < threads) return {.scratch_bytes = least};
  // Of as many products as threads, or more, others may be shared evenly.
  const std::int64_t more = product_floats(g) * threads * kFloat - least;
  return {.scratch_bytes = least + std::min(more, call.out().bytes() / kSmallShare * threads),
          .useful_scratch_bytes = shares_products(g, threads) ? least + more : 0};
}

Status run_dynamic(const Invocation& call) {
  const MatmulGeometry g = fold_batch(matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out()));
  auto* panels = reinterpret_cast<float*>(call.scratch);
  const Threads& threads = *call.threads;
  if (shares_products(g, threads.count) && call.scratch_bytes >= product_floats(g) * threads.count * kFloat) {
    parallel_slots(threads, g.batch.elements, product_grain(g),
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                     multiply_products(call, g, begin, end, panels + slot * product_floats(g));
                   });
    return ok_status();
  }
  std::int64_t packed_offset = -1;
  for_each_product(call, g, 0, g.batch.elements, [&](const gemm::Result& y, const float* a, std::int64_t b_offset) {
    if (b_offset != packed_offset) {
      parallel_ranges(threads, gemm::panel_count(g.n), gemm::packing_grain(g.k),
                      [&](std::int64_t first, std::int64_t last) {
                        gemm::pack_panels_simd(call.input<float>(1) + b_offset, g.k, g.n, g.b.row_stride,
                                               g.b.column_stride, first, last, panels);
                      });
      packed_offset = b_offset;
    }
    multiply_matrix(call, g, a, panels, y, panels + gemm::packed_floats(g.k, g.n));
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul
