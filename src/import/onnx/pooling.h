// The average pooling of the importer, shared by AveragePool and its quantised relative.
#pragma once

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {

/// Averages over windows of x in ONNX's layout, as the node's attributes say.
ValueId average_pool(NodeLowering& n, ValueId x);

}  // namespace bantam::import::onnx
