// The fixed-point features that keyword and voice models of the TensorFlow Lite Micro family are trained on: 40 log
// energies of mel bands per step, with noise reduction and per-channel gain control, as int8.
//
//   dsp::MicroFeatures features;
//   features.lay_out(10, block);                        // a row every 10 ms
//   while (!samples.empty()) {
//     const std::int8_t* row = nullptr;
//     samples = samples.subspan(features.push(samples, &row));
//     if (row != nullptr) use(row);                     // 40 values, valid until the next push
//   }
//
// Method: Hann window of 30 ms, fixed-point transform of 512, energies, triangular bands equally wide in mel between
// 125 and 7500 Hz, square root, spectral subtraction of a smoothed noise estimate, per-channel amplitude normalisation
// (Wang et al., "Trainable frontend for robust and far-field keyword spotting", 2017), logarithm. To the bit what
// TensorFlow Lite Micro's audio preprocessor graph computes.
//
// Memory: in a Block of the caller's, nothing is allocated. Threads: one at a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dsp/block.h"
#include "dsp/fixed_fft.h"

namespace bantam::dsp {

class MicroFeatures {
 public:
  static constexpr int kSampleRate = 16000;
  static constexpr int kWindow = 480;  ///< samples: 30 ms
  static constexpr int kChannels = 40;
  /// What one step of an int8 feature is worth to a float model: feature = kScale * (stored - kZeroPoint).
  static constexpr float kScale = 26.0F / 255.0F;
  static constexpr int kZeroPoint = -128;

  /// step_ms: 1..30, milliseconds from row to row.
  void lay_out(int step_ms, Block& block) noexcept;

  /// As after lay_out: no samples, no noise estimate.
  void reset() noexcept;

  /// Takes samples up to the end of the next row and returns how many; *row is that row or null.
  std::size_t push(std::span<const std::int16_t> samples, const std::int8_t** row) noexcept;

  /// One row from a whole window, advancing the noise estimate.
  void compute(const std::int16_t* window, std::int8_t* row) noexcept;

 private:
  void lay_out_bands(Block& block) noexcept;
  int transform(const std::int16_t* window) noexcept;
  void energies_to_bands(int scale_bits) noexcept;
  void reduce_noise() noexcept;
  void normalise_gain() noexcept;

  /// The bins of one rising slope; band c rises over slope c and falls over slope c + 1.
  struct Slope {
    std::int16_t first_bin;
    std::int16_t bins;
  };

  int step_ = 0;    ///< samples
  int filled_ = 0;  ///< samples in history_
  FixedRealFft fft_;
  std::int16_t* history_ = nullptr;
  std::int16_t* hann_ = nullptr;
  std::int16_t* scaled_ = nullptr;  ///< windowed and scaled up, padded with zeros
  ComplexInt16* spectrum_ = nullptr;
  Slope* slopes_ = nullptr;
  std::int16_t* rising_ = nullptr;  ///< by bin
  std::int16_t* falling_ = nullptr;
  std::int16_t* gain_ = nullptr;  ///< signal::kGainEntries of the gain curve
  std::uint32_t* bands_ = nullptr;
  std::uint32_t* noise_ = nullptr;
  std::int8_t* row_ = nullptr;
};

}  // namespace bantam::dsp
