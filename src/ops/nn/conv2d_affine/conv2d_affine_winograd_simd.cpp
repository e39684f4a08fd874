// conv2d_affine for 3x3 kernels with stride 1 in transformed tiles (nn/conv2d/winograd_i8.h).
#include <cstdlib>

#include "ops/nn/conv2d/winograd_i8.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

/// Bytes of x as numbers.
gemm::ByteForm x_form(const TensorDesc& x, const AffineForm& form) {
  const std::uint8_t flip = sign_flip(x.type);
  return gemm::byte_form(flip, form.input_zero_point - flip);
}

ZeroPoints weights_zeros(const OpCall& call) {
  return zero_points(call, 1, 5, call.as<Conv2dAffineParams>().form.weights_zero_point);
}

/// Are zero points known, and such that no weight is further from them than it may be?
bool zeros_fit(const OpCall& call) {
  constexpr std::int32_t kMost = conv2d::winograd_i8::kMostWeight - 128;
  if (call.has(4) || (call.has(5) && call.inputs[5].data == nullptr)) return false;
  const ZeroPoints zeros = weights_zeros(call);
  for (std::int64_t o = 0; o < call.in(1).dims[0]; ++o)
    if (std::abs(zeros[o]) > kMost) return false;
  return true;
}

}  // namespace

bool winograd_supports(const OpCall& call) {
  return conv2d::winograd_i8::fits(call, window_of(call.as<Conv2dAffineParams>())) && zeros_fit(call);
}

Footprint winograd_footprint(const OpCall& call, int threads) {
  return conv2d::winograd_i8::footprint(call, window_of(call.as<Conv2dAffineParams>()), threads);
}

std::int64_t winograd_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? conv2d::winograd_i8::packed_bytes(call.in(1)) : 0;
}

void winograd_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  conv2d::winograd_i8::pack(call.in(1), static_cast<const std::int8_t*>(call.inputs[1].data), weights_zeros(call),
                            x_form(call.in(0), call.as<Conv2dAffineParams>().form), destination);
}

Status run_winograd(const Invocation& call) {
  const auto& p = call.as<Conv2dAffineParams>();
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    conv2d::winograd_i8::run(call, window_of(p), x_form(call.in(0), p.form),
                             gemm::AffineResult<Y>{y, 0, make_affine_scaler(call, p.form), {}});
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
