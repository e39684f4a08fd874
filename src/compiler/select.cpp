#include "compiler/select.h"

#include <fmt/format.h>

#include <algorithm>

namespace bantam::compiler {
namespace {

/// Does the variant support the node at every size, with weights laid out alike?
bool serves(const ops::KernelVariant& variant, std::span<const graph::Graph* const> sizes, std::size_t n) {
  std::vector<std::int64_t> packed;
  for (const graph::Graph* graph : sizes) {
    const graph::Node& node = graph->nodes[n];
    const graph::OperandTables tables = graph::operand_tables(*graph, node);
    const ops::OpCall call = tables.call(node);
    if (!ops::supports(variant, call)) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::int64_t bytes =
          graph->is_constant(node.inputs[i]) ? ops::packed_bytes(variant, call, static_cast<int>(i)) : 0;
      if (packed.size() <= i) packed.push_back(bytes);
      if (packed[i] != bytes) return false;
    }
  }
  return true;
}

}  // namespace

Result<std::vector<const ops::KernelVariant*>> select_kernels(std::span<const graph::Graph* const> sizes,
                                                              KernelChoice choice, const Target& target) {
  const graph::Graph& graph = *sizes.front();
  std::vector<const ops::KernelVariant*> result;
  result.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    const auto& variants = node.op->variants;
    const bool reference = choice == KernelChoice::kReference;
    const auto candidates = reference ? variants.last(1) : variants;
    const auto chosen = std::ranges::find_if(candidates, [&](const ops::KernelVariant& variant) {
      return (reference || target.has_kernel(variant.name)) && serves(variant, sizes, n);
    });
    if (chosen == candidates.end())
      return fail(StatusCode::kUnsupported,
                  fmt::format("node '{}' ({}): no kernel of '{}' supports its operand types", node.name, node.origin,
                              node.op->name),
                  "export the model in float32 or int8");
    result.push_back(&*chosen);
  }
  return result;
}

bool supported(const std::vector<const ops::KernelVariant*>& variants, const graph::Graph& graph) {
  for (std::size_t n = 0; n < variants.size(); ++n) {
    const graph::OperandTables tables = graph::operand_tables(graph, graph.nodes[n]);
    if (!ops::supports(*variants[n], tables.call(graph.nodes[n]))) return false;
  }
  return true;
}

}  // namespace bantam::compiler
