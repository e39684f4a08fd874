// The text form of a graph: what --stop-after prints and what pass tests are written in.
//
//   graph "tiny" {
//     %0 "x" = input : f32[1,4]
//     %1 = const : f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}
//     %2 = const : f32[2] splat(0.5)
//     %3 "h" = state : f32[1,2]
//     %4 = matmul(%0, %1, %2) {activation="relu"} : f32[1,2]
//     %5 = binary(%4, %3) {function="add"} : f32[1,2]
//     output "y" %5
//     next "h" %5
//     size "found" %6 100
//   }
//
// The bodies of control flow (graph/control.h) follow their node, as `body "name" { ... }` with numbers of their own.
// `size` names a measured size, the value that holds it and its bound. `_` is an absent operand or result; parameters
// at their default are not printed; the types of results are optional when parsing (they are inferred, and compared
// when given); `#` starts a comment. Constants of more than kPrintedElements elements print as `...`, which does not
// parse, unless all elements are equal (`splat`). Values are numbered in order of appearance, so equal graphs print
// equally.
#pragma once

#include <string>
#include <string_view>

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::graph {

inline constexpr std::int64_t kPrintedElements = 64;

std::string to_text(const Graph& graph);

/// Errors name the line. The graph passes verify().
Result<Graph> from_text(std::string_view text);

}  // namespace bantam::graph
