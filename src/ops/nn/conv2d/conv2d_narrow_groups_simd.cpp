// conv2d in f32 with several narrow groups.
#include "ops/common/linear_form.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/narrow_groups.h"
#include "ops/nn/conv2d/problem.h"

namespace bantam::ops::conv2d {
namespace {

template <typename Call>
narrow_groups::Problem problem_of(const Call& call) {
  const Problem p = make_problem(call.template as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  return {p.g, p.group_inputs, p.group_outputs};
}

}  // namespace

bool narrow_groups_supports(const OpCall& call) {
  const std::int64_t groups = call.as<Conv2dParams>().groups;
  return gemm_supports(call) && groups > 1 && call.in(1).dims[0] <= groups * narrow_groups::kBlock;
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
                      static_cast<const float*>(call.inputs[1].data), reinterpret_cast<float*>(destination));
}

Status run_narrow_groups(const Invocation& call) {
  narrow_groups::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

}  // namespace bantam::ops::conv2d
