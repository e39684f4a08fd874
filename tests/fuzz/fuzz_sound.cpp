#include "io/wav.h"
#include "preprocessing.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_sound(std::span<const std::byte> bytes) {
  auto sound = io::decode_sound(bytes);
  if (!sound) {
    require_message(sound.error());
    return;
  }
  require(sound->channels >= 1 && sound->samples.size() % static_cast<std::size_t>(sound->channels) == 0,
          "a sound with an incomplete frame");
  require(static_cast<std::int64_t>(io::mix_to_mono(*sound).size()) == sound->frames(), "frames are lost in the mix");
  if (const auto written = io::encode_wav(*sound); !written) require_message(written.error());
  preprocess_for_typical_inputs({}, *sound);
}

}  // namespace bantam::fuzz
