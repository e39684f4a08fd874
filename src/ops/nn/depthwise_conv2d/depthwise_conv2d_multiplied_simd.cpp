// depthwise_conv2d with several results per channel, in f32 and int8: groups of one input.
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

template <typename Call>
narrow_groups::Problem byte_problem_of(const Call& call) {
  narrow_groups::Problem p = problem_of(call);
  p.unit = narrow_groups::kQuad;
  return p;
}

narrow_groups::WeightStrides weight_strides(const OpCall& call) {
  return {.output = 1, .tap = call.in(1).dims[2], .input = 0};
}

bool is_multiplied(const OpCall& call, LinearForm form) {
  return linear_form(call.in(0), call.in(1)) == form && call.in(1).is_dense() && call.out().elements() > 0 &&
         call.in(0).dims[3] < call.out().dims[3];
}

}  // namespace

bool multiplied_supports(const OpCall& call) { return is_multiplied(call, LinearForm::kFloat); }

Footprint multiplied_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, problem_of(call), threads);
}

std::int64_t multiplied_packed_bytes(const OpCall& call) { return narrow_groups::packed_bytes(problem_of(call)); }

void multiplied_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  narrow_groups::pack(problem_of(call), weight_strides(call), static_cast<const float*>(call.inputs[1].data), threads,
                      reinterpret_cast<float*>(destination));
}

Status run_multiplied(const Invocation& call) {
  narrow_groups::run(call, problem_of(call), call.as<Conv2dParams>().activation);
  return ok_status();
}

bool int8_multiplied_supports(const OpCall& call) {
  return packed_weights::are_constant(call) && is_multiplied(call, LinearForm::kInt8);
}

Footprint int8_multiplied_footprint(const OpCall& call, int threads) {
  return narrow_groups::footprint(call, byte_problem_of(call), threads);
}

std::int64_t int8_multiplied_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? narrow_groups::packed_bytes(byte_problem_of(call)) : 0;
}

void int8_multiplied_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  narrow_groups::pack(byte_problem_of(call), weight_strides(call), static_cast<const std::int8_t*>(call.inputs[1].data),
                      0, reinterpret_cast<std::int8_t*>(destination));
}

Status run_int8_multiplied(const Invocation& call) {
  const auto& p = call.as<Conv2dParams>();
  narrow_groups::run(call, byte_problem_of(call), gemm::byte_form(0, p.input_zero_point),
                     gemm::Int8Result{call.output<std::int8_t>(), 0, make_requantizer(call, int8_range(p))});
  return ok_status();
}

}  // namespace bantam::ops::depthwise
