// The plain definition of conv_transpose2d_affine: one output at a time, over the taps that meet it.
#include "ops/nn/conv_transpose2d/reference.h"
#include "ops/nn/conv_transpose2d_affine/kernels.h"

namespace bantam::ops::conv_transpose2d_affine {

Status run_reference(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dAffineParams>();
  const conv_transpose2d::Geometry g = conv_transpose2d::geometry_of(p, call.in(0), call.in(1), call.out());
  const auto* x = call.input<std::uint8_t>(0);
  const auto* w = call.input<std::uint8_t>(1);
  const std::uint8_t x_flip = sign_flip(call.in(0).type);
  const std::uint8_t w_flip = sign_flip(call.in(1).type);
  const std::int32_t x_zero = zero_points(call, 0, 4, p.form.input_zero_point)[0];
  const ZeroPoints w_zeros = zero_points(call, 1, 5, p.form.weights_zero_point);
  const AffineScaler scaler = make_affine_scaler(call, p.form);
  with_affine_result(call, [&](auto* y) {
    conv_transpose2d::for_each_output(g, [&](std::int64_t n, std::int64_t oh, std::int64_t ow, std::int64_t oc) {
      AffineSum sum;
      conv_transpose2d::for_each_product(g, n, oh, ow, oc, [&](std::int64_t xi, std::int64_t wi) {
        sum = sum.add(static_cast<std::int8_t>(x[xi] ^ x_flip) - x_zero, static_cast<std::int8_t>(w[wi] ^ w_flip));
      });
      scaler.store(sum.centred(w_zeros[oc]), oc, y++);
    });
  });
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d_affine
