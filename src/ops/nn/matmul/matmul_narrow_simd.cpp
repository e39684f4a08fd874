// matmul in f32 by a constant matrix in 16 bits or fewer. A row is multiplied by panels that are widened in registers,
// so that each weight is read once in its stored size; for several rows some panels at a time are widened into scratch.
// The kernel that computes in 16 bits too rounds several rows instead (nn/gemm/gemm_f16.h), and is the one above for
// one row and on processors without such arithmetic.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_f16.h"
#include "ops/nn/gemm/narrow_panels.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

MatmulGeometry geometry(const OpCall& call) {
  return fold_batch(matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out()));
}

std::int64_t matrix_bytes(const MatrixShape& b, ElementType type) {
  return gemm::narrow_bytes(type, b.rows, b.columns);
}

MatrixShape matrix_of(const OpCall& call) { return matrix_shape(call.in(1), call.as<MatmulParams>().transpose_b != 0); }

/// Panels [first, last) for all rows of a.
void multiply_rows(const MatmulGeometry& g, const float* a, const gemm::NarrowPanels& b, const gemm::Result& y,
                   std::int64_t first, std::int64_t last, float* wide, std::int64_t floats) {
  if (g.m == 1) return multiply_row(a, b, first, last, y);
  gemm::for_each_widened(
      b, first, last, {wide, floats, g.k},
      [&](const gemm::RightPanels& right, std::int64_t column, std::int64_t first_k, std::int64_t count) {
        const gemm::LeftRows rows{.data = a + first_k, .rows = g.m, .row_stride = g.a.row_stride, .length = count};
        multiply(rows, right, gemm::part_of(y, column, first_k, first_k + count == g.k));
      });
}

}  // namespace

bool narrow_supports(const OpCall& call) { return call.as<MatmulParams>().transpose_a == 0 && packed_supports(call); }

Footprint narrow_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = geometry(call);
  if (g.m == 1) return {};
  const gemm::WideFloats floats = gemm::wide_floats(g.k, g.n, call.in(0).elements() + call.out().elements());
  return {.scratch_bytes = align_up(floats.least * kFloat, kAlignment) * threads,
          .useful_scratch_bytes = align_up(floats.useful * kFloat, kAlignment) * threads};
}

std::int64_t narrow_packed_bytes(const OpCall& call, int input, ElementType type) {
  if (input != 1) return 0;
  return batch_shape(call.in(1)).elements() * matrix_bytes(matrix_of(call), type);
}

void narrow_pack(const OpCall& call, int /*input*/, ElementType type, std::byte* destination) {
  const MatrixShape b = matrix_of(call);
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  const std::int64_t count = batch_shape(call.in(1)).elements();
  for (std::int64_t i = 0; i < count; ++i)
    gemm::pack_narrow(type, data + i * b.rows * b.columns, b.rows, b.columns, b.row_stride, b.column_stride,
                      destination + i * matrix_bytes(b, type));
}

void narrow_restore(const OpCall& call, int /*input*/, ElementType type, const std::byte* packed, float* elements) {
  const MatrixShape b = matrix_of(call);
  const std::int64_t count = batch_shape(call.in(1)).elements();
  for (std::int64_t i = 0; i < count; ++i)
    gemm::restore_narrow({type, packed + i * matrix_bytes(b, type), b.rows, b.columns}, b.row_stride, b.column_stride,
                         elements + i * b.rows * b.columns);
}

namespace {

/// Panels that are worth a thread: work of about ten microseconds, so that small products do not wake others.
std::int64_t panel_grain(const MatmulGeometry& g) {
  return std::max<std::int64_t>(100'000 / (gemm::kPanel * g.k * g.m), 8);
}

/// Calls f(a, b, y) for each product of the batch.
template <typename F>
void for_each_product(const Invocation& call, const MatmulGeometry& g, ElementType type, F f) {
  const std::int64_t matrix = static_cast<std::int64_t>(g.k) * g.n;
  const gemm::Result y{nullptr, g.y.row_stride, optional_input<float>(call, 2), call.as<MatmulParams>().activation};
  for_each_element(g.batch, [&](const auto& offsets) {
    const std::byte* packed = call.input<std::byte>(1) + offsets[2] / matrix * matrix_bytes(g.b, type);
    gemm::Result result = y;
    result.data = call.output<float>() + offsets[0];
    f(call.input<float>(0) + offsets[1], gemm::NarrowPanels{type, packed, g.k, g.n}, result);
  });
}

}  // namespace

Status run_narrow(const Invocation& call, ElementType type) {
  const MatmulGeometry g = geometry({call.params, call.inputs, call.outputs});
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  for_each_product(call, g, type, [&](const float* a, const gemm::NarrowPanels& b, const gemm::Result& y) {
    parallel_slots(*call.threads, gemm::panel_count(g.n), panel_grain(g),
                   [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
                     multiply_rows(g, a, b, y, first, last, reinterpret_cast<float*>(call.scratch + slot * slot_bytes),
                                   slot_bytes / kFloat);
                   });
  });
  return ok_status();
}

Footprint half_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = geometry(call);
  Footprint footprint = narrow_footprint(call, threads);
  if (g.m == 1) return footprint;
  gemm::HalfRoom::add_to(footprint, g.k, g.m, threads);
  return footprint;
}

Status run_half(const Invocation& call, ElementType type) {
  const MatmulGeometry g = geometry({call.params, call.inputs, call.outputs});
  if (g.m == 1 || !gemm::half_products()) return run_narrow(call, type);
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  const std::int64_t panels = gemm::panel_count(g.n);
  // Threads share rows, each of which is rounded once, unless there are too few of them.
  const bool by_rows = g.m >= 2 * gemm::kMaxTileRows * call.threads->count;
  for_each_product(call, g, type, [&](const float* a, const gemm::NarrowPanels& b, const gemm::Result& y) {
    const auto multiply = [&](std::int64_t slot, std::int64_t begin, std::int64_t end, std::int64_t first,
                              std::int64_t last) {
      const gemm::HalfRoom room(call.scratch + slot * slot_bytes, slot_bytes, g.k, end - begin);
      gemm::Result part = y;
      part.data += begin * y.row_stride;
      const auto row = [&](std::int64_t i, std::int64_t first_k, std::int64_t, float*) {
        return a + (begin + i) * g.a.row_stride + first_k;
      };
      multiply_half_rows(end - begin, row, b, first, last, part, room);
    };
    if (by_rows) {
      parallel_slots(
          *call.threads, g.m, gemm::kMaxTileRows,
          [&](std::int64_t slot, std::int64_t begin, std::int64_t end) { multiply(slot, begin, end, 0, panels); });
    } else {
      parallel_slots(
          *call.threads, panels, panel_grain(g),
          [&](std::int64_t slot, std::int64_t first, std::int64_t last) { multiply(slot, 0, g.m, first, last); });
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul
