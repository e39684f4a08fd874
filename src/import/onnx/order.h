// Which nodes of an ONNX graph are needed for its outputs, and in what order they can be computed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "bantam/error.h"
#include "import/onnx/model.h"

namespace bantam::import::onnx {

struct NodeOrder {
  std::vector<std::size_t> nodes;             ///< indices of needed nodes, producers first, else in the file's order
  std::unordered_set<std::string_view> used;  ///< names that needed nodes, their nested graphs or outputs read
};

/// Fails when a name is produced twice or the nodes form a cycle. Names that nobody produces are not looked at.
Result<NodeOrder> order_nodes(const GraphProto& graph);

/// The node's name for messages and reports, or its operator and first output when it has none.
std::string node_label(const NodeProto& node);

}  // namespace bantam::import::onnx
