// Recognisers from files: WeNet's three ONNX graphs and a list of units, compiled for streams (bantam/speech.h).
//
//   auto recognizer = bantam::Recognizer::open({.model = "models/recogniser"});
//   if (!recognizer) ...                                  // error().message names file, key, found and expected
//   auto stream = recognizer->open_stream({.continuous = true});
//   stream->set_listener(...);  stream->feed(samples);  stream->finish();
//
// The folder holds encoder.onnx, ctc.onnx, decoder.onnx and units.txt. What the export fixed (chunk size, history,
// symbols) is read from the encoder's metadata, inputs are bound by name, caches become states of the session. One
// recogniser serves any number of streams; it must outlive them. Host only; a Recognizer may be shared by threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/error.h"
#include "bantam/speech.h"

namespace bantam {

struct RecognizerSpec {
  std::filesystem::path model{};  ///< the folder
  std::filesystem::path units{};  ///< empty: units.txt or tokens.txt in the folder or the one above
  /// Encoder frames per chunk and chunks of history. A value that the metadata contradict is refused.
  std::optional<int> chunk_size{};
  std::optional<int> left_chunks{};
  /// The longest utterance; a longer one is closed and reported. Memory of a stream grows with it.
  double max_seconds = 21.0;
  /// The longest hypothesis; 0: three tokens for every four encoder frames, or as many as the decoder has positions
  /// for.
  int max_tokens = 0;
  bool rescoring = true;  ///< false: the decoder is not loaded
  CompileOptions compile{};
};

/// A stream with memory of its own.
class RecognizerStream {
 public:
  RecognizerStream(RecognizerStream&&) noexcept;
  RecognizerStream& operator=(RecognizerStream&&) noexcept;
  ~RecognizerStream();

  speech::Stream& operator*() noexcept;
  speech::Stream* operator->() noexcept { return &**this; }
  const speech::StreamPlan& plan() const noexcept;

 private:
  friend class Recognizer;
  struct Parts;
  explicit RecognizerStream(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class Recognizer {
 public:
  static Result<Recognizer> open(const RecognizerSpec& spec);

  Recognizer(Recognizer&&) noexcept;
  Recognizer& operator=(Recognizer&&) noexcept;
  ~Recognizer();

  /// What a stream would need.
  Result<speech::StreamPlan> plan(const speech::StreamConfig& config = {}) const;
  Result<RecognizerStream> open_stream(const speech::StreamConfig& config = {}) const;

  /// For streams in memory of the caller's: Stream::open(package(), units(), config, memory).
  const Package& package() const noexcept;
  const speech::Units& units() const noexcept;
  const Compiled& compiled() const noexcept;
  int chunk_size() const noexcept;   ///< encoder frames; 0: the whole utterance at once
  int left_chunks() const noexcept;  ///< history of a streaming encoder, in chunks

 private:
  struct Parts;
  explicit Recognizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A sound file as recognisers want it: the mean of its channels at 16 kHz, 16 bit. Other rates are resampled.
Result<std::vector<std::int16_t>> read_speech(const std::filesystem::path& path);

}  // namespace bantam
