// The float convolution of the importer, shared by Conv and its fused and quantised relatives.
#pragma once

#include "import/onnx/integer_products.h"
#include "import/onnx/lowering.h"

namespace bantam::import::onnx {

/// Emits a convolution of x and weights in ONNX's layouts, reading strides, pads, dilations, group, auto_pad and
/// kernel_shape from the node. The result is in ONNX's layout.
ValueId lower_convolution(NodeLowering& n, ValueId x, ValueId weights, ValueId bias, ops::Activation activation);

/// The same for quantised operands of at most two spatial axes.
ValueId lower_affine_convolution(NodeLowering& n, ValueId x, ValueId weights, const AffineProduct& product);

/// The attributes `activation` and `activation_params` of com.microsoft's fused operators.
ops::Activation read_fused_activation(NodeLowering& n);

}  // namespace bantam::import::onnx
