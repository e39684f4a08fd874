// conv2d_affine with few outputs (nn/conv2d/few_outputs.h).
#include "ops/nn/conv2d/few_outputs.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

template <typename Call>
conv2d::Problem problem_of(const Call& call) {
  return conv2d::make_problem(window_of(call.template as<Conv2dAffineParams>()), call.in(0), call.in(1), call.out());
}

}  // namespace

bool few_outputs_supports(const OpCall& call) {
  const bool has_zero_points = call.inputs.size() > 5 && call.in(5).present();
  const TensorDesc& w = call.in(1);
  return w.is_dense() && w.elements() > 0 && call.out().elements() > 0 && !has_zero_points &&
         call.as<Conv2dAffineParams>().form.weights_zero_point == sign_flip(w.type) &&
         conv2d::few_outputs::fits_bytes(problem_of(call));
}

Footprint few_outputs_footprint(const OpCall& /*call*/, int /*threads*/) {
  return {.lead_bytes = Footprint::kNoOverlap};
}

Status run_few_outputs(const Invocation& call) {
  const auto& form = call.as<Conv2dAffineParams>().form;
  const gemm::ByteForm x =
      gemm::byte_form(sign_flip(call.in(0).type), zero_points(call, 0, 4, form.input_zero_point)[0]);
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    conv2d::few_outputs::run(call, problem_of(call), x, sign_flip(call.in(1).type),
                             gemm::AffineResult<Y>{y, 0, make_affine_scaler(call, form), {}});
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
