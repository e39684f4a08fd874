// Sizes that follow other sizes: "(T - 3) / 4 + 64". For dimensions of a model that are not free once others are
// chosen, such as the length of a mask over a cache and a subsampled chunk. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "bantam/error.h"

namespace bantam::compiler {

/// The value of a formula of integers, names, + - * / and parentheses; division rounds towards minus infinity. Whatever
/// the text is, the result is a number or an Error that says where it went wrong.
Result<std::int64_t> evaluate_formula(std::string_view formula, const std::map<std::string, std::int64_t>& sizes);

}  // namespace bantam::compiler
