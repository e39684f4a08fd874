// depthwise_conv2d in f32 with several results per channel: groups of one input.
#include "ops/common/linear_form.h"
#include "ops/nn/conv2d/narrow_groups.h"
#include "ops/nn/depthwise_conv2d/kernels.h"

namespace bantam::ops::depthwise {
namespace {

template <typename Call>
narrow_groups::Problem problem_of(const Call& call) {
  const TensorDesc& w = call.in(1);
  const ConvGeometry g = conv_geometry(call.template as<Conv2dParams>(), call.in(0), call.out(), w.dims[0], w.dims[1]);
  return {g, 1, w.dims[2] / call.in(0).dims[3]};
}

}  // namespace

bool multiplied_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kFloat && call.inputs[1].data != nullptr &&
         call.in(1).is_dense() && call.out().elements() > 0 && call.in(0).dims[3] < call.out().dims[3];
}

Footprint multiplied_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, problem_of(call), threads);
}

std::int64_t multiplied_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? narrow_groups::packed_bytes(problem_of(call)) : 0;
}

void multiplied_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const std::int64_t outputs = call.in(1).dims[2];
  narrow_groups::pack(problem_of(call), {.output = 1, .tap = outputs, .input = 0},
                      static_cast<const float*>(call.inputs[1].data), reinterpret_cast<float*>(destination));
}

Status run_multiplied(const Invocation& call) {
  narrow_groups::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

}  // namespace bantam::ops::depthwise
