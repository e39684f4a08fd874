// The sizes and strides of one convolution, gathered once from the descs. Used by the kernels of conv2d and
// depthwise_conv2d. Freestanding, values only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "ops/common/linear_form.h"
#include "ops/common/params.h"
#include "ops/common/window.h"
#include "ops/nn/conv2d/conv2d.h"

namespace bantam::ops {

/// An image batch [n,h,w,c], channels last; strides in elements, channels contiguous.
struct ImageShape {
  std::int32_t n = 0;
  std::int32_t h = 0;
  std::int32_t w = 0;
  std::int32_t c = 0;
  std::int64_t n_stride = 0;
  std::int64_t h_stride = 0;
  std::int64_t w_stride = 0;
  std::int64_t first = 0;  ///< elements before pixel (0, 0) of item 0

  ImageShape() = default;
  /// Requires rank 4.
  explicit ImageShape(const TensorDesc& desc) noexcept
      : n(desc.dims[0]),
        h(desc.dims[1]),
        w(desc.dims[2]),
        c(desc.dims[3]),
        n_stride(desc.strides[0]),
        h_stride(desc.strides[1]),
        w_stride(desc.strides[2]) {}

  std::int64_t offset(std::int64_t in, std::int64_t iy, std::int64_t ix) const noexcept {
    return first + in * n_stride + iy * h_stride + ix * w_stride;
  }
};

struct ConvGeometry {
  ImageShape x;
  ImageShape y;
  WindowAxis vertical;
  WindowAxis horizontal;
  std::int32_t groups = 1;
};

inline ConvGeometry conv_geometry(const Conv2dParams& p, const TensorDesc& x, const TensorDesc& y, std::int32_t kh,
                                  std::int32_t kw) noexcept {
  return {ImageShape(x), ImageShape(y), WindowAxis{kh, p.stride_h, p.dilation_h, p.pad_top, p.pad_bottom},
          WindowAxis{kw, p.stride_w, p.dilation_w, p.pad_left, p.pad_right}, p.groups};
}

/// The same convolution on a dense copy of one batch item of x, whichever item that is.
inline ConvGeometry with_dense_item(const ConvGeometry& g) noexcept {
  ConvGeometry result = g;
  result.x.n_stride = 0;
  result.x.h_stride = static_cast<std::int64_t>(g.x.w) * g.x.c;
  result.x.w_stride = g.x.c;
  return result;
}

/// An image of one column as one row, whose windows are contiguous.
inline ConvGeometry lying(const ConvGeometry& g) noexcept {
  const bool one_column = g.x.w == 1 && g.y.w == 1 && g.horizontal.kernel == 1 && g.horizontal.pad_before == 0;
  if (!one_column) return g;
  ConvGeometry result = g;
  const auto turn = [](ImageShape& s) {
    std::swap(s.h, s.w);
    s.w_stride = s.h_stride;
    s.h_stride = s.w * s.w_stride;
  };
  turn(result.x);
  turn(result.y);
  std::swap(result.vertical, result.horizontal);
  return result;
}

inline Int8Range int8_range(const Conv2dParams& p) noexcept {
  return {p.input_zero_point, 0, p.output_zero_point, p.minimum, p.maximum};
}

/// Checks that weights w [OC,KH,KW,C/groups] fit x [N,H,W,C].
Status check_grouped_weights(const TensorDesc& x, const TensorDesc& w, std::int32_t groups);

/// What conv2d and depthwise_conv2d have in common: checks everything but the channels of x and fills y.
Status infer_convolution(const Conv2dParams& params, std::span<const Tensor> inputs, std::int32_t kh, std::int32_t kw,
                         std::int32_t channels, TensorDesc* y);

/// The fields of Conv2dParams.
inline constexpr auto kConv2dFields = std::to_array<ParamField>({
    i32_field("stride_h", offsetof(Conv2dParams, stride_h)),
    i32_field("stride_w", offsetof(Conv2dParams, stride_w)),
    i32_field("dilation_h", offsetof(Conv2dParams, dilation_h)),
    i32_field("dilation_w", offsetof(Conv2dParams, dilation_w)),
    i32_field("pad_top", offsetof(Conv2dParams, pad_top)),
    i32_field("pad_left", offsetof(Conv2dParams, pad_left)),
    i32_field("pad_bottom", offsetof(Conv2dParams, pad_bottom)),
    i32_field("pad_right", offsetof(Conv2dParams, pad_right)),
    i32_field("groups", offsetof(Conv2dParams, groups)),
    enum_field("activation", offsetof(Conv2dParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(Conv2dParams, activation.a)),
    f32_field("activation_b", offsetof(Conv2dParams, activation.b)),
    i32_field("input_zero_point", offsetof(Conv2dParams, input_zero_point)),
    i32_field("output_zero_point", offsetof(Conv2dParams, output_zero_point)),
    i32_field("minimum", offsetof(Conv2dParams, minimum)),
    i32_field("maximum", offsetof(Conv2dParams, maximum)),
});

/// Quantises batch item `item` of x for the hybrid form into q, dense [h,w,c]; returns the scale.
float quantize_image(const ImageShape& shape, const float* x, std::int32_t item, std::int8_t* q) noexcept;

/// Bytes of the dense int8 copy of one batch item.
inline std::int64_t quantized_image_bytes(const ImageShape& shape) noexcept {
  return static_cast<std::int64_t>(shape.h) * shape.w * shape.c;
}

}  // namespace bantam::ops
