// The plain definition of depthwise_conv2d: one product per tap and channel.
#include "ops/nn/conv2d/reference.h"
#include "ops/nn/depthwise_conv2d/kernels.h"

namespace bantam::ops::depthwise {
namespace {

/// Weights [KH,KW,C*M].
class ChannelTaps {
 public:
  static constexpr int kHeightDim = 0;

  ChannelTaps(const ConvGeometry& g, const TensorDesc& w) : w_(w), multiplier_(g.x.c > 0 ? g.y.c / g.x.c : 1) {}

  template <typename Sum, typename X, typename W, typename Add>
  Sum add_tap(Sum sum, const X* pixel, const W* w, std::int32_t ky, std::int32_t kx, std::int32_t oc, Add add) const {
    const W* tap = w + static_cast<std::int64_t>(ky) * w_.strides[0] + static_cast<std::int64_t>(kx) * w_.strides[1];
    return add(sum, pixel[oc / multiplier_], tap[oc]);
  }

 private:
  const TensorDesc& w_;
  std::int32_t multiplier_;
};

}  // namespace

Footprint reference_footprint(const OpCall& call, int threads) {
  return conv2d::convolution_reference_footprint<ChannelTaps>(call, threads);
}

Status run_reference(const Invocation& call) { return conv2d::run_convolution_reference<ChannelTaps>(call); }

}  // namespace bantam::ops::depthwise
