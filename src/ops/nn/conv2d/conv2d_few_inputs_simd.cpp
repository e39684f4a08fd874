// conv2d with few inputs, in f32.
#include "ops/nn/conv2d/few_inputs.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/problem.h"

namespace bantam::ops::conv2d {
namespace {

template <typename Call>
few_inputs::Problem problem_of(const Call& call) {
  return {make_problem(call.template as<Conv2dParams>(), call.in(0), call.in(1), call.out()).g};
}

}  // namespace

bool few_inputs_supports(const OpCall& call) { return gemm_supports(call) && few_inputs::fits(problem_of(call)); }

Footprint few_inputs_footprint(const OpCall& call, int threads) {
  return few_inputs::footprint(call, problem_of(call), threads);
}

std::int64_t few_inputs_packed_bytes(const OpCall& call) { return few_inputs::packed_bytes(problem_of(call)); }

void few_inputs_pack(const OpCall& call, const Threads& /*threads*/, std::byte* destination) {
  few_inputs::pack(problem_of(call), static_cast<const float*>(call.inputs[1].data),
                   reinterpret_cast<float*>(destination));
}

Status run_few_inputs(const Invocation& call) {
  few_inputs::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

}  // namespace bantam::ops::conv2d
