// The recording of a fleet at work: what went into every invoke and what came out, in order. `bantam run --record`
// writes it; a firmware replays its inputs and writes a recording of its own, and the two are compared.
//
// A file is a FileHead, then records: for each invoke its inputs, the invoke itself, then its outputs. Little endian.
// Plain structs, shared by hosts and devices: freestanding.
#pragma once

#include <cstdint>

namespace bantam::feed {

inline constexpr char kRecordingMagic[8] = {'B', 'A', 'N', 'T', 'A', 'M', 'R', '1'};

struct RecordingHead {
  char magic[8];
  std::uint32_t sessions;
  std::uint32_t reserved;  ///< zero
};
static_assert(sizeof(RecordingHead) == 16);

enum class RecordKind : std::uint32_t {
  kInput = 1,   ///< followed by the elements of input `port`
  kInvoke = 2,  ///< no bytes; `port` is how often the session ran before
  kOutput = 3,  ///< followed by the elements of output `port`
};

struct RecordHead {
  RecordKind kind;
  std::uint32_t session;
  std::uint32_t port;
  std::uint32_t element_type;  ///< an ElementType
  std::uint32_t bytes;         ///< that follow
};
static_assert(sizeof(RecordHead) == 20);

}  // namespace bantam::feed
