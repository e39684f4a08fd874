// A model at every size of its dimensions: one graph whose numbers follow the sizes.
//
// Importers and passes work on known shapes. What a model is at other sizes is found by looking: it is imported at
// several sizes, and where the graphs agree but for numbers (parameters such as the target of a reshape, shapes of
// constants), each number is expressed by the sizes (size_fit.h). That graph is then compared with the import at every
// other size that was looked at, small ones and zero among them, where importers leave out nodes that do nothing; the
// least size from which all comparisons hold becomes the dimension's lower limit. Passes run at several sizes likewise.
// What does not follow this scheme is refused with the node's name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "compiler/size_fit.h"
#include "graph/graph.h"

namespace bantam::compiler {

struct Dimension {
  std::string name;
  std::int64_t least = 1;
  std::int64_t bound = 1;
};

/// A graph as it is at these sizes.
struct SizedGraph {
  Sizes sizes;
  graph::Graph graph;
};

/// The same graph at many sizes: equal but for numbers. The first is at the bounds.
struct SizedModel {
  std::vector<Dimension> dimensions;
  std::vector<SizedGraph> instances;
};

using ImportAt = std::function<Result<graph::Graph>(const Sizes& sizes)>;
/// Rewrites a graph into the form that is planned; `any_size`: only by rules that hold at any size.
using Prepare = std::function<Result<void>(graph::Graph& graph, bool any_size)>;

/// `bounds`: largest size by dimension, each at least 1.
Result<SizedModel> size_model(const std::map<std::string, std::int64_t>& bounds, const ImportAt& import_at,
                              const Prepare& prepare);

}  // namespace bantam::compiler
