// A reference interpreter for tests: runs a graph node by node with the reference kernels.
//
// Slow and plain on purpose: it plans nothing, shares nothing with the runtime, and keeps every value until the end, so
// that what it says can be compared with what the runtime does. Single-threaded.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::graph::testing {

/// An owned dense tensor.
struct HostTensor {
  TensorDesc desc;
  std::vector<std::byte> bytes;

  /// Requires that T is the element type's storage type.
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// A tensor of elements in row-major order; T is one of the types element_type_of knows (bool for kBool).
template <typename T>
HostTensor host_tensor(std::span<const std::int64_t> dims, std::span<const T> elements);

/// Runs a graph again and again; states carry over from one run to the next.
class Interpreter {
 public:
  /// `graph` must outlive the interpreter and have its nodes in execution order.
  explicit Interpreter(const Graph& graph);

  /// Sets every state to its initial value, or zero.
  void reset();

  /// Computes all outputs from all inputs, both by port name. Fails when an input is missing, is of another type or
  /// shape, or when a kernel reports a fault; the message names the node.
  Result<std::map<std::string, HostTensor>> run(const std::map<std::string, HostTensor>& inputs);

 private:
  Result<void> run_node(const Node& node);
  Result<void> run_control(const Node& node);
  static Result<std::vector<Constant>> run_loop(const Node& node, const std::vector<Constant>& operands);
  static Result<std::vector<Constant>> run_body(const Graph& body, const std::vector<Constant>& inputs);
  void bind_constants();
  Result<void> bind_inputs(const std::map<std::string, HostTensor>& inputs);

  const Graph& graph_;
  std::vector<Constant> values_;    ///< by ValueId, empty until computed
  std::vector<HostTensor> states_;  ///< as graph.states
};

/// One run from initial states.
Result<std::map<std::string, HostTensor>> interpret(const Graph& graph,
                                                    const std::map<std::string, HostTensor>& inputs);

}  // namespace bantam::graph::testing

#include "graph/builder.h"

namespace bantam::graph::testing {

template <typename T>
HostTensor host_tensor(std::span<const std::int64_t> dims, std::span<const T> elements) {
  HostTensor tensor;
  tensor.desc.type = element_type_of<T>();
  tensor.desc.rank = static_cast<std::uint8_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) tensor.desc.dims[i] = static_cast<std::int32_t>(dims[i]);
  tensor.desc.set_dense_strides();
  const auto bytes = std::as_bytes(elements);
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

}  // namespace bantam::graph::testing
