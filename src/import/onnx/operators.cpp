#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {
namespace {

using Family = std::span<const OperatorRow> (*)();

constexpr Family kFamilies[] = {
    attention_operators,
    constant_operators,
    control_operators,
    convolution_operators,
    einsum_operators,
    elementwise_operators,
    indexing_operators,
    loop_operators,
    loss_operators,
    matmul_operators,
    normalization_operators,
    pooling_operators,
    quantized_microsoft_operators,
    quantized_operators,
    recurrent_operators,
    reduction_operators,
    resize_operators,
    sampling_operators,
    selection_operators,
    shape_operators,
    signal_operators,
    slicing_operators,
};

}  // namespace

std::vector<const OperatorRow*> all_operators() {
  std::vector<const OperatorRow*> rows;
  for (const Family family : kFamilies)
    for (const OperatorRow& row : family()) rows.push_back(&row);
  return rows;
}

Result<const OperatorRow*> find_operator(std::string_view domain, std::string_view name, std::int64_t opset) {
  const OperatorRow* other_version = nullptr;
  for (const Family family : kFamilies) {
    for (const OperatorRow& row : family()) {
      if (row.name != name || row.domain != domain) continue;
      if (row.since <= opset && opset <= row.until) return &row;
      other_version = &row;
    }
  }
  if (other_version != nullptr)
    return fail(
        StatusCode::kUnsupported,
        fmt::format("the operator is not supported in operator set {}, only from {} on", opset, other_version->since));
  return fail(StatusCode::kUnsupported,
              domain.empty() ? std::string("the operator is not supported")
                             : fmt::format("the operator of domain '{}' is not supported", printable(domain)));
}

}  // namespace bantam::import::onnx
