// conv2d with few outputs, in f32 and int8.
#include "ops/common/linear_form.h"
#include "ops/nn/conv2d/few_outputs.h"
#include "ops/nn/conv2d/kernels.h"

namespace bantam::ops::conv2d {
namespace {

template <typename Call>
Problem problem_of(const Call& call) {
  return make_problem(call.template as<Conv2dParams>(), call.in(0), call.in(1), call.out());
}

/// Operands of that form, none without elements.
bool has_operands(const OpCall& call, LinearForm form) {
  return linear_form(call.in(0), call.in(1)) == form && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0;
}

}  // namespace

bool few_outputs_supports(const OpCall& call) {
  return has_operands(call, LinearForm::kFloat) && few_outputs::fits_floats(problem_of(call));
}

Footprint few_outputs_footprint(const OpCall& /*call*/, int /*threads*/) {
  return {.lead_bytes = Footprint::kNoOverlap};
}

Status run_few_outputs(const Invocation& call) {
  few_outputs::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

bool int8_few_outputs_supports(const OpCall& call) {
  return has_operands(call, LinearForm::kInt8) && few_outputs::fits_bytes(problem_of(call));
}

Status run_int8_few_outputs(const Invocation& call) {
  const auto& p = call.as<Conv2dParams>();
  few_outputs::run(call, problem_of(call), gemm::byte_form(0, p.input_zero_point), 0,
                   gemm::Int8Result{call.output<std::int8_t>(), 0, make_requantizer(call, int8_range(p))});
  return ok_status();
}

}  // namespace bantam::ops::conv2d
