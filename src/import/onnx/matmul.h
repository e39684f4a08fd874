// The matrix product of the importer with ONNX's rules for vectors, shared by MatMul and its quantised relatives.
#pragma once

#include "import/onnx/lowering.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::import::onnx {

/// Operands of rank 1 count as a row (a) or a column (b), which the result then lacks. `bias` may be kNone.
ValueId lower_matrix_product(NodeLowering& n, ValueId a, ValueId b, const ops::MatmulParams& params, ValueId bias);

}  // namespace bantam::import::onnx
