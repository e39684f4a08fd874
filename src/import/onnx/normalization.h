// The softmax of the importer, shared by Softmax, LogSoftmax and their quantised relative.
#pragma once

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {

/// Softmax, or its logarithm, along `axis`, or with `flat` over all axes from there on together.
ValueId softmax_along(NodeLowering& n, ValueId x, int axis, bool flat, bool log);

}  // namespace bantam::import::onnx
