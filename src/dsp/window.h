// Windows for short-time transforms. Freestanding, no state.
#pragma once

#include <cstdint>

namespace bantam::dsp {

enum class Window : std::uint8_t {
  kRectangular,
  kHann,      ///< periodic: copies shifted by a half add up to 1
  kSqrtHann,  ///< applied before and after, adds up like kHann
  kHamming,   ///< periodic
};

/// Sample i of the window of `size` samples, 0 <= i < size.
float window_value(Window window, int i, int size) noexcept;

}  // namespace bantam::dsp
