// What a stream says about a sound, copied out so that tests can compare it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "bantam/recognizer.h"

namespace bantam::testing {

struct HeardLine {
  std::string text;
  float score = 0;
  float ctc_score = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> frames;
  bool operator==(const HeardLine&) const = default;
};

struct Heard {
  speech::SegmentEnd end = speech::SegmentEnd::kNone;
  std::int64_t first_feature = 0;
  std::int64_t features = 0;
  std::string text;
  std::vector<HeardLine> nbest;
  bool operator==(const Heard&) const = default;
};

inline void PrintTo(const Heard& heard, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << '[' << static_cast<int>(heard.end) << "] " << heard.text;
}

/// Remembers everything that the stream given to it says.
class Listening {
 public:
  Listening(const Recognizer& recognizer, speech::Stream& stream) : units_(recognizer.units()) {
    stream.set_listener(
        {this, [](void* self, const speech::Recognition& r) { static_cast<Listening*>(self)->hear(r); }});
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  std::vector<Heard> events;

  std::vector<Heard> finals() const {
    std::vector<Heard> result;
    for (const Heard& h : events)
      if (h.end != speech::SegmentEnd::kNone) result.push_back(h);
    return result;
  }
  std::vector<std::string> partials() const {
    std::vector<std::string> result;
    for (const Heard& h : events)
      if (h.end == speech::SegmentEnd::kNone) result.push_back(h.text);
    return result;
  }

 private:
  void hear(const speech::Recognition& r) {
    Heard heard{r.end, r.first_feature, r.features, std::string(r.text), {}};
    for (const speech::Hypothesis& h : r.nbest) {
      HeardLine line{std::string(h.tokens.size() * units_.longest(), ' '), h.score, h.ctc_score, {}, {}};
      line.text.resize(units_.join(h.tokens, line.text));
      line.tokens.assign(h.tokens.begin(), h.tokens.end());
      line.frames.assign(h.frames.begin(), h.frames.end());
      heard.nbest.push_back(std::move(line));
    }
    events.push_back(std::move(heard));
  }

  const speech::Units& units_;
};

}  // namespace bantam::testing
