#include "ops/nn/lstm_q/lstm_q.h"

#include "ops/built.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/lstm_q/kernels.h"

namespace bantam::ops {
namespace {

using lstm_q::Extents;

Status check_dims(const TensorDesc& desc, ElementType type, std::initializer_list<std::int64_t> dims, int operand) {
  BANTAM_RETURN_IF_ERROR(check_type(desc, type, operand));
  BANTAM_RETURN_IF_ERROR(check_rank(desc, static_cast<int>(dims.size()), operand));
  int axis = 0;
  for (const std::int64_t dim : dims) {
    if (desc.dims[axis] != dim)
      return failure(StatusCode::kInvalidModel, "operand has the wrong shape", desc.dims[axis], dim).at(operand);
    ++axis;
  }
  return ok_status();
}

Status check_scale(std::int32_t multiplier, std::int32_t shift) {
  if (multiplier < 0) return failure(StatusCode::kInvalidModel, "a multiplier is negative", multiplier, 0);
  if (shift < -31 || shift > 30) return failure(StatusCode::kInvalidModel, "a shift is out of range", shift, 0);
  return ok_status();
}

Status check_params(const LstmQParams& p, ElementType type) {
  const std::int32_t reach = type == ElementType::kI8 ? 128 : 32768;
  for (const std::int32_t zero_point : {p.input_zero_point, p.hidden_zero_point})
    if (zero_point < -reach || zero_point >= reach)
      return failure(StatusCode::kInvalidModel, "a zero point is outside the operand's type", zero_point, reach);
  for (int g = 0; g < lstm_q::kGates; ++g) {
    BANTAM_RETURN_IF_ERROR(check_scale(p.input_multiplier[g], p.input_shift[g]));
    BANTAM_RETURN_IF_ERROR(check_scale(p.recurrent_multiplier[g], p.recurrent_shift[g]));
  }
  BANTAM_RETURN_IF_ERROR(check_scale(p.forget_multiplier, p.forget_shift));
  BANTAM_RETURN_IF_ERROR(check_scale(p.cell_multiplier, p.cell_shift));
  BANTAM_RETURN_IF_ERROR(check_scale(p.hidden_multiplier, p.hidden_shift));
  if (p.tanh_right_shift < 0 || p.tanh_right_shift > 31)
    return failure(StatusCode::kInvalidModel, "the shift of tanh is out of range", p.tanh_right_shift, 31);
  if (p.cell_clip < 0 || p.cell_clip > 32767)
    return failure(StatusCode::kInvalidModel, "cell_clip is no positive int16", p.cell_clip, 32767);
  return ok_status();
}

Status infer_lstm_q(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, lstm_q::kX);
  const ElementType type = x.type;
  if (type != ElementType::kI8 && type != ElementType::kI16)
    return failure(StatusCode::kUnsupported, "operand must be i8 or i16", static_cast<std::int64_t>(type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(lstm_q::kX);
  BANTAM_RETURN_IF_ERROR(check_rank(x, 3, lstm_q::kX));
  BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, lstm_q::kR), 2, lstm_q::kR));
  const Extents e = lstm_q::extents_of(x, desc_of(inputs, lstm_q::kR));
  const std::int64_t rows = lstm_q::kGates * e.hidden;
  const ElementType bias = type == ElementType::kI8 ? ElementType::kI32 : ElementType::kI64;
  BANTAM_RETURN_IF_ERROR(check_dims(desc_of(inputs, lstm_q::kW), ElementType::kI8, {rows, e.input}, lstm_q::kW));
  BANTAM_RETURN_IF_ERROR(check_dims(desc_of(inputs, lstm_q::kR), ElementType::kI8, {rows, e.hidden}, lstm_q::kR));
  BANTAM_RETURN_IF_ERROR(check_dims(desc_of(inputs, lstm_q::kB), bias, {rows}, lstm_q::kB));
  BANTAM_RETURN_IF_ERROR(check_dims(desc_of(inputs, lstm_q::kInitialH), type, {e.batch, e.hidden}, lstm_q::kInitialH));
  BANTAM_RETURN_IF_ERROR(
      check_dims(desc_of(inputs, lstm_q::kInitialC), ElementType::kI16, {e.batch, e.hidden}, lstm_q::kInitialC));
  BANTAM_RETURN_IF_ERROR(check_params(*static_cast<const LstmQParams*>(params), type));
  const std::int64_t y_dims[] = {e.steps, e.batch, e.hidden};
  BANTAM_RETURN_IF_ERROR(make_desc(type, y_dims, 3, &outputs[0]));
  BANTAM_RETURN_IF_ERROR(make_desc(type, y_dims + 1, 2, &outputs[1]));
  return make_desc(ElementType::kI16, y_dims + 1, 2, &outputs[2]);
}

std::int64_t work(const OpCall& call) {
  const Extents e = lstm_q::extents_of(call.in(lstm_q::kX), call.in(lstm_q::kR));
  return e.steps * e.batch * (call.in(lstm_q::kW).elements() + call.in(lstm_q::kR).elements());
}

constexpr LstmQParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("input_zero_point", offsetof(LstmQParams, input_zero_point)),
    i32_field("hidden_zero_point", offsetof(LstmQParams, hidden_zero_point)),
    i32_field("input_multiplier", offsetof(LstmQParams, input_multiplier), 4),
    i32_field("input_shift", offsetof(LstmQParams, input_shift), 4),
    i32_field("recurrent_multiplier", offsetof(LstmQParams, recurrent_multiplier), 4),
    i32_field("recurrent_shift", offsetof(LstmQParams, recurrent_shift), 4),
    i32_field("forget_multiplier", offsetof(LstmQParams, forget_multiplier)),
    i32_field("forget_shift", offsetof(LstmQParams, forget_shift)),
    i32_field("cell_multiplier", offsetof(LstmQParams, cell_multiplier)),
    i32_field("cell_shift", offsetof(LstmQParams, cell_shift)),
    i32_field("hidden_multiplier", offsetof(LstmQParams, hidden_multiplier)),
    i32_field("hidden_shift", offsetof(LstmQParams, hidden_shift)),
    i32_field("tanh_multiplier", offsetof(LstmQParams, tanh_multiplier)),
    i32_field("tanh_right_shift", offsetof(LstmQParams, tanh_right_shift)),
    i32_field("cell_clip", offsetof(LstmQParams, cell_clip)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8_packed__simd",
     .supports = lstm_q::packed_supports,
     .footprint = lstm_q::packed_footprint,
     .packed_bytes = lstm_q::packed_bytes,
     .pack = lstm_q::pack,
     .run = lstm_q::run_packed},
#endif
    {.name = "i8__portable",
     .supports = lstm_q::portable_supports,
     .footprint = lstm_q::footprint,
     .run = lstm_q::run_portable},
    {.name = "any__ref", .supports = all_dense, .footprint = lstm_q::footprint, .run = lstm_q::run_reference},
};

constexpr auto kBuilt = built_variants("lstm_q", kVariants);

}  // namespace

constexpr OpDef kLstmQ{.name = "lstm_q",
                       .params_bytes = sizeof(LstmQParams),
                       .default_params = &kDefaults,
                       .fields = kFields,
                       .min_inputs = 6,
                       .max_inputs = 6,
                       .outputs = 3,
                       .infer = infer_lstm_q,
                       .work = work,
                       .variants = kBuilt};

}  // namespace bantam::ops
