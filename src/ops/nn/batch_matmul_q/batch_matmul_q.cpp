#include "ops/nn/batch_matmul_q/batch_matmul_q.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/fixed_point.h"
#include "ops/nn/batch_matmul_q/kernels.h"

namespace bantam::ops {
namespace {

using batch_matmul_q::leading;
using batch_matmul_q::Matrices;
using batch_matmul_q::matrix_dim;
using P = BatchMatmulQParams;

constexpr ParamField kFields[] = {
    bool_field("transpose_a", offsetof(P, transpose_a)),
    bool_field("transpose_b", offsetof(P, transpose_b)),
    i32_field("a_zero_point", offsetof(P, a_zero_point)),
    i32_field("b_zero_point", offsetof(P, b_zero_point)),
    i32_field("output_zero_point", offsetof(P, output_zero_point)),
    i32_field("multiplier", offsetof(P, multiplier)),
    i32_field("shift", offsetof(P, shift)),
};

constexpr P kDefaults{};

Status check_params(const P& p, ElementType type) {
  const bool wide = type == ElementType::kI16;
  const std::int32_t low = wide ? 0 : -128;
  const std::int32_t high = wide ? 0 : 127;
  const std::int32_t highest_shift = wide ? 14 : 30;
  for (const std::int32_t zero_point : {p.a_zero_point, p.b_zero_point, p.output_zero_point})
    if (zero_point < low || zero_point > high)
      return failure(StatusCode::kInvalidModel, "batch_matmul_q: a zero point is out of range", zero_point, high);
  if (p.multiplier < 0)
    return failure(StatusCode::kInvalidModel, "batch_matmul_q: the multiplier is negative", p.multiplier, 0);
  if (p.shift < -31 || p.shift > highest_shift)
    return failure(StatusCode::kInvalidModel, "batch_matmul_q: shift is out of range", p.shift, highest_shift);
  if (!is_flag(p.transpose_a) || !is_flag(p.transpose_b))
    return failure(StatusCode::kInvalidModel, "batch_matmul_q: a flag is not 0 or 1");
  return ok_status();
}

Status infer_batch_matmul(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const P*>(params);
  const TensorDesc& a = desc_of(inputs, 0);
  const TensorDesc& b = desc_of(inputs, 1);
  if (!is_one_of<std::int8_t, std::int16_t>(a.type))
    return failure(StatusCode::kUnsupported, "batch_matmul_q: operand is not i8 or i16",
                   static_cast<std::int64_t>(a.type), static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  BANTAM_RETURN_IF_ERROR(check_type(b, a.type, 1));
  BANTAM_RETURN_IF_ERROR(check_params(p, a.type));
  for (int i = 0; i < 2; ++i)
    if (desc_of(inputs, i).rank < 2)
      return failure(StatusCode::kInvalidModel, "batch_matmul_q: operand is no matrix", desc_of(inputs, i).rank, 2)
          .at(i);
  if (matrix_dim(a, p.transpose_a, 0) != matrix_dim(b, p.transpose_b, 1))
    return failure(StatusCode::kInvalidModel, "batch_matmul_q: the inner dimensions differ",
                   matrix_dim(b, p.transpose_b, 1), matrix_dim(a, p.transpose_a, 0))
        .at(1);
  TensorDesc lead;
  if (!broadcast(leading(a), leading(b), a.type, &lead))
    return failure(StatusCode::kInvalidModel, "batch_matmul_q: the leading dimensions do not broadcast together");
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < lead.rank; ++i) dims[i] = lead.dims[i];
  dims[lead.rank] = matrix_dim(a, p.transpose_a, 1);
  dims[lead.rank + 1] = matrix_dim(b, p.transpose_b, 0);
  return make_desc(a.type, dims, lead.rank + 2, &outputs[0]);
}

template <typename T>
T scaled(const P& p, std::int64_t sum) {
  std::int64_t y = 0;
  if constexpr (std::is_same_v<T, std::int16_t>) {
    y = multiply_wide_by_quantized_multiplier(sum, p.multiplier, p.shift);
  } else {
    y = std::int64_t{multiply_by_quantized_multiplier(static_cast<std::int32_t>(sum), p.multiplier, p.shift)} +
        p.output_zero_point;
  }
  return static_cast<T>(std::clamp<std::int64_t>(y, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

/// One pair of matrices.
template <typename T>
void multiply(const P& p, const Matrices& m, const T* a, const T* b, T* y) {
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < m.columns; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < m.depth; ++k)
        sum += std::int64_t{a[i * m.a_row + k * m.a_step] - p.a_zero_point} *
               (b[j * m.b_column + k * m.b_step] - p.b_zero_point);
      y[i * m.columns + j] = scaled<T>(p, sum);
    }
  }
}

Status run_reference(const Invocation& call) {
  if (call.out().elements() == 0) return ok_status();
  const OpCall described{call.params, call.inputs, call.outputs};
  const Matrices matrices(described);
  dispatch_type<std::int8_t, std::int16_t>(call.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batch_matmul_q::for_each_pair(described, [&](const auto& offsets) {
      multiply<T>(call.as<P>(), matrices, call.input<T>(0) + offsets[1], call.input<T>(1) + offsets[2],
                  call.output<T>() + offsets[0]);
    });
  });
  return ok_status();
}

std::int64_t work_of(const OpCall& call) {
  return call.out().elements() * matrix_dim(call.in(0), call.as<P>().transpose_a, 0);
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_packed__simd",
     .supports = batch_matmul_q::packed_supports,
     .footprint = batch_matmul_q::packed_footprint,
     .run = batch_matmul_q::run_packed},
#endif
    {.name = "any__ref", .supports = all_dense, .run = run_reference},
};

}  // namespace

constexpr OpDef kBatchMatmulQ{
    .name = "batch_matmul_q",
    .params_bytes = sizeof(P),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_batch_matmul,
    .work = work_of,
    .variants = kVariants,
};

}  // namespace bantam::ops
