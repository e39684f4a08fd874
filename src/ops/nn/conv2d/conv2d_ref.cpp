// The plain definition of conv2d: a dot product over a group's input channels per tap.
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/reference.h"

namespace bantam::ops::conv2d {
namespace {

/// Weights [OC,KH,KW,C/groups].
class GroupedTaps {
 public:
  static constexpr int kHeightDim = 1;

  GroupedTaps(const ConvGeometry& g, const TensorDesc& w) : w_(w), group_outputs_(g.y.c / g.groups) {}

  template <typename Sum, typename X, typename W, typename Add>
  Sum add_tap(Sum sum, const X* pixel, const W* w, std::int32_t ky, std::int32_t kx, std::int32_t oc, Add add) const {
    const std::int32_t group_inputs = w_.dims[3];
    pixel += static_cast<std::int64_t>(oc / group_outputs_) * group_inputs;
    const W* tap = w + static_cast<std::int64_t>(oc) * w_.strides[0] + static_cast<std::int64_t>(ky) * w_.strides[1] +
                   static_cast<std::int64_t>(kx) * w_.strides[2];
    for (std::int32_t c = 0; c < group_inputs; ++c) sum = add(sum, pixel[c], tap[c]);
    return sum;
  }

 private:
  const TensorDesc& w_;
  std::int32_t group_outputs_;
};

}  // namespace

Footprint reference_footprint(const OpCall& call, int threads) {
  return convolution_reference_footprint<GroupedTaps>(call, threads);
}

Status run_reference(const Invocation& call) { return run_convolution_reference<GroupedTaps>(call); }

}  // namespace bantam::ops::conv2d
