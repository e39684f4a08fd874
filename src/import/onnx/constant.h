// From TensorProto to constant: element type, shape and bytes, checked against each other.
//
// Raw and external data stay where the file has them; typed data fields are converted into memory of their own, sized
// by the elements that are really there. Errors name the tensor.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "bantam/error.h"
#include "graph/graph.h"
#include "import/import.h"
#include "import/onnx/model.h"
#include "io/file.h"

namespace bantam::import::onnx {

struct TensorConstant {
  TensorDesc desc;  ///< dense
  graph::Constant data;
  bool nibbles = false;  ///< stored as int4 or uint4, unpacked to i8 or u8
};

/// Turns the tensors of one model into constants; maps each external data file once. `source` must outlive it.
class ConstantReader {
 public:
  explicit ConstantReader(const Source& source) : source_(source) {}

  Result<TensorConstant> read(const TensorProto& tensor);

 private:
  Result<graph::Constant> external(const TensorProto& tensor, const TensorDesc& desc);
  Result<std::shared_ptr<const io::MappedFile>> map(const std::string& location);

  const Source& source_;
  std::map<std::string, std::shared_ptr<const io::MappedFile>> files_;
};

/// The type that graphs compute in: 16-bit floats are storage of ports, everything between is f32 and not rounded.
constexpr ElementType compute_type(ElementType type) noexcept {
  return type == ElementType::kF16 || type == ElementType::kBF16 ? ElementType::kF32 : type;
}

/// The same numbers in their compute_type.
TensorConstant in_compute_type(TensorConstant constant);

}  // namespace bantam::import::onnx
