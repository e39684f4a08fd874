#include "ops/nn/matmul_affine/matmul_affine.h"

#include "base/shape.h"
#include "ops/nn/matmul_affine/kernels.h"

namespace bantam::ops {
namespace {

constexpr MatmulAffineParams kDefaults{};

constexpr std::array<ParamField, 1> kOwnFields = {
    {bool_field("transpose_b", offsetof(MatmulAffineParams, transpose_b))}};
constexpr auto kFields = join_fields(kOwnFields, affine_form_fields(offsetof(MatmulAffineParams, form)));

Status infer_matmul_affine(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const MatmulAffineParams*>(params);
  const TensorDesc& a = *inputs[0].desc;
  const TensorDesc& b = *inputs[1].desc;
  if (!is_flag(p.transpose_b))
    return failure(StatusCode::kInvalidModel, "transpose_b must be 0 or 1", p.transpose_b, 1);
  if (a.rank < 2) return failure(StatusCode::kInvalidModel, "operand must be a matrix", a.rank, 2).at(0);
  if (b.rank < 2) return failure(StatusCode::kInvalidModel, "operand must be a matrix", b.rank, 2).at(1);
  const MatrixShape left = matrix_shape(a, false);
  const MatrixShape right = matrix_shape(b, p.transpose_b != 0);
  if (left.columns != right.rows)
    return failure(StatusCode::kInvalidModel, "inner dimensions of the matrices differ", right.rows, left.columns)
        .at(1);
  BANTAM_RETURN_IF_ERROR(infer_affine_form(inputs, p.form, right.columns, left.rows));
  TensorDesc y;
  if (!broadcast(batch_shape(a), batch_shape(b), a.type, &y))
    return failure(StatusCode::kInvalidModel, "leading dimensions of the matrices do not broadcast").at(1);
  std::int64_t dims[kMaxRank] = {};
  std::copy_n(y.dims, y.rank, dims);
  dims[y.rank] = left.rows;
  dims[y.rank + 1] = right.columns;
  return make_desc(p.form.to, dims, y.rank + 2, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  // The product of an element count and a dimension, both below 2^31.
  return call.out().elements() * call.in(0).last(0);
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_packed__simd",
     .supports = matmul_affine::packed_supports,
     .footprint = matmul_affine::packed_footprint,
     .packed_bytes = matmul_affine::packed_bytes,
     .pack = matmul_affine::pack,
     .run = matmul_affine::run_packed,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
    {.name = "i8_dynamic__simd",
     .supports = matmul_affine::dynamic_supports,
     .footprint = matmul_affine::dynamic_footprint,
     .run = matmul_affine::run_dynamic,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact for integer results
#endif
    {.name = "i8__ref", .run = matmul_affine::run_reference},
};

}  // namespace

constexpr OpDef kMatmulAffine{.name = "matmul_affine",
                              .params_bytes = sizeof(MatmulAffineParams),
                              .default_params = &kDefaults,
                              .fields = kFields,
                              .min_inputs = 2,
                              .max_inputs = 6,
                              .outputs = 1,
                              .infer = infer_matmul_affine,
                              .work = work,
                              .variants = kVariants};

}  // namespace bantam::ops
