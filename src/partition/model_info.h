// The text of a model's _MODEL_INFO_ file: who the model is and which words it wakes on.
//
// Lines that begin with # are comments; the first other line is
//   type_version_(word_window_threshold90_threshold95)...
// for example wakenet9_v1h24_hilexin_3_0.608_0.615. Words may be any UTF-8 without an underscore. As the loader does,
// several underscores in a row count as one. Pure function on untrusted text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"

namespace bantam::partition {

inline constexpr std::string_view kModelInfoFile = "_MODEL_INFO_";

/// Longest text that is read; real ones have less than 200 bytes.
inline constexpr std::size_t kMaxModelInfoBytes = 4096;

struct ModelLabel {
  std::string word;
  int window = 0;           ///< frames that a detection looks at
  double threshold_90 = 0;  ///< of the mode that should find 90 % of the words
  double threshold_95 = 0;  ///< of the mode that should find 95 %
};

struct ModelInfo {
  std::string type;
  std::string version;
  std::vector<ModelLabel> labels;
};

Result<ModelInfo> parse_model_info(std::string_view text);

}  // namespace bantam::partition
