// conv2d_affine with several narrow groups (nn/conv2d/narrow_groups.h).
#include "ops/nn/conv2d/narrow_groups.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

template <typename Call>
narrow_groups::Problem problem_of(const Call& call) {
  const conv2d::Problem p =
      conv2d::make_problem(window_of(call.template as<Conv2dAffineParams>()), call.in(0), call.in(1), call.out());
  return {p.g, p.group_inputs, p.group_outputs, narrow_groups::kQuad};
}

}  // namespace

bool narrow_groups_supports(const OpCall& call) {
  const bool has_zero_points = call.inputs.size() > 5 && call.in(5).present();
  return gemm_supports(call) && !has_zero_points &&
         call.as<Conv2dAffineParams>().form.weights_zero_point == sign_flip(call.in(1).type) &&
         narrow_groups::fits(problem_of(call));
}

Footprint narrow_groups_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, problem_of(call), threads);
}

std::int64_t narrow_groups_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? narrow_groups::packed_bytes(problem_of(call)) : 0;
}

void narrow_groups_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const std::int64_t inputs = w.dims[3];
  narrow_groups::pack(problem_of(call), {.output = inputs * w.dims[1] * w.dims[2], .tap = inputs, .input = 1},
                      static_cast<const std::int8_t*>(call.inputs[1].data), sign_flip(w.type),
                      reinterpret_cast<std::int8_t*>(destination));
}

Status run_narrow_groups(const Invocation& call) {
  const auto& form = call.as<Conv2dAffineParams>().form;
  const gemm::ByteForm x =
      gemm::byte_form(sign_flip(call.in(0).type), zero_points(call, 0, 4, form.input_zero_point)[0]);
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    narrow_groups::run(call, problem_of(call), x, gemm::AffineResult<Y>{y, 0, make_affine_scaler(call, form), {}});
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
