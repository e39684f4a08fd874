#include "graph/text.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_graph_text(std::span<const std::byte> bytes) {
  auto graph = graph::from_text(text_of(bytes));
  if (!graph) {
    require_message(graph.error());
    return;
  }
  const std::string printed = graph::to_text(*graph);
  // Constants too long to print in full are cut short and do not parse; everything else must come back the same.
  if (printed.find("...") == std::string::npos) {
    const auto again = graph::from_text(printed);
    require(again.has_value(), again ? "" : "a printed graph does not parse: " + again.error().message);
    require(graph::to_text(*again) == printed, "a graph changes when printed and parsed");
  }
  const format::PackageBytes package = compile_graph(std::move(*graph));
  if (!package.bytes().empty()) require(run_package(package.bytes()), "a package opens once only");
}

}  // namespace bantam::fuzz
