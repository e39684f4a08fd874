// depthwise_conv2d of int8 for small cores: four channels of an output at a time, their sums in registers while the
// taps go by. No scratch and no packed weights.
#include <cstddef>

#include "ops/common/finish_i8.h"
#include "ops/common/unrolled.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/depthwise_conv2d/kernels.h"

namespace bantam::ops::depthwise {
namespace {

/// Channels that are summed at once.
constexpr int kBlock = 4;

class Int8Depthwise {
 public:
  Int8Depthwise(const Invocation& call, const ConvGeometry& g)
      : g_(g),
        requantize_(make_requantizer(call, int8_range(call.as<Conv2dParams>()))),
        zero_point_(call.as<Conv2dParams>().input_zero_point),
        x_(call.input<std::int8_t>(0)),
        w_(call.input<std::int8_t>(1)),
        y_(call.output<std::int8_t>()),
        multiplier_(g.x.c > 0 ? g.y.c / g.x.c : 1) {}

  void run() const {
    for (std::int32_t item = 0; item < g_.y.n; ++item)
      for (std::int32_t oy = 0; oy < g_.y.h; ++oy)
        for (std::int32_t ox = 0; ox < g_.y.w; ++ox) pixel(item, oy, ox);
  }

 private:
  /// The taps of one window that lie inside the image; pointers to channel 0 of the first of them.
  struct Window {
    const std::int8_t* image;
    const std::int8_t* weights;
    std::int32_t rows;
    std::int32_t columns;
  };

  void pixel(std::int32_t item, std::int32_t oy, std::int32_t ox) const {
    const std::int64_t y0 = window_origin(g_.vertical, oy);
    const std::int64_t x0 = window_origin(g_.horizontal, ox);
    const TapRange rows = taps_inside(g_.vertical, y0, 0, g_.x.h);
    const TapRange columns = taps_inside(g_.horizontal, x0, 0, g_.x.w);
    Window window{x_, w_, 0, 0};
    if (rows.size() > 0 && columns.size() > 0)
      window = {x_ + g_.x.offset(item, y0 + std::int64_t{rows.first} * g_.vertical.dilation,
                                 x0 + std::int64_t{columns.first} * g_.horizontal.dilation),
                w_ + (static_cast<std::ptrdiff_t>(rows.first) * g_.horizontal.kernel + columns.first) * g_.y.c,
                rows.size(), columns.size()};
    std::int8_t* out = y_ + g_.y.offset(item, oy, ox);
    if (multiplier_ == 1) {
      channels<1>(window, 0, 0, g_.y.c, out);
    } else {
      for (std::int32_t c = 0; c < g_.x.c; ++c) channels<0>(window, c, c * multiplier_, (c + 1) * multiplier_, out);
    }
  }

  /// Outputs [first, last), the first of which reads input channel `input` and the others that many further: Step.
  template <int Step>
  void channels(const Window& window, std::int32_t input, std::int32_t first, std::int32_t last,
                std::int8_t* out) const {
    std::int32_t channel = first;
    for (; channel + kBlock <= last; channel += kBlock)
      block<kBlock, Step>(window, input + Step * (channel - first), channel, out);
    for (; channel < last; ++channel) block<1, Step>(window, input + Step * (channel - first), channel, out);
  }

  /// N channels from `channel` on. A function of its own, so that the sums get all registers.
  template <int N, int Step>
  [[gnu::noinline]] void block(const Window& window, std::int32_t input, std::int32_t channel, std::int8_t* out) const {
    std::uint32_t sums[1][N] = {};
    const auto row_step = static_cast<std::ptrdiff_t>(g_.x.h_stride * g_.vertical.dilation);
    const auto tap_step = static_cast<std::ptrdiff_t>(g_.x.w_stride * g_.horizontal.dilation);
    const std::ptrdiff_t w_step = g_.y.c;
    const std::ptrdiff_t w_row = g_.horizontal.kernel * w_step;
    const std::int32_t zero_point = zero_point_;
    const std::int8_t* image_row = window.image + input;
    const std::int8_t* weights_row = window.weights + channel;
    for (std::int32_t ky = 0; ky < window.rows; ++ky, image_row += row_step, weights_row += w_row) {
      const std::int8_t* x = image_row;
      const std::int8_t* w = weights_row;
      for (std::int32_t kx = 0; kx < window.columns; ++kx, x += tap_step, w += w_step)
        unrolled<N>([&](auto i) { sums[0][i] += static_cast<std::uint32_t>((x[i * Step] - zero_point) * w[i]); });
    }
    finish_i8<1, N>(sums, requantize_, channel, out + channel, 0);
  }

  const ConvGeometry& g_;
  Requantizer requantize_;
  std::int32_t zero_point_;
  const std::int8_t* x_;
  const std::int8_t* w_;
  std::int8_t* y_;
  std::int32_t multiplier_;
};

}  // namespace

bool portable_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && call.in(1).is_dense();
}

namespace {

ConvGeometry geometry_of(const Conv2dParams& params, const TensorDesc& x, const TensorDesc& w, const TensorDesc& y) {
  return conv_geometry(params, x, y, w.dims[0], w.dims[1]);
}

}  // namespace

Footprint portable_footprint(const OpCall& call, int threads) {
  return {.lead_bytes =
              lead_bytes(call, geometry_of(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out()), 1, threads)};
}

Status run_portable(const Invocation& call) {
  const ConvGeometry g = geometry_of(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  Int8Depthwise(call, g).run();
  return ok_status();
}

}  // namespace bantam::ops::depthwise
