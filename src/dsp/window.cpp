#include "dsp/window.h"

#include <cmath>

namespace bantam::dsp {

float window_value(Window window, int i, int size) noexcept {
  constexpr double kPi = 3.14159265358979323846;
  const double sine = std::sin(kPi * i / size);
  switch (window) {
    case Window::kRectangular: return 1.0F;
    case Window::kHann: return static_cast<float>(sine * sine);
    case Window::kSqrtHann: return static_cast<float>(sine);
    case Window::kHamming: return static_cast<float>(0.08 + 0.92 * sine * sine);
  }
  return 0.0F;
}

}  // namespace bantam::dsp
