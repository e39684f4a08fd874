// A model that listens: gathers samples or feature rows until it is due, runs, and gives probabilities.
//
//   while (!samples.empty()) {
//     bool due = false;
//     samples = samples.subspan(detector.add(samples, &due));
//     if (due) { s = detector.invoke(); p = detector.probability(c); }
//   }
//
// Before the first sample there was silence. Memory: in a Block of the caller's; the session's is the fleet's. Threads:
// one at a time. Errors: of the invoke.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/shapes.h"
#include "dsp/block.h"

namespace bantam::audio {

class Detector {
 public:
  void lay_out(const DetectorShape& shape, dsp::Block& block) noexcept;
  /// Must outlive the object's use.
  void attach(Session* session) noexcept { session_ = session; }
  void reset() noexcept;

  const DetectorShape& shape() const noexcept { return shape_; }

  /// Takes samples up to the next invoke and returns how many; *due: run it now. Kind kWave only.
  std::size_t add(std::span<const std::int16_t> samples, bool* due) noexcept;
  /// Takes a row of features; true: run it now. Kind kMicroFeatures only.
  bool add_row(const std::int8_t* row) noexcept;

  Status invoke() noexcept;
  /// 0..1, after an invoke and before any session of the fleet runs again. Requires 0 <= c < shape().classes.
  float probability(int c) const noexcept;

 private:
  void fill_input() noexcept;
  float score(int c) const noexcept;

  DetectorShape shape_;
  Session* session_ = nullptr;
  std::int16_t* samples_ = nullptr;  ///< the window, newest last
  std::int8_t* rows_ = nullptr;
  int filled_ = 0;  ///< units of the hop that are there
};

}  // namespace bantam::audio
