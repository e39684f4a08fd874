// conv2d of int8 for small cores: inner products of contiguous stretches of image and weights, two pixels by two
// channels at a time. No scratch and no packed weights: flash and RAM are what such cores lack.
#include <cstddef>

#include "ops/common/dot_i8.h"
#include "ops/common/finish_i8.h"
#include "ops/common/unrolled.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/overlap.h"

namespace bantam::ops::conv2d {
namespace {

class Int8Convolution {
 public:
  Int8Convolution(const Invocation& call, const ConvGeometry& g)
      : g_(g),
        requantize_(make_requantizer(call, int8_range(call.as<Conv2dParams>()))),
        zero_point_(call.as<Conv2dParams>().input_zero_point),
        x_(call.input<std::int8_t>(0)),
        w_(call.input<std::int8_t>(1)),
        y_(call.output<std::int8_t>()),
        w_row_(static_cast<std::ptrdiff_t>(g.horizontal.kernel) * g.x.c),
        w_channel_(w_row_ * g.vertical.kernel),
        taps_touch_(g.horizontal.dilation == 1 && g.x.w_stride == g.x.c) {}

  void run() const {
    for (std::int32_t item = 0; item < g_.y.n; ++item)
      for (std::int32_t oy = 0; oy < g_.y.h; ++oy) row(item, oy);
  }

 private:
  /// The taps of one window that lie inside the image.
  struct Window {
    const std::int8_t* pixel;  ///< under the first of them
    TapRange rows;
    TapRange columns;
  };

  void row(std::int32_t item, std::int32_t oy) const {
    const std::int64_t y0 = window_origin(g_.vertical, oy);
    const TapRange rows = taps_inside(g_.vertical, y0, 0, g_.x.h);
    for (std::int32_t ox = 0; ox < g_.y.w;) {
      const Window window = at(item, y0, rows, ox);
      std::int8_t* out = y_ + g_.y.offset(item, oy, ox);
      const bool pair = ox + 1 < g_.y.w && is_inside(window) && is_inside(at(item, y0, rows, ox + 1));
      if (pair) {
        pixels<2>(window, out);
      } else {
        pixels<1>(window, out);
      }
      ox += pair ? 2 : 1;
    }
  }

  Window at(std::int32_t item, std::int64_t y0, const TapRange& rows, std::int32_t ox) const {
    const std::int64_t x0 = window_origin(g_.horizontal, ox);
    const TapRange columns = taps_inside(g_.horizontal, x0, 0, g_.x.w);
    if (rows.size() == 0 || columns.size() == 0) return {x_, {}, {}};
    const std::int64_t iy = y0 + std::int64_t{rows.first} * g_.vertical.dilation;
    const std::int64_t ix = x0 + std::int64_t{columns.first} * g_.horizontal.dilation;
    return {x_ + g_.x.offset(item, iy, ix), rows, columns};
  }

  bool is_inside(const Window& window) const { return window.columns.size() == g_.horizontal.kernel; }

  /// All channels of P neighbouring outputs whose windows differ by nothing but their place.
  template <int P>
  void pixels(const Window& window, std::int8_t* out) const {
    std::int32_t channel = 0;
    for (; channel + 2 <= g_.y.c; channel += 2) block<P, 2>(window, channel, out);
    if (channel < g_.y.c) block<P, 1>(window, channel, out);
  }

  /// P neighbouring outputs, O channels of each. A function of its own, so that the sums get all registers.
  template <int P, int O>
  [[gnu::noinline]] void block(const Window& window, std::int32_t channel, std::int8_t* out) const {
    std::uint32_t sums[P][O] = {};
    const auto pixel_step = static_cast<std::ptrdiff_t>(g_.x.w_stride * g_.horizontal.stride);
    const auto row_step = static_cast<std::ptrdiff_t>(g_.x.h_stride * g_.vertical.dilation);
    const auto tap_step = static_cast<std::ptrdiff_t>(g_.x.w_stride * g_.horizontal.dilation);
    const std::int32_t stretches = taps_touch_ ? 1 : window.columns.size();
    const std::ptrdiff_t length = static_cast<std::ptrdiff_t>(g_.x.c) * (taps_touch_ ? window.columns.size() : 1);
    const std::int8_t* image = window.pixel;
    const std::int8_t* weights = w_ + channel * w_channel_ + window.rows.first * w_row_ +
                                 static_cast<std::ptrdiff_t>(window.columns.first) * g_.x.c;
    for (std::int32_t ky = 0; ky < window.rows.size(); ++ky) {
      for (std::int32_t s = 0; s < stretches; ++s) {
        const std::int8_t* x[P];
        const std::int8_t* w[O];
        unrolled<P>([&](auto p) { x[p] = image + s * tap_step + p * pixel_step; });
        unrolled<O>([&](auto o) { w[o] = weights + s * length + o * w_channel_; });
        accumulate_i8<P, O>(x, zero_point_, w, length, sums);
      }
      image += row_step;
      weights += w_row_;
    }
    finish_i8<P, O>(sums, requantize_, channel, out + channel, static_cast<std::ptrdiff_t>(g_.y.w_stride));
  }

  const ConvGeometry& g_;
  Requantizer requantize_;
  std::int32_t zero_point_;
  const std::int8_t* x_;
  const std::int8_t* w_;
  std::int8_t* y_;
  std::ptrdiff_t w_row_;      ///< between rows of a channel's weights
  std::ptrdiff_t w_channel_;  ///< between channels
  bool taps_touch_;           ///< the pixels under a row of taps follow each other, as the weights do
};

}  // namespace

bool portable_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && call.as<Conv2dParams>().groups == 1 &&
         call.in(1).is_dense();
}

Footprint portable_footprint(const OpCall& call, int threads) {
  return {.lead_bytes = lead_bytes(
              call,
              conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), call.in(1).dims[1], call.in(1).dims[2]), 2,
              threads)};
}

Status run_portable(const Invocation& call) {
  const ConvGeometry g =
      conv_geometry(call.as<Conv2dParams>(), call.in(0), call.out(), call.in(1).dims[1], call.in(1).dims[2]);
  Int8Convolution(call, g).run();
  return ok_status();
}

}  // namespace bantam::ops::conv2d
