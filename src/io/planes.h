// Pictures as float values, the form in which the input specification works on them: colour, then size, then values.
//
// Pure functions on memory; no file, no shared state. Pixel values stay on the scale 0..255 and are not rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/image.h"

namespace bantam::io {

struct Pixels {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<float> values;  ///< height x width x channels
};

enum class Color : std::uint8_t { kRgb, kBgr, kGray };
const char* color_name(Color color) noexcept;
constexpr int channels_of(Color color) noexcept { return color == Color::kGray ? 1 : 3; }

/// How a picture of another aspect ratio is brought to a size.
enum class Fit : std::uint8_t {
  kStretch,  ///< both axes scaled on their own
  kCrop,     ///< scaled by one factor to cover the size; what sticks out is cut evenly on both sides
  kPad,      ///< scaled by one factor to lie within the size; the rest, evenly on both sides, is black (0)
};

/// The picture in that colour order. Gray is 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601); gray to colour repeats the
/// value; alpha is dropped without blending.
Pixels to_color(const Image& image, Color color);

/// Bilinear interpolation with half-pixel centres: output pixel i lies at (i + 0.5) * in / out - 0.5 of the input,
/// coordinates beyond the outermost centres take the edge pixel; no smoothing before reduction. An unchanged size gives
/// the unchanged picture. width, height >= 1.
Pixels resize(const Pixels& from, int width, int height, Fit fit);

}  // namespace bantam::io
