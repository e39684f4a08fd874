// What the three graphs of a recogniser are compiled for, from what their files declare.
#pragma once

#include <vector>

#include "bantam/compiler.h"
#include "bantam/recognizer.h"

namespace bantam::speech {

/// Tokens that a hypothesis of the longest utterance may have: three for every four encoder frames.
Result<int> likely_tokens(const RecognizerSpec& spec);

/// Model specs called "encoder", "ctc" and, with rescoring, "decoder", in this order. Errors name file, key or port,
/// what was found and what was expected.
Result<std::vector<ModelSpec>> describe_graphs(const RecognizerSpec& spec);

}  // namespace bantam::speech
