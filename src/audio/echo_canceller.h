// SpeexDSP's echo canceller behind a small interface: what the microphone hears, less what the loudspeaker played.
//
// Memory: SpeexDSP allocates its state at creation and frees it at destruction; processing allocates nothing. Threads:
// one at a time. Errors: create returns an invalid object when memory is short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct SpeexEchoState_;
struct SpeexPreprocessState_;

namespace bantam::audio {

class EchoCanceller {
 public:
  /// frame: samples per process call. filter: taps of the adaptive filter.
  struct Shape {
    int frame = 256;
    int filter = 2048;
    bool suppress_residual = true;
  };

  EchoCanceller() = default;
  static EchoCanceller create(const Shape& shape);
  /// Bytes that `create` takes from the heap, measured by doing so; 0 where the C library cannot tell.
  static std::size_t measure(const Shape& shape);

  bool valid() const noexcept { return echo_ != nullptr; }
  int frame() const noexcept { return shape_.frame; }

  /// shape.frame samples each; `out` may be `microphone`.
  void process(const std::int16_t* microphone, const std::int16_t* reference, std::int16_t* out) noexcept;
  void reset() noexcept;

 private:
  struct Destroy {
    void operator()(SpeexEchoState_* state) const noexcept;
    void operator()(SpeexPreprocessState_* state) const noexcept;
  };

  Shape shape_;
  std::unique_ptr<SpeexEchoState_, Destroy> echo_;
  std::unique_ptr<SpeexPreprocessState_, Destroy> residual_;
};

}  // namespace bantam::audio
