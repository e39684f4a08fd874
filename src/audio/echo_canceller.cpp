#include "audio/echo_canceller.h"

#include <malloc.h>
#include <speex/speex_echo.h>
#include <speex/speex_preprocess.h>

#include "bantam/audio.h"

namespace bantam::audio {
namespace {

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

void EchoCanceller::Destroy::operator()(SpeexEchoState_* state) const noexcept { speex_echo_state_destroy(state); }
void EchoCanceller::Destroy::operator()(SpeexPreprocessState_* state) const noexcept {
  speex_preprocess_state_destroy(state);
}

EchoCanceller EchoCanceller::create(const Shape& shape) {
  EchoCanceller canceller;
  canceller.shape_ = shape;
  canceller.echo_.reset(speex_echo_state_init(shape.frame, shape.filter));
  if (!canceller.echo_) return {};
  int rate = kSampleRate;
  speex_echo_ctl(canceller.echo_.get(), SPEEX_ECHO_SET_SAMPLING_RATE, &rate);
  if (!shape.suppress_residual) return canceller;
  canceller.residual_.reset(speex_preprocess_state_init(shape.frame, kSampleRate));
  if (!canceller.residual_) return {};
  // Only the echo that is left over is to be attenuated: noise is another stage's. (Switching the denoiser off would
  // switch off both.)
  int no_suppression_db = 0;
  speex_preprocess_ctl(canceller.residual_.get(), SPEEX_PREPROCESS_SET_NOISE_SUPPRESS, &no_suppression_db);
  speex_preprocess_ctl(canceller.residual_.get(), SPEEX_PREPROCESS_SET_ECHO_STATE, canceller.echo_.get());
  return canceller;
}

std::size_t EchoCanceller::measure(const Shape& shape) {
  const std::size_t before = heap_in_use();
  const EchoCanceller canceller = create(shape);
  const std::size_t after = heap_in_use();
  return after > before ? after - before : 0;
}

void EchoCanceller::process(const std::int16_t* microphone, const std::int16_t* reference, std::int16_t* out) noexcept {
  speex_echo_cancellation(echo_.get(), microphone, reference, out);
  if (residual_) speex_preprocess_run(residual_.get(), out);
}

void EchoCanceller::reset() noexcept { speex_echo_state_reset(echo_.get()); }

}  // namespace bantam::audio
