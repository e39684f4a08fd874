// Helpers of pass tests: one pass on a graph in text form.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "passes/passes.h"

namespace bantam::passes::testing {

/// The graph of `text`; a failure is reported to GoogleTest and gives an empty graph.
graph::Graph parse(std::string_view text);

/// The graph in the printer's own form, so that numbering and spacing do not matter.
std::string normalised(std::string_view text);

/// The text after one pass, which must succeed and leave a verified graph; or the error.
std::string after(Result<bool> (*pass)(graph::Graph&), std::string_view text);

/// The pass turns `text` into `expected`, and both give "y", f32, within 1e-5 of each other, for random inputs of f32
/// and bool.
void expect_rewritten(Result<bool> (*pass)(graph::Graph&), std::string_view text, std::string_view expected);

}  // namespace bantam::passes::testing
