// What to feed into one input of a model, as a user writes it on the command line or in a fleet file, parsed.
//
//   FILE[,key=value...]       astronaut-512.jpg,resize=320x240,color=bgr,mean=127,scale=0.0078125,layout=nchw
//   ARCHIVE.npz:ENTRY         one array of an archive; the entry may be left out when there is only one
//   zeros | fill:X | random:SEED
//
// A comma followed by a lower-case word and '=' begins the options; anything before it belongs to the file name.
//
//   key       value                   for            meaning
//   color     rgb|bgr|gray            pictures       channels and their order; default: rgb or gray, as the model needs
//   resize    WIDTHxHEIGHT            pictures       default: the size the model needs
//   fit       stretch|crop|pad        pictures       what to do about another aspect ratio; default stretch
//   layout    nhwc|nchw               pictures       default: the one the model's shape allows, nhwc if it allows both
//   mean      X or X/Y/Z              all files      y = (x - mean) * scale; one value, or one per channel in the final
//   scale     X or X/Y/Z              all files      channel order
//   offset    N >= 0                  sound, arrays  first frame (row) of the window; default 0
//   samples   N >= 1                  sound, arrays  frames (rows) of the window; default: as many as the model needs
//   pad       zero|error              sound, arrays  what to do when the window reaches beyond the end; default zero
//   type      f32|i16 (sound), any    sound, raw     sound: samples on the scale [-1,1) or -32768..32767 (default: i16
//                                                    where the model takes plain integers); raw: type of the elements
//   quantize  yes|no                  all files      no: values are cast to an integer input as they are, although the
//                                                    input is quantised; default yes
//
// Values, no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "io/planes.h"

namespace bantam::io {

enum class SourceKind : std::uint8_t { kFile, kZeros, kFill, kRandom };
enum class Layout : std::uint8_t { kNhwc, kNchw };
enum class WindowPad : std::uint8_t { kZero, kError };

struct ImageSize {
  int width = 0;
  int height = 0;
};

struct InputSpec {
  SourceKind kind = SourceKind::kFile;
  std::string path;        ///< kFile; relative paths as the user wrote them
  std::string entry;       ///< of an .npz archive; empty: its only one
  float fill = 0;          ///< kFill
  std::uint64_t seed = 0;  ///< kRandom
  std::optional<Color> color;
  std::optional<ImageSize> resize;
  std::optional<Fit> fit;
  std::optional<Layout> layout;
  std::vector<float> mean;   ///< empty: 0
  std::vector<float> scale;  ///< empty: 1
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> samples;
  std::optional<WindowPad> pad;
  std::optional<ElementType> type;
  std::optional<bool> quantize;
};

/// Largest side that resize= accepts, in pixels.
inline constexpr int kMaxResizeSide = 1 << 14;

Result<InputSpec> parse_input_spec(std::string_view text);

/// The keys that were given, in the order of the table above.
std::vector<std::string_view> given_keys(const InputSpec& spec);

}  // namespace bantam::io
