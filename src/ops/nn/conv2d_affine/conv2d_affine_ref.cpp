// The plain definition of conv2d_affine: one output at a time, over the taps inside the image.
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

class Convolution {
 public:
  Convolution(const Invocation& call, const Conv2dAffineParams& p)
      : w_desc_(call.in(1)),
        g_(conv_geometry(window_of(p), call.in(0), call.out(), w_desc_.dims[1], w_desc_.dims[2])),
        x_(call.input<std::uint8_t>(0)),
        w_(call.input<std::uint8_t>(1)),
        x_flip_(sign_flip(call.in(0).type)),
        w_flip_(sign_flip(w_desc_.type)),
        x_zero_(zero_points(call, 0, 4, p.form.input_zero_point)[0]),
        w_zeros_(zero_points(call, 1, 5, p.form.weights_zero_point)),
        group_outputs_(g_.y.c / g_.groups) {}

  template <typename Y>
  void run(const AffineScaler& scaler, Y* y) const {
    for (std::int32_t item = 0; item < g_.y.n; ++item)
      for (std::int32_t oy = 0; oy < g_.y.h; ++oy)
        for (std::int32_t ox = 0; ox < g_.y.w; ++ox)
          for (std::int32_t oc = 0; oc < g_.y.c; ++oc)
            scaler.store(output(item, oy, ox, oc), oc, y + g_.y.offset(item, oy, ox) + oc);
  }

 private:
  std::uint32_t output(std::int32_t item, std::int32_t oy, std::int32_t ox, std::int32_t oc) const {
    const std::int64_t y0 = window_origin(g_.vertical, oy);
    const std::int64_t x0 = window_origin(g_.horizontal, ox);
    const TapRange rows = taps_inside(g_.vertical, y0, 0, g_.x.h);
    const TapRange columns = taps_inside(g_.horizontal, x0, 0, g_.x.w);
    AffineSum sum;
    for (std::int32_t ky = rows.first; ky < rows.last; ++ky)
      for (std::int32_t kx = columns.first; kx < columns.last; ++kx) {
        const std::uint8_t* pixel = x_ + g_.x.offset(item, y0 + std::int64_t{ky} * g_.vertical.dilation,
                                                     x0 + std::int64_t{kx} * g_.horizontal.dilation);
        sum = add_tap(sum, pixel, ky, kx, oc);
      }
    return sum.centred(w_zeros_[oc]);
  }

  AffineSum add_tap(AffineSum sum, const std::uint8_t* pixel, std::int32_t ky, std::int32_t kx, std::int32_t oc) const {
    const std::int32_t group_inputs = w_desc_.dims[3];
    pixel += std::int64_t{oc / group_outputs_} * group_inputs;
    const std::uint8_t* tap = w_ + std::int64_t{oc} * w_desc_.strides[0] + std::int64_t{ky} * w_desc_.strides[1] +
                              std::int64_t{kx} * w_desc_.strides[2];
    for (std::int32_t c = 0; c < group_inputs; ++c)
      sum = sum.add(static_cast<std::int8_t>(pixel[c] ^ x_flip_) - x_zero_, static_cast<std::int8_t>(tap[c] ^ w_flip_));
    return sum;
  }

  const TensorDesc& w_desc_;
  ConvGeometry g_;
  const std::uint8_t* x_;
  const std::uint8_t* w_;
  std::uint8_t x_flip_;
  std::uint8_t w_flip_;
  std::int32_t x_zero_;
  ZeroPoints w_zeros_;
  std::int32_t group_outputs_;
};

}  // namespace

Footprint reference_footprint(const OpCall& call, int threads) {
  const ConvGeometry g = geometry_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  return {.lead_bytes = lead_bytes(call, g, 1, threads)};
}

Status run_reference(const Invocation& call) {
  const auto& p = call.as<Conv2dAffineParams>();
  const Convolution convolution(call, p);
  const AffineScaler scaler = make_affine_scaler(call, p.form);
  with_affine_result(call, [&](auto* y) { convolution.run(scaler, y); });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
