#include "ops/nn/det/det.h"

#include <algorithm>
#include <cmath>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"

namespace bantam::ops {
namespace {

Status infer_det(const void* /*params*/, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  if (!is_one_of<float, double>(x.type))
    return failure(StatusCode::kUnsupported, "determinants are of f32 or f64", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (x.rank < 2) return failure(StatusCode::kInvalidModel, "a matrix needs two dimensions", x.rank, 2).at(0);
  if (x.last(0) != x.last(1))
    return failure(StatusCode::kInvalidModel, "matrix is not square", x.last(1), x.last(0)).at(0);
  std::int64_t dims[kMaxRank] = {};
  std::copy_n(x.dims, x.rank - 2, dims);
  return make_desc(x.type, dims, x.rank - 2, &outputs[0]);
}

Footprint footprint_det(const OpCall& call, int /*threads*/) {
  const std::int64_t size = call.in(0).last(0);
  return {.scratch_bytes = size * size * static_cast<std::int64_t>(sizeof(double))};
}

std::int64_t work(const OpCall& call) { return call.in(0).elements() * call.in(0).last(0) / 3; }

/// The determinant of a [size, size], which is destroyed.
double determinant(double* a, std::int64_t size) {
  double result = 1.0;
  for (std::int64_t k = 0; k < size; ++k) {
    double* row = a + k * size;
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < size; ++i)
      if (std::abs(a[i * size + k]) > std::abs(a[pivot * size + k])) pivot = i;
    if (pivot != k) {
      std::swap_ranges(row, row + size, a + pivot * size);
      result = -result;
    }
    result *= row[k];
    if (row[k] == 0.0) return result;
    for (std::int64_t i = k + 1; i < size; ++i) {
      const double factor = a[i * size + k] / row[k];
      for (std::int64_t j = k + 1; j < size; ++j) a[i * size + j] -= factor * row[j];
    }
  }
  return result;
}

Status run_det(const Invocation& call) {
  const TensorDesc& x = call.in(0);
  const std::int64_t size = x.last(0);
  const std::int64_t matrices = call.out().elements();
  auto* work_space = reinterpret_cast<double*>(call.scratch);
  dispatch_type<float, double>(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t m = 0; m < matrices; ++m) {
      const T* from = call.input<T>(0) + m * size * size;
      std::transform(from, from + size * size, work_space, [](T value) { return static_cast<double>(value); });
      call.output<T>()[m] = static_cast<T>(determinant(work_space, size));
    }
  });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = footprint_det, .run = run_det}};

}  // namespace

constexpr OpDef kDet{.name = "det", .infer = infer_det, .work = work, .variants = kVariants};

}  // namespace bantam::ops
