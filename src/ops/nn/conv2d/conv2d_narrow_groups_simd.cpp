// conv2d with several narrow groups, in f32 and int8.
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

template <typename Call>
narrow_groups::Problem byte_problem_of(const Call& call) {
  narrow_groups::Problem p = problem_of(call);
  p.unit = narrow_groups::kQuad;
  return p;
}

narrow_groups::WeightStrides weight_strides(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  const std::int64_t inputs = w.dims[3];
  return {.output = inputs * w.dims[1] * w.dims[2], .tap = inputs, .input = 1};
}

}  // namespace

bool narrow_groups_supports(const OpCall& call) { return gemm_supports(call) && narrow_groups::fits(problem_of(call)); }

Footprint narrow_groups_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, problem_of(call), threads);
}

std::int64_t narrow_groups_packed_bytes(const OpCall& call) { return narrow_groups::packed_bytes(problem_of(call)); }

void narrow_groups_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  narrow_groups::pack(problem_of(call), weight_strides(call), static_cast<const float*>(call.inputs[1].data), threads,
                      reinterpret_cast<float*>(destination));
}

Status run_narrow_groups(const Invocation& call) {
  narrow_groups::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

bool int8_narrow_groups_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && call.inputs[1].data != nullptr &&
         call.in(1).is_dense() && call.in(1).elements() > 0 && call.out().elements() > 0 &&
         narrow_groups::fits(byte_problem_of(call));
}

Footprint int8_narrow_groups_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, byte_problem_of(call), threads);
}

std::int64_t int8_narrow_groups_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? narrow_groups::packed_bytes(byte_problem_of(call)) : 0;
}

void int8_narrow_groups_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  narrow_groups::pack(byte_problem_of(call), weight_strides(call), static_cast<const std::int8_t*>(call.inputs[1].data),
                      0, reinterpret_cast<std::int8_t*>(destination));
}

Status run_int8_narrow_groups(const Invocation& call) {
  const auto& p = call.as<Conv2dParams>();
  narrow_groups::run(call, byte_problem_of(call), gemm::byte_form(0, p.input_zero_point),
                     gemm::Int8Result{call.output<std::int8_t>(), 0, make_requantizer(call, int8_range(p))});
  return ok_status();
}

}  // namespace bantam::ops::conv2d
