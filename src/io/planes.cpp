#include "io/planes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace bantam::io {
namespace {

/// Where an output pixel comes from on one axis: two neighbours and the weight of the second.
struct Tap {
  std::size_t first;
  std::size_t second;
  float weight;
};

/// Taps of `out` pixels that show the part [start, start + extent) of an axis of `in` pixels.
std::vector<Tap> make_taps(int in, int out, double start, double extent) {
  std::vector<Tap> taps;
  taps.reserve(static_cast<std::size_t>(out));
  for (int i = 0; i < out; ++i) {
    const double position = std::clamp(start + (i + 0.5) * extent / out - 0.5, 0.0, static_cast<double>(in - 1));
    const auto first = static_cast<int>(position);
    taps.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(first + 1, in - 1)),
                    static_cast<float>(position - first)});
  }
  return taps;
}

/// A part of an axis of the input and the part of the output that shows it.
struct Region {
  double in_start;
  double in_extent;
  int out_start;
  int out_extent;
};

/// `factor`: output pixels per input pixel on this axis.
Region make_window(int in, int out, double factor, Fit fit) {
  if (fit == Fit::kCrop) {
    const double extent = std::min(out / factor, static_cast<double>(in));
    return {(in - extent) / 2, extent, 0, out};
  }
  if (fit == Fit::kPad) {
    const int extent = std::clamp(static_cast<int>(std::lround(in * factor)), 1, out);
    return {0, static_cast<double>(in), (out - extent) / 2, extent};
  }
  return {0, static_cast<double>(in), 0, out};
}

float mix(float a, float b, float weight) { return a + (b - a) * weight; }

}  // namespace

const char* color_name(Color color) noexcept {
  constexpr std::array kNames = {"rgb", "bgr", "gray"};
  return kNames[static_cast<std::size_t>(color)];
}

Pixels to_color(const Image& image, Color color) {
  Pixels result{image.width, image.height, channels_of(color), {}};
  const auto pixels = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  const auto from_channels = static_cast<std::size_t>(image.channels);
  result.values.reserve(pixels * static_cast<std::size_t>(result.channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* pixel = &image.pixels[i * from_channels];
    const bool gray = image.channels == 1;
    const float red = pixel[0];
    const float green = pixel[gray ? 0 : 1];
    const float blue = pixel[gray ? 0 : 2];
    switch (color) {
      case Color::kGray: result.values.push_back(gray ? red : 0.299F * red + 0.587F * green + 0.114F * blue); break;
      case Color::kRgb: result.values.insert(result.values.end(), {red, green, blue}); break;
      case Color::kBgr: result.values.insert(result.values.end(), {blue, green, red}); break;
    }
  }
  return result;
}

Pixels resize(const Pixels& from, int width, int height, Fit fit) {
  if (from.width == width && from.height == height) return from;
  const double factor_x = static_cast<double>(width) / from.width;
  const double factor_y = static_cast<double>(height) / from.height;
  const double common = fit == Fit::kCrop ? std::max(factor_x, factor_y) : std::min(factor_x, factor_y);
  const Region x = make_window(from.width, width, fit == Fit::kStretch ? factor_x : common, fit);
  const Region y = make_window(from.height, height, fit == Fit::kStretch ? factor_y : common, fit);
  const auto columns = make_taps(from.width, x.out_extent, x.in_start, x.in_extent);
  const auto rows = make_taps(from.height, y.out_extent, y.in_start, y.in_extent);

  const auto channels = static_cast<std::size_t>(from.channels);
  const std::size_t from_stride = static_cast<std::size_t>(from.width) * channels;
  const std::size_t to_stride = static_cast<std::size_t>(width) * channels;
  Pixels result{width, height, from.channels, {}};
  result.values.resize(to_stride * static_cast<std::size_t>(height));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const float* upper = &from.values[rows[r].first * from_stride];
    const float* lower = &from.values[rows[r].second * from_stride];
    float* to = &result.values[(static_cast<std::size_t>(y.out_start) + r) * to_stride +
                               static_cast<std::size_t>(x.out_start) * channels];
    for (const Tap& column : columns)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t a = column.first * channels + c;
        const std::size_t b = column.second * channels + c;
        *to++ = mix(mix(upper[a], upper[b], column.weight), mix(lower[a], lower[b], column.weight), rows[r].weight);
      }
  }
  return result;
}

}  // namespace bantam::io
