#include "compiler/select.h"

#include <fmt/format.h>

namespace bantam::compiler {

Result<std::vector<const ops::KernelVariant*>> select_kernels(const graph::Graph& graph, KernelChoice choice,
                                                              const Target& target) {
  std::vector<const ops::KernelVariant*> result;
  result.reserve(graph.nodes.size());
  for (const graph::Node& node : graph.nodes) {
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    const ops::OpCall call = tables.call(node);
    const ops::KernelVariant* chosen = nullptr;
    if (choice == KernelChoice::kReference) {
      chosen = &ops::reference_variant(*node.op);
    } else {
      for (const ops::KernelVariant& variant : node.op->variants) {
        if (!target.has_kernel(variant.name) || !ops::supports(variant, call)) continue;
        chosen = &variant;
        break;
      }
    }
    if (chosen == nullptr || !ops::supports(*chosen, call))
      return fail(StatusCode::kUnsupported,
                  fmt::format("node '{}' ({}): no kernel of '{}' supports its operand types", node.name, node.origin,
                              node.op->name),
                  "export the model in float32 or int8");
    result.push_back(chosen);
  }
  return result;
}

}  // namespace bantam::compiler
