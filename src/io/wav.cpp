#include "io/wav.h"

#include <sndfile.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "fmt/format.h"
#include "io/array.h"
#include "io/file.h"

namespace bantam::io {
namespace {

struct CloseSound {
  void operator()(SNDFILE* file) const noexcept { sf_close(file); }
};
using SoundFile = std::unique_ptr<SNDFILE, CloseSound>;

/// A file in memory for libsndfile's callbacks, either read from or written to.
struct MemoryFile {
  std::span<const std::byte> input;
  std::vector<std::byte> output;
  bool writing = false;
  sf_count_t position = 0;

  sf_count_t length() const { return static_cast<sf_count_t>(writing ? output.size() : input.size()); }

  sf_count_t seek(sf_count_t offset, int whence) {
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : length();
    sf_count_t target = 0;
    // A place outside the file is refused; a position is therefore always within [0, length].
    if (__builtin_add_overflow(base, offset, &target) || target < 0 || target > length()) return -1;
    return position = target;
  }

  sf_count_t read(void* to, sf_count_t count) {
    const sf_count_t n = std::clamp<sf_count_t>(count, 0, length() - position);
    if (n == 0) return 0;  // `to` may be null then
    std::memcpy(to, input.data() + position, static_cast<std::size_t>(n));
    position += n;
    return n;
  }

  sf_count_t write(const void* from, sf_count_t count) {
    if (count <= 0) return 0;
    output.resize(static_cast<std::size_t>(std::max(length(), position + count)));
    std::memcpy(output.data() + position, from, static_cast<std::size_t>(count));
    position += count;
    return count;
  }
};

MemoryFile& memory_of(void* user) { return *static_cast<MemoryFile*>(user); }

SF_VIRTUAL_IO callbacks() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) { return memory_of(user).length(); };
  io.seek = [](sf_count_t offset, int whence, void* user) { return memory_of(user).seek(offset, whence); };
  io.read = [](void* to, sf_count_t count, void* user) { return memory_of(user).read(to, count); };
  io.write = [](const void* from, sf_count_t count, void* user) { return memory_of(user).write(from, count); };
  io.tell = [](void* user) { return memory_of(user).position; };
  return io;
}

tl::unexpected<Error> too_long() {
  return fail(StatusCode::kUnsupported, fmt::format("the sound has more than {} samples", kMaxSoundSamples),
              "cut it into shorter files");
}

}  // namespace

Result<Sound> decode_sound(std::span<const std::byte> bytes) {
  MemoryFile memory;
  memory.input = bytes;
  SF_VIRTUAL_IO io = callbacks();
  SF_INFO info{};
  const SoundFile file(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (file == nullptr)
    return fail(StatusCode::kInvalidArgument, fmt::format("not a readable sound: {}", sf_strerror(nullptr)),
                "give a WAV, FLAC, Ogg or AIFF file");
  if (info.channels < 1 || info.samplerate < 1)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the sound has {} channels at {} Hz", info.channels, info.samplerate));
  if (info.frames < 0 || info.frames > kMaxSoundSamples / info.channels) return too_long();

  Sound sound{info.samplerate, info.channels, {}};
  const auto channels = static_cast<std::size_t>(info.channels);
  constexpr std::size_t kStepSamples = 1 << 16;
  const std::size_t step_frames = std::max<std::size_t>(1, kStepSamples / channels);
  // The header's frame count may be forged or unknown: what counts is what comes out.
  while (true) {
    const std::size_t used = sound.samples.size();
    sound.samples.resize(used + step_frames * channels);
    const sf_count_t n = sf_readf_float(file.get(), sound.samples.data() + used, static_cast<sf_count_t>(step_frames));
    sound.samples.resize(used + static_cast<std::size_t>(std::max<sf_count_t>(n, 0)) * channels);
    if (n <= 0) break;
    if (static_cast<std::int64_t>(sound.samples.size()) > kMaxSoundSamples) return too_long();
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR)
    return fail(StatusCode::kInvalidArgument, fmt::format("damaged sound: {}", sf_strerror(file.get())));
  if (sound.frames() < info.frames)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the sound ends after {} frames, its header promises {}", sound.frames(), info.frames));
  return sound;
}

Result<Sound> read_sound(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return in_file(path, decode_sound(file->bytes()));
}

std::vector<float> mix_to_mono(const Sound& sound) {
  if (sound.channels == 1) return sound.samples;
  std::vector<float> mono;
  mono.reserve(static_cast<std::size_t>(sound.frames()));
  const auto channels = static_cast<std::size_t>(sound.channels);
  for (std::size_t at = 0; at + channels <= sound.samples.size(); at += channels) {
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += static_cast<double>(sound.samples[at + c]);
    mono.push_back(static_cast<float>(sum / static_cast<double>(channels)));
  }
  return mono;
}

std::vector<std::int16_t> to_int16(std::span<const float> samples) {
  std::vector<std::int16_t> result(samples.size());
  std::ranges::transform(samples, result.begin(),
                         [](float x) { return round_saturate<std::int16_t>(static_cast<double>(x) * 32768.0); });
  return result;
}

Result<std::vector<std::byte>> encode_wav(const Sound& sound) {
  SF_INFO info{};
  info.samplerate = sound.sample_rate;
  info.channels = sound.channels;
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  if (sound.sample_rate < 1 || sf_format_check(&info) == 0 ||
      sound.samples.size() % static_cast<std::size_t>(sound.channels) != 0)
    return fail(StatusCode::kInvalidArgument, fmt::format("a sound of {} samples, {} channels, {} Hz cannot be written",
                                                          sound.samples.size(), sound.channels, sound.sample_rate));
  if (static_cast<std::int64_t>(sound.samples.size()) > kMaxSoundSamples) return too_long();
  MemoryFile memory;
  memory.writing = true;
  SF_VIRTUAL_IO io = callbacks();
  SoundFile file(sf_open_virtual(&io, SFM_WRITE, &info, &memory));
  if (file == nullptr) return fail(StatusCode::kIo, fmt::format("cannot write a WAV file: {}", sf_strerror(nullptr)));
  const auto samples = to_int16(sound.samples);
  const auto count = static_cast<sf_count_t>(samples.size());
  if (sf_write_short(file.get(), samples.data(), count) != count)
    return fail(StatusCode::kIo, fmt::format("cannot write a WAV file: {}", sf_strerror(file.get())));
  file.reset();  // completes the header
  return std::move(memory.output);
}

Result<void> write_wav(const std::string& path, const Sound& sound) {
  const auto bytes = encode_wav(sound);
  if (!bytes) return fail(bytes.error());
  return write_file(path, *bytes);
}

}  // namespace bantam::io
