// Products of quantised operands in the importer: what QLinearConv, QLinearMatMul, their integer relatives and
// com.microsoft's forms share. Lowered to conv2d_affine and matmul_affine.
#pragma once

#include <functional>

#include "import/onnx/lowering.h"
#include "ops/common/affine_form.h"

namespace bantam::import::onnx {

/// Zero points as ONNX gives them: absent, one, or a list; constant or not.
struct ZeroPointOperand {
  ValueId id = kNone;  ///< a list for the operator's operand; kNone: `constant` says it
  std::int32_t constant = 0;
};
ZeroPointOperand read_zero_point(NodeLowering& n, ValueId id);

/// What both operators take besides x and weights; `form.to`, output zero point, limits and activation count.
struct AffineProduct {
  ops::AffineForm form{};
  ValueId bias = kNone;
  ValueId scale = kNone;  ///< a list; kNone for i32 results
  ZeroPointOperand x_zero{};
  ZeroPointOperand w_zero{};

  /// The form with the constant zero points in it.
  ops::AffineForm full_form() const {
    ops::AffineForm result = form;
    result.input_zero_point = x_zero.constant;
    result.weights_zero_point = w_zero.constant;
    return result;
  }
};

/// a times b with ONNX's rules for vectors.
ValueId lower_affine_matmul(NodeLowering& n, ValueId a, ValueId b, bool transpose_b, const AffineProduct& product);

/// Completes `product` for results of the type of `zero_point` with that zero point, of sums times `factor`, and calls
/// `emit` with it. Where the operators cannot do it (`factor` varies along other axes than the columns, `zero_point` is
/// no constant) `emit` gives the sums and the rest is arithmetic on them. `factor` broadcasts against the result.
ValueId quantized_product(NodeLowering& n, AffineProduct product, ValueId factor, bool factor_is_per_column,
                          ValueId zero_point, const std::function<ValueId(const AffineProduct&)>& emit);

/// QLinearConv: x, its scale and zero point, w, its scale and zero point, y's scale and zero point, bias.
void lower_qlinear_conv(NodeLowering& n);

/// `x` as a list of its elements.
ValueId as_list(NodeLowering& n, ValueId x);

/// Scales with several elements, shaped to broadcast along `axis` of `rank`.
ValueId along(NodeLowering& n, ValueId scale, int axis, int rank);

/// Quantises with one scale for the whole tensor.
ValueId quantize_tensor(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, ElementType to);

/// (x - zero_point) * scale with one scale, or one per slice along `axis`.
ValueId dequantize_tensor(NodeLowering& n, ValueId x, ValueId scale, ValueId zero_point, int axis);

/// The results of DynamicQuantizeLinear: u8 numbers, their scale and zero point.
struct DynamicallyQuantized {
  ValueId q = kNone;
  ValueId scale = kNone;
  ValueId zero_point = kNone;
};
DynamicallyQuantized quantize_dynamically(NodeLowering& n, ValueId x);

}  // namespace bantam::import::onnx
