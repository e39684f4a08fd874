#include "ops/nn/matmul/matmul.h"

#include "base/shape.h"
#include "ops/built.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"
#include "ops/stored_variant.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    bool_field("transpose_a", offsetof(MatmulParams, transpose_a)),
    bool_field("transpose_b", offsetof(MatmulParams, transpose_b)),
    enum_field("activation", offsetof(MatmulParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(MatmulParams, activation.a)),
    f32_field("activation_b", offsetof(MatmulParams, activation.b)),
    i32_field("input_zero_point", offsetof(MatmulParams, input_zero_point)),
    i32_field("weights_zero_point", offsetof(MatmulParams, weights_zero_point)),
    i32_field("output_zero_point", offsetof(MatmulParams, output_zero_point)),
    i32_field("minimum", offsetof(MatmulParams, minimum)),
    i32_field("maximum", offsetof(MatmulParams, maximum)),
    bool_field("asymmetric", offsetof(MatmulParams, asymmetric)),
};

constexpr MatmulParams kDefaults{};

Status check_quantized_layout(const MatmulParams& p, const TensorDesc& b) {
  if (p.transpose_a != 0) return failure(StatusCode::kUnsupported, "quantised forms do not transpose operand a");
  if (p.transpose_b != 1) return failure(StatusCode::kUnsupported, "quantised forms need weights [N,K], transposed");
  if (b.rank != 2) return failure(StatusCode::kUnsupported, "weights must be [N,K]", b.rank, 2).at(1);
  return ok_status();
}

Status check_plain_form(std::span<const Tensor> inputs, std::int32_t columns, const Activation& activation) {
  const ElementType type = inputs[0].desc->type;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const TensorDesc& d = *inputs[i].desc;
    if (!d.present()) continue;
    if (i > 2) return failure(StatusCode::kInvalidModel, "the plain form has no such operand").at(static_cast<int>(i));
    BANTAM_RETURN_IF_ERROR(check_type(d, type, static_cast<int>(i)));
    if (i == 2 && (d.rank != 1 || d.dims[0] != columns))
      return failure(StatusCode::kInvalidModel, "bias does not have one value per column", d.elements(), columns).at(2);
  }
  if (activation.function != UnaryFunction::kIdentity)
    return failure(StatusCode::kUnsupported, "the plain form has no activation");
  return ok_status();
}

Status check_form(const MatmulParams& p, std::span<const Tensor> inputs, std::int32_t columns) {
  if (is_plain_product(inputs[0].desc->type)) return check_plain_form(inputs, columns, p.activation);
  LinearForm form{};
  BANTAM_RETURN_IF_ERROR(infer_linear_form(inputs, columns, p.activation, int8_range(p), &form));
  return form == LinearForm::kFloat ? ok_status() : check_quantized_layout(p, *inputs[1].desc);
}

Status infer_matmul(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const MatmulParams*>(params);
  const TensorDesc& a = *inputs[0].desc;
  const TensorDesc& b = *inputs[1].desc;
  if (!is_flag(p.transpose_a) || !is_flag(p.transpose_b))
    return failure(StatusCode::kInvalidModel, "transpose flags must be 0 or 1");
  if (!is_flag(p.asymmetric))
    return failure(StatusCode::kInvalidModel, "asymmetric is neither 0 nor 1", p.asymmetric, 1);
  if (a.rank < 2) return failure(StatusCode::kInvalidModel, "operand must be a matrix", a.rank, 2).at(0);
  if (b.rank < 2) return failure(StatusCode::kInvalidModel, "operand must be a matrix", b.rank, 2).at(1);
  const MatrixShape left = matrix_shape(a, p.transpose_a != 0);
  const MatrixShape right = matrix_shape(b, p.transpose_b != 0);
  if (left.columns != right.rows)
    return failure(StatusCode::kInvalidModel, "inner dimensions of the matrices differ", right.rows, left.columns)
        .at(1);
  BANTAM_RETURN_IF_ERROR(check_form(p, inputs, right.columns));
  TensorDesc y;
  if (!broadcast(batch_shape(a), batch_shape(b), a.type, &y))
    return failure(StatusCode::kInvalidModel, "leading dimensions of the matrices do not broadcast").at(1);
  std::int64_t dims[kMaxRank] = {};
  std::copy_n(y.dims, y.rank, dims);
  dims[y.rank] = left.rows;
  dims[y.rank + 1] = right.columns;
  return make_desc(a.type, dims, y.rank + 2, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  // The product of an element count and a dimension, both below 2^31.
  return call.out().elements() * matrix_shape(call.in(0), call.as<MatmulParams>().transpose_a != 0).columns;
}

#if BANTAM_SIMD
/// The packed kernel on weights that are narrowed to a type.
constexpr StoringKernel kNarrow = {.supports = matmul::narrow_supports,
                                   .footprint = matmul::narrow_footprint,
                                   .packed_bytes = matmul::narrow_packed_bytes,
                                   .pack = matmul::narrow_pack,
                                   .run = matmul::run_narrow,
                                   .accuracy = {Accuracy::Kind::kRelative, 1e-5F}};

/// The same in 16-bit arithmetic.
constexpr StoringKernel kHalf = {.supports = matmul::narrow_supports,
                                 .footprint = matmul::half_footprint,
                                 .packed_bytes = matmul::narrow_packed_bytes,
                                 .pack = matmul::narrow_pack,
                                 .run = matmul::run_half,
                                 .accuracy = {Accuracy::Kind::kRelative, 5e-2F}};
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_column__simd",
     .supports = matmul::column_supports,
     .run = matmul::run_column,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    {.name = "f32_packed__simd",
     .supports = matmul::packed_supports,
     .footprint = matmul::packed_footprint,
     .packed_bytes = matmul::packed_bytes,
     .pack = matmul::pack,
     .run = matmul::run_packed,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    {.name = "f32_rows__simd",
     .supports = matmul::rows_supports,
     .run = matmul::run_rows,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    {.name = "f32_dynamic__simd",
     .supports = matmul::dynamic_supports,
     .footprint = matmul::dynamic_footprint,
     .run = matmul::run_dynamic,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    stored_variant<kHalf, ElementType::kF16>("f16_packed__simd"),
    stored_variant<kNarrow, ElementType::kF16>("f32_packed_f16__simd"),
    stored_variant<kNarrow, ElementType::kBF16>("f32_packed_bf16__simd"),
    stored_variant<kNarrow, ElementType::kI8>("f32_packed_i8__simd"),
    stored_variant<kNarrow, ElementType::kI4>("f32_packed_i4__simd"),
    {.name = "i8_packed__simd",
     .supports = matmul::int8_supports,
     .footprint = matmul::int8_footprint,
     .packed_bytes = matmul::int8_packed_bytes,
     .pack = matmul::int8_pack,
     .run = matmul::run_int8,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},  // exact in the int8 form
#endif
    {.name = "i8__portable", .supports = matmul::portable_supports, .run = matmul::run_portable},
    {.name = "any__ref", .footprint = matmul::reference_footprint, .run = matmul::run_reference},
};

constexpr auto kBuilt = built_variants("matmul", kVariants);

}  // namespace

constexpr OpDef kMatmul{.name = "matmul",
                        .params_bytes = sizeof(MatmulParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .min_inputs = 2,
                        .max_inputs = 5,
                        .outputs = 1,
                        .infer = infer_matmul,
                        .work = work,
                        .variants = kBuilt};

}  // namespace bantam::ops
