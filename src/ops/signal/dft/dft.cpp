#include "ops/signal/dft/dft.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/signal/dft/kernels.h"

namespace bantam::ops {
namespace {

Status check_params(const DftParams& p, const TensorDesc& x) {
  if (p.length < 1) return failure(StatusCode::kInvalidModel, "the transform's length is not positive", p.length, 1);
  if (p.step < 0) return failure(StatusCode::kInvalidModel, "step is negative", p.step, 0);
  if (!is_flag(p.inverse) || !is_flag(p.onesided))
    return failure(StatusCode::kInvalidModel, "inverse or onesided is neither 0 nor 1");
  if (x.type != ElementType::kF32 && x.type != ElementType::kF64)
    return failure(StatusCode::kUnsupported, "a transform needs f32 or f64", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(dft::kX);
  BANTAM_RETURN_IF_ERROR(check_rank(x, 3, dft::kX));
  const std::int32_t numbers = p.onesided == 0 ? x.dims[2] : p.inverse != 0 ? 2 : 1;
  if (x.dims[2] != numbers || numbers < 1 || numbers > 2)
    return failure(StatusCode::kInvalidModel, "the last dimension must be 1 for real, 2 for complex numbers", x.dims[2],
                   numbers)
        .at(dft::kX);
  return ok_status();
}

Status infer_dft(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const DftParams*>(params);
  const TensorDesc& x = desc_of(inputs, dft::kX);
  BANTAM_RETURN_IF_ERROR(check_params(p, x));
  const TensorDesc& twiddles = desc_of(inputs, dft::kTwiddles);
  BANTAM_RETURN_IF_ERROR(check_type(twiddles, x.type, dft::kTwiddles));
  BANTAM_RETURN_IF_ERROR(check_rank(twiddles, 2, dft::kTwiddles));
  if (twiddles.dims[0] != p.length || twiddles.dims[1] != 2)
    return failure(StatusCode::kInvalidModel, "the table of twiddles does not belong to the length", twiddles.dims[0],
                   p.length)
        .at(dft::kTwiddles);
  std::int64_t samples = p.length;
  if (is_given(inputs, dft::kWindow)) {
    const TensorDesc& window = desc_of(inputs, dft::kWindow);
    BANTAM_RETURN_IF_ERROR(check_type(window, x.type, dft::kWindow));
    BANTAM_RETURN_IF_ERROR(check_rank(window, 1, dft::kWindow));
    samples = window.dims[0];
    if (p.step == 0 || samples < 1 || samples > p.length)
      return failure(StatusCode::kInvalidModel, "the window does not fit the transform", samples, p.length)
          .at(dft::kWindow);
  }
  const std::int64_t frames = p.step == 0 ? 1 : x.dims[1] < samples ? 0 : 1 + (x.dims[1] - samples) / p.step;
  const bool real = p.onesided != 0 && p.inverse != 0;
  const std::int64_t bins = p.onesided != 0 && !real ? p.length / 2 + 1 : p.length;
  const std::int64_t dims[] = {x.dims[0], frames, bins, real ? 1 : 2};
  return make_desc(x.type, dims, 4, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  std::int64_t factors = 0;
  std::int32_t rest = call.as<DftParams>().length;
  for (std::int32_t p = 2; p <= rest / p; ++p)
    for (; rest % p == 0; rest /= p) factors += p;
  if (rest > 1) factors += rest;
  // An element count, at most twice as large before the spectrum is halved, times a length.
  return call.out().elements() * factors;
}

constexpr DftParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("length", offsetof(DftParams, length)),
    i32_field("step", offsetof(DftParams, step)),
    bool_field("inverse", offsetof(DftParams, inverse)),
    bool_field("onesided", offsetof(DftParams, onesided)),
};
constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = dft::reference_footprint, .run = dft::run_reference},
};

}  // namespace

constexpr OpDef kDft{.name = "dft",
                     .params_bytes = sizeof(DftParams),
                     .default_params = &kDefaults,
                     .fields = kFields,
                     .min_inputs = 2,
                     .max_inputs = 3,
                     .infer = infer_dft,
                     .work = work,
                     .variants = kVariants};

}  // namespace bantam::ops
