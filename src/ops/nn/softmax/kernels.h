// The kernels of softmax behind its variants table in softmax.cpp. Dense operands; the result may be the operand.
#pragma once

#include "ops/common/operands.h"
#include "ops/nn/softmax/softmax.h"

namespace bantam::ops::softmax {

/// The tensor as outer x size x inner elements, normalised over the middle.
struct Extents {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};

inline Extents extents_of(const Invocation& call) noexcept {
  const TensorDesc& x = call.in(0);
  const int axis = normalize_axis(call.as<SoftmaxParams>().axis, x.rank);
  return {elements_between(x, 0, axis), x.dims[axis], elements_between(x, axis + 1, x.rank)};
}

Status run_reference(const Invocation& call);
Status run_simd(const Invocation& call);

}  // namespace bantam::ops::softmax
