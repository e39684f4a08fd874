#include "compiler/measured_sizes.h"

#include <algorithm>
#include <cstddef>

namespace bantam::compiler {
namespace {

/// Does an instance differ from the first in this dimension alone?
bool varies_alone(const Sizes& sizes, const Sizes& first, std::size_t dimension) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if ((sizes[d] == first[d]) == (d == dimension)) return false;
  return true;
}

/// The instances that show what depends on this dimension.
std::vector<const graph::Graph*> varied(std::span<const SizedGraph> instances, std::size_t dimension) {
  std::vector<const graph::Graph*> result;
  for (const SizedGraph& instance : instances)
    if (varies_alone(instance.sizes, instances.front().sizes, dimension)) result.push_back(&instance.graph);
  return result;
}

}  // namespace

std::vector<PlannedMeasure> planned_measures(const graph::Graph& graph, const std::vector<Dimension>& dimensions) {
  std::vector<PlannedMeasure> result;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const auto size = std::ranges::find(graph.measured, dimensions[d].name, &graph::MeasuredSize::name);
    if (size != graph.measured.end()) result.push_back({d, size->value, graph.value(size->value).producer});
  }
  std::ranges::stable_sort(result, {}, &PlannedMeasure::by);
  return result;
}

std::vector<Precedence> size_precedences(const graph::Graph& graph, std::span<const SizedGraph> instances,
                                         const std::vector<Dimension>& dimensions) {
  std::vector<Precedence> result;
  for (const PlannedMeasure& measure : planned_measures(graph, dimensions)) {
    if (measure.by == graph::kNone) continue;
    const std::vector<const graph::Graph*> others = varied(instances, measure.dimension);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      if (std::ranges::any_of(
              others, [&](const graph::Graph* other) { return !(other->nodes[n].params == graph.nodes[n].params); }))
        result.push_back({measure.by, static_cast<graph::NodeId>(n)});
  }
  return result;
}

}  // namespace bantam::compiler
