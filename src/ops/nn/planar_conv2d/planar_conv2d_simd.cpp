// planar_conv2d from a ring of its planes' rows.
#include "ops/common/linear_form.h"
#include "ops/nn/conv2d/few_inputs.h"
#include "ops/nn/planar_conv2d/geometry.h"
#include "ops/nn/planar_conv2d/kernels.h"

namespace bantam::ops::planar_conv2d {
namespace {

template <typename Call>
few_inputs::Problem problem_of(const Call& call) {
  return {geometry(call.template as<Conv2dParams>(), call.in(0), call.in(1), call.out()), call.in(0).strides[1]};
}

}  // namespace

bool few_inputs_supports(const OpCall& call) {
  return call.inputs[1].data != nullptr && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0 && few_inputs::fits(problem_of(call));
}

Footprint few_inputs_footprint(const OpCall& call, int threads) {
  Footprint result = few_inputs::footprint(call, problem_of(call), threads);
  // A plane is read to its end after the first results were written.
  result.lead_bytes = Footprint::kNoOverlap;
  return result;
}

std::int64_t few_inputs_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? few_inputs::packed_bytes(problem_of(call)) : 0;
}

void few_inputs_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  few_inputs::pack(problem_of(call), static_cast<const float*>(call.inputs[1].data),
                   reinterpret_cast<float*>(destination));
}

Status run_few_inputs(const Invocation& call) {
  few_inputs::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

}  // namespace bantam::ops::planar_conv2d
