// matmul in f32 by a constant matrix in 16 bits or fewer. A row is multiplied by panels that are widened in registers,
// so that each weight is read once in its stored size; for several rows some panels at a time are widened into scratch.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
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

Status run_narrow(const Invocation& call, ElementType type) {
  const MatmulGeometry g = geometry({call.params, call.inputs, call.outputs});
  const auto* bias = optional_input<float>(call, 2);
  const std::int64_t matrix = static_cast<std::int64_t>(g.k) * g.n;
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  // Work of about ten microseconds, so that small products do not wake other threads.
  const std::int64_t grain = std::max<std::int64_t>(100'000 / (gemm::kPanel * g.k * g.m), 8);
  for_each_element(g.batch, [&](const auto& offsets) {
    const gemm::Result y{call.output<float>() + offsets[0], g.y.row_stride, bias, call.as<MatmulParams>().activation};
    const float* a = call.input<float>(0) + offsets[1];
    const std::byte* packed = call.input<std::byte>(1) + offsets[2] / matrix * matrix_bytes(g.b, type);
    parallel_slots(*call.threads, gemm::panel_count(g.n), grain,
                   [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
                     multiply_rows(g, a, {type, packed, g.k, g.n}, y, first, last,
                                   reinterpret_cast<float*>(call.scratch + slot * slot_bytes), slot_bytes / kFloat);
                   });
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul
