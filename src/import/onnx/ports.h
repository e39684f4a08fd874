// The inputs of an ONNX model once the user's options have fixed their shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "graph/graph.h"
#include "import/import.h"
#include "import/onnx/model.h"

namespace bantam::import::onnx {

/// The graph inputs that are not initializers (which are constants, whatever else the file says).
std::vector<const ValueInfo*> real_inputs(const GraphProto& graph);

/// Applies Options::dims and Options::shapes. A symbol that Options::shapes fixes for one input holds for the others
/// too, unless Options::dims says otherwise. One Error lists every dimension without a value and every option that does
/// not fit the model. Result i belongs to inputs[i].
Result<std::vector<TensorDesc>> resolve_shapes(const std::vector<const ValueInfo*>& inputs, const Options& options);

/// The number that `text` is, or the size of the inputs' symbolic dimension of that name. `descs` are resolve_shapes'.
std::optional<std::int64_t> largest_count(std::string_view text, const std::vector<const ValueInfo*>& inputs,
                                          std::span<const TensorDesc> descs);

/// A constant of `desc` from one number per element, or from one number for all.
Result<graph::Constant> constant_from_values(const TensorDesc& desc, std::span<const double> values);

/// Names quoted and joined for a message; "(none)" when there are none.
std::string list_names(const std::vector<std::string>& names);

}  // namespace bantam::import::onnx
