#include "passes/testing/text_to_text.h"

#include "graph/text.h"

namespace bantam::passes::testing {

graph::Graph parse(std::string_view text) {
  auto graph = graph::from_text(text);
  if (!graph) {
    ADD_FAILURE() << graph.error().message << "\nin\n" << text;
    return {};
  }
  return std::move(*graph);
}

std::string normalised(std::string_view text) { return graph::to_text(parse(text)); }

std::string after(Result<bool> (*pass)(graph::Graph&), std::string_view text) {
  graph::Graph graph = parse(text);
  const std::string before = graph::to_text(graph);
  const auto changed = pass(graph);
  if (!changed) return "error: " + changed.error().message;
  if (const auto sound = graph::verify(graph); !sound) return "broken: " + sound.error().message;
  std::string text_after = graph::to_text(graph);
  if (before != text_after) {
    EXPECT_TRUE(*changed) << "the pass changed the graph without saying so";
  }
  return text_after;
}

}  // namespace bantam::passes::testing
