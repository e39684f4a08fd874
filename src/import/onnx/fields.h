// Field numbers of the ONNX protobuf messages that the reader looks at, and the codes of its element and attribute
// types. Facts of the format (onnx.proto); only what Bantam reads is listed.
#pragma once

#include <cstdint>

namespace bantam::import::onnx::field {

namespace model {
enum : std::uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14
};
}
namespace opset {
enum : std::uint32_t { kDomain = 1, kVersion = 2 };
}
namespace entry {  // StringStringEntryProto
enum : std::uint32_t { kKey = 1, kValue = 2 };
}
namespace graph {
enum : std::uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12, kSparseInitializer = 15 };
}
namespace node {
enum : std::uint32_t { kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7 };
}
namespace attribute {
enum : std::uint32_t {
  kName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kType = 20,
  kRefName = 21,
};
}
namespace tensor {
enum : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};
}
namespace value_info {
enum : std::uint32_t { kName = 1, kType = 2 };
}
namespace type {
enum : std::uint32_t { kTensorType = 1 };
}
namespace tensor_type {
enum : std::uint32_t { kElementType = 1, kShape = 2 };
}
namespace shape {
enum : std::uint32_t { kDim = 1 };
}
namespace dim {
enum : std::uint32_t { kValue = 1, kParam = 2 };
}

}  // namespace bantam::import::onnx::field
