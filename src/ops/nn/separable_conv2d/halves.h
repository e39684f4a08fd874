// The two convolutions inside one application of a separable convolution, as applications of their own operators, and
// the band of rows that both are computed by. Shared by separable_conv2d and separable_conv2d_affine, whose `Form` says
// how operands and parameters are divided:
//
//   using Params, using Half      parameters of the whole and of one convolution
//   kOperands                     operands of a half, x included
//   split(params, &first, &second)
//   middle_channels(w), middle_type(x, first), kernel_height(w)
//
// Operands of the whole: x, the weights of both, what else the first has, what else the second has.
// Freestanding. A Halves refers to the descs and the data of the call that it was made from, and to itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/shape.h"
#include "ops/common/window.h"
#include "ops/op.h"

namespace bantam::ops::separable {

template <typename Form>
class Halves {
 public:
  /// How many operands the whole has at most, and one half besides x and its weights.
  static constexpr int kExtra = Form::kOperands - 2;
  static constexpr int kInputs = 3 + 2 * kExtra;

  /// y without dimensions will do for `infer`.
  Halves(const void* params, std::span<const Tensor> inputs, const TensorDesc& y) : x_(*inputs[0].desc), y_(y) {
    Form::split(*static_cast<const typename Form::Params*>(params), &first_, &second_);
    pad_top_ = first_.pad_top;
    const auto input = [&](int i) {
      return i < static_cast<int>(inputs.size()) ? inputs[static_cast<std::size_t>(i)] : Tensor{nullptr, &absent_};
    };
    first_inputs_[0] = {input(0).data, &x_};
    first_inputs_[1] = input(1);
    second_inputs_[0] = {nullptr, &middle_};
    second_inputs_[1] = input(2);
    for (int i = 0; i < kExtra; ++i) {
      first_inputs_[2 + i] = input(3 + i);
      second_inputs_[2 + i] = input(3 + kExtra + i);
    }
    first_output_ = {nullptr, &middle_};
    second_output_ = {nullptr, &y_};
    if (y.rank == 4) set_middle(y.dims[0], y.dims[1]);
  }
  Halves(const Halves&) = delete;
  Halves& operator=(const Halves&) = delete;

  OpCall first() const { return {&first_, first_inputs_, {&first_output_, 1}}; }
  OpCall second() const { return {&second_, second_inputs_, {&second_output_, 1}}; }

  /// The operand of a half that operand `i` of the whole is, and which half's.
  struct Place {
    bool second = false;
    int operand = 0;
  };
  static Place place(int i) {
    if (i < 2) return {false, i};
    if (i == 2) return {true, 1};
    return i < 3 + kExtra ? Place{false, i - 1} : Place{true, i - 1 - kExtra};
  }
  /// The operand of the whole that operand `i` of a half is; none is the second's operand 0.
  static int operand(bool second, int i) {
    if (i < 2) return second ? 2 : i;
    return i + 1 + (second ? kExtra : 0);
  }

  TensorDesc& middle() { return middle_; }
  const TensorDesc& middle() const { return middle_; }
  WindowAxis vertical() const {
    return {Form::kernel_height(*first_inputs_[1].desc), first_.stride_h, first_.dilation_h, first_.pad_top,
            first_.pad_bottom};
  }
  std::int64_t middle_row_bytes() const {
    return std::int64_t{middle_.dims[2]} * middle_.dims[3] * element_size(middle_.type);
  }

  /// Makes both halves those of output rows [row, row + rows) of item `n`; the middle lies at `middle`.
  void select_rows(const Tensor& x, const Tensor& y, std::int64_t n, std::int64_t row, std::int64_t rows,
                   std::byte* middle) {
    // Rows further down see the image further up: padding that is missing above, or is less than none.
    first_.pad_top = pad_top_ - static_cast<std::int32_t>(row * first_.stride_h);
    set_middle(1, static_cast<std::int32_t>(rows));
    x_.dims[0] = y_.dims[0] = 1;
    y_.dims[1] = static_cast<std::int32_t>(rows);
    first_inputs_[0].data = x.as<std::byte>() + n * x.desc->strides[0] * element_size(x_.type);
    first_output_.data = second_inputs_[0].data = middle;
    second_output_.data =
        y.as<std::byte>() + (n * y.desc->strides[0] + row * y.desc->strides[1]) * element_size(y_.type);
  }

  /// So many rows of one item, wherever they lie: enough to ask for scratch.
  void select_rows(std::int64_t rows) {
    set_middle(1, static_cast<std::int32_t>(rows));
    y_.dims[0] = 1;
    y_.dims[1] = static_cast<std::int32_t>(rows);
  }

  Invocation run_first(const Threads& threads) const {
    return {&first_, first_inputs_, {&first_output_, 1}, nullptr, &threads, 0};
  }
  Invocation run_second(const Threads& threads, std::byte* scratch, std::int64_t bytes) const {
    return {&second_, second_inputs_, {&second_output_, 1}, scratch, &threads, bytes};
  }

 private:
  /// A pointwise convolution has the height and width of what it reads.
  void set_middle(std::int32_t items, std::int32_t rows) {
    middle_.type = Form::middle_type(x_, first_);
    middle_.rank = 4;
    middle_.dims[0] = items;
    middle_.dims[1] = rows;
    middle_.dims[2] = y_.dims[2];
    middle_.dims[3] = Form::middle_channels(*first_inputs_[1].desc);
    middle_.set_dense_strides();
  }

  TensorDesc absent_{};
  TensorDesc x_;
  TensorDesc middle_{};
  TensorDesc y_;
  typename Form::Half first_{};
  typename Form::Half second_{};
  std::int32_t pad_top_ = 0;
  Tensor first_inputs_[Form::kOperands]{};
  Tensor second_inputs_[Form::kOperands]{};
  Tensor first_output_{};
  Tensor second_output_{};
};

/// Infers one half; failures name the operands of the whole.
template <typename AnyHalves>
Status infer_half(const OpDef& op, const OpCall& half, bool second, std::span<TensorDesc> outputs) {
  Status status = op.infer(half.params, half.inputs, outputs);
  // The second half's operand 0 is no operand of the whole; the first half's weights have given it its shape.
  if (status.index >= 0) status.index = second && status.index == 0 ? 1 : AnyHalves::operand(second, status.index);
  return status;
}

/// The second convolution reads one pixel for one.
inline Status check_pointwise(std::int32_t kernel_h, std::int32_t kernel_w) noexcept {
  if (kernel_h == 1 && kernel_w == 1) return ok_status();
  return failure(StatusCode::kInvalidModel, "pointwise weights must be [OC,1,1,C]", std::max(kernel_h, kernel_w), 1)
      .at(2);
}

/// Rows are counted from the image's end to its beginning and back, padding included, in 32 bits.
inline Status check_extent(std::int64_t height, std::int64_t pad_top, std::int64_t pad_bottom) noexcept {
  const std::int64_t padded = height + pad_top + pad_bottom;
  return padded <= kMaxElements ? ok_status()
                                : failure(StatusCode::kUnsupported, "padded image is too high", padded, kMaxElements);
}

/// Infers the whole from its halves, which are applications of these operators. `params` are Form::Params.
template <typename Form>
Status infer_halves(const OpDef& first, const OpDef& second, const void* params, std::span<const Tensor> inputs,
                    std::span<TensorDesc> outputs) {
  Halves<Form> halves(params, inputs, {});
  TensorDesc& middle = halves.middle();
  BANTAM_RETURN_IF_ERROR(infer_half<Halves<Form>>(first, halves.first(), false, std::span(&middle, 1)));
  BANTAM_RETURN_IF_ERROR(infer_half<Halves<Form>>(second, halves.second(), true, outputs));
  BANTAM_RETURN_IF_ERROR(check_pointwise(inputs[2].desc->dims[1], inputs[2].desc->dims[2]));
  const WindowAxis vertical = halves.vertical();
  return check_extent(inputs[0].desc->dims[1], vertical.pad_before, vertical.pad_after);
}

}  // namespace bantam::ops::separable
