// How operators with ONNX's quantised arithmetic are drawn (ops/common/affine_form.h).
#include <algorithm>

#include "ops/elementwise/binary_affine/binary_affine.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "ops/nn/matmul_blocks/matmul_blocks.h"
#include "ops/nn/resize_affine/resize_affine.h"
#include "ops/nn/separable_conv2d_affine/separable_conv2d_affine.h"
#include "ops/reduce/reduce_affine/reduce_affine.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

constexpr ElementType kI8 = ElementType::kI8;
constexpr ElementType kU8 = ElementType::kU8;
constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kI32 = ElementType::kI32;

std::int32_t zero_point(ElementType type, Sampling& s) {
  const Range range = usual_range(type);
  const bool narrow = type == kI8 || type == kU8;
  return narrow ? s.pick(static_cast<std::int64_t>(range.low), static_cast<std::int64_t>(range.high)) : 0;
}

/// Lowest and highest value of an integer type of at most 16 bits; of others, which no operator with a range has, as if
/// they had 16.
void full_range(ElementType type, std::int32_t* low, std::int32_t* high) {
  const bool is_signed = type == kI8 || type == ElementType::kI16;
  const std::int32_t values = 1 << std::min(element_bits(type), 16);
  *low = is_signed ? -values / 2 : 0;
  *high = *low + values - 1;
}

/// One without exponentials, whose quantised results are the same in all variants.
Activation exact_activation(Sampling& s) {
  return s.one_of<Activation>({{UnaryFunction::kClip, -1.0F, 6.0F},
                               {UnaryFunction::kLeakyRelu, 0.1F},
                               {UnaryFunction::kHardSigmoid, 0.2F, 0.5F},
                               {UnaryFunction::kHardSwish}});
}

/// Operands 2 to 5 for weights of `channels` channels.
void affine_operands(Sampling& s, AffineForm& form, ElementType x, ElementType weights, std::int64_t channels) {
  form.to = s.one_of({kI8, kU8, kI32, kF32});
  form.input_zero_point = zero_point(x, s);
  form.weights_zero_point = s.one_in(2) ? 0 : zero_point(weights, s);
  const ElementType to = form.to;
  if (to == kI8 || to == kU8) {
    form.output_zero_point = zero_point(to, s);
    full_range(to, &form.minimum, &form.maximum);
    if (s.one_in(3)) form.activation = exact_activation(s);
    form.output_scale = s.real(0.01, 0.5);
  }
  if (to == kF32) form.activation = s.activation();
  if (s.one_in(2)) {
    s.absent();
  } else {
    s.constant(dense_desc(form.has_real_bias() ? kF32 : kI32, {channels}), {-5000.0, 5000.0});
  }
  if (to == kI32) {
    s.absent();
  } else {
    s.constant(dense_desc(kF32, {s.one_in(2) ? 1 : channels}), {0.0001, 0.01});
  }
  if (s.one_in(3)) s.fresh(dense_desc(x, {1}), {0.0, 100.0});
}

void weights(Sampling& s, ElementType type, const std::vector<std::int64_t>& dims) {
  if (s.one_in(3)) {
    s.like(dense_desc(type, dims));
  } else {
    s.constant(dense_desc(type, dims), usual_range(type));
  }
}

void binary_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8, ElementType::kI16, ElementType::kU16}), 0, 4);
  TensorDesc other = broadcastable(x, s);
  if (s.one_in(4)) other.type = kF32;
  s.like(other);
  BinaryAffineParams p{
      .function = s.one_of({BinaryFunction::kAdd, BinaryFunction::kSub, BinaryFunction::kMul, BinaryFunction::kDiv,
                            BinaryFunction::kMin, BinaryFunction::kMax, BinaryFunction::kPrelu})};
  p.a_scale = s.real(0.01, 0.1);
  p.b_scale = s.real(0.01, 0.1);
  p.y_scale = s.real(0.01, 0.1);
  p.a_zero_point = zero_point(x.type, s);
  p.b_zero_point = zero_point(x.type, s);
  p.y_zero_point = zero_point(x.type, s);
  full_range(x.type, &p.minimum, &p.maximum);
  s.set_params(p);
}

void conv2d_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 4, 4);
  Conv2dAffineParams p;
  p.stride_h = s.pick(1, 2);
  p.stride_w = s.pick(1, 2);
  p.dilation_h = s.one_in(4) ? 2 : 1;
  p.pad_top = s.pick(0, 2);
  p.pad_left = s.pick(0, 2);
  p.pad_bottom = s.pick(0, 2);
  p.pad_right = s.pick(0, 2);
  if (s.one_in(3)) p.groups = std::max(x.dims[3], 1);
  const std::int64_t out = p.groups * s.pick(1, s.one_in(3) ? 17 : 5);
  const ElementType type = s.one_of({kI8, kU8});
  weights(s, type, {out, s.pick(1, 3), s.pick(1, 3), x.dims[3] / p.groups});
  affine_operands(s, p.form, x.type, type, out);
  s.set_params(p);
}

void conv_transpose2d_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 4, 4);
  ConvTranspose2dAffineParams p;
  p.stride_h = s.pick(1, 2);
  p.stride_w = s.pick(1, 3);
  p.dilation_h = s.one_in(4) ? 2 : 1;
  p.pad_left = s.pick(0, 1);
  p.pad_bottom = s.pick(0, 1);
  p.output_pad_w = s.pick(0, 1);
  if (s.one_in(3)) p.groups = std::max(x.dims[3], 1);
  const std::int64_t out = p.groups * s.pick(1, s.one_in(3) ? 17 : 5);
  const ElementType type = s.one_of({kI8, kU8});
  weights(s, type, {out, s.pick(2, 4), s.pick(2, 4), x.dims[3] / p.groups});
  affine_operands(s, p.form, x.type, type, out);
  s.set_params(p);
}

void separable_conv2d_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 4, 4);
  SeparableConv2dAffineParams p;
  Conv2dAffineParams& first = p.depthwise;
  first.stride_h = s.pick(1, 2);
  first.pad_top = s.pick(0, 2);
  first.pad_left = s.pick(0, 2);
  first.pad_bottom = s.pick(0, 2);
  first.groups = std::max(x.dims[3], 1);
  const std::int64_t middle = x.dims[3] * s.pick(1, s.one_in(4) ? 2 : 1);
  const std::int64_t out = s.pick(1, s.one_in(3) ? 20 : 5);
  weights(s, kI8, {middle, s.pick(1, 3), s.pick(1, 3), 1});
  weights(s, kI8, {out, 1, 1, middle});
  first.form = {.to = x.type, .input_zero_point = zero_point(x.type, s), .output_zero_point = zero_point(x.type, s)};
  p.pointwise = {.to = x.type,
                 .input_zero_point = first.form.output_zero_point,
                 .weights_zero_point = s.one_in(2) ? 0 : zero_point(kI8, s),
                 .output_zero_point = zero_point(x.type, s)};
  full_range(x.type, &first.form.minimum, &first.form.maximum);
  full_range(x.type, &p.pointwise.minimum, &p.pointwise.maximum);
  for (const std::int64_t channels : {middle, out}) {
    s.constant(dense_desc(kI32, {channels}), {-5000.0, 5000.0});
    s.constant(dense_desc(kF32, {s.one_in(2) ? 1 : channels}), {0.0001, 0.01});
    s.absent();
    s.absent();
  }
  s.set_params(p);
}

void matmul_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 2, 4);
  MatmulAffineParams p{.transpose_b = s.pick(0, 1)};
  const std::int64_t k = x.dims[x.rank - 1];
  const std::int64_t n = s.pick(1, s.one_in(3) ? 33 : 9);
  const ElementType type = s.one_of({kI8, kU8});
  weights(s, type, p.transpose_b != 0 ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n});
  affine_operands(s, p.form, x.type, type, n);
  s.set_params(p);
}

void matmul_blocks(Sampling& s) {
  const TensorDesc a = s.any(kF32, 2, 4);
  const MatmulBlocksParams p{s.one_of({4, 8}), 2 * s.pick(1, s.one_in(2) ? 16 : 3)};
  const std::int64_t n = s.pick(1, s.one_in(3) ? 33 : 9);
  const std::int64_t blocks = (std::int64_t{a.dims[a.rank - 1]} + p.block_size - 1) / p.block_size;
  s.constant(dense_desc(kU8, {n, blocks, std::int64_t{p.block_size} * p.bits / 8}), {0.0, 255.0});
  s.constant(dense_desc(s.one_of({kF32, ElementType::kF16}), {n, blocks}), {0.001, 0.02});
  if (s.one_in(2)) {
    s.absent();
  } else {
    s.constant(dense_desc(s.one_of({kF32, kU8}), {n, blocks}), {0.0, 15.0});
  }
  if (s.one_in(2)) s.like(dense_desc(kF32, {n}));
  s.set_params(p);
}

/// The grid of the operand, bytes of type `x`, and that of the result, which takes all its bytes.
template <typename Params>
void byte_grids(Sampling& s, ElementType x, Params& p) {
  p.x_scale = s.real(0.01, 0.1);
  p.x_zero_point = zero_point(x, s);
  p.to = s.one_of({kI8, kU8});
  p.y_scale = s.real(0.01, 0.1);
  p.y_zero_point = zero_point(p.to, s);
  full_range(p.to, &p.minimum, &p.maximum);
}

void reduce_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 0, 5);
  ReduceAffineParams p{.function = s.one_of({ReduceFunction::kMean, ReduceFunction::kSum})};
  p.axes = s.axes(x);
  p.keep_dims = s.pick(0, 1);
  byte_grids(s, x.type, p);
  s.set_params(p);
}

void resize_affine(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8, kU8}), 1, 4);
  ResizeAffineParams p{.resize = {.mode = s.one_of({ResizeMode::kLinear, ResizeMode::kCubic})}};
  p.resize.sizes.size = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    p.resize.sizes.v[i] = x.dims[i] == 0 || s.one_in(2) ? x.dims[i] : s.pick(1, 2 * x.dims[i]);
    if (x.dims[i] != 0) p.resize.scales[i] = static_cast<float>(p.resize.sizes.v[i]) / static_cast<float>(x.dims[i]);
  }
  byte_grids(s, x.type, p);
  s.set_params(p);
}

constexpr SamplerRow kRows[] = {{&kBinaryAffine, binary_affine},
                                {&kConv2dAffine, conv2d_affine},
                                {&kConvTranspose2dAffine, conv_transpose2d_affine},
                                {&kMatmulAffine, matmul_affine},
                                {&kSeparableConv2dAffine, separable_conv2d_affine},
                                {&kMatmulBlocks, matmul_blocks},
                                {&kReduceAffine, reduce_affine},
                                {&kResizeAffine, resize_affine}};

}  // namespace

std::span<const SamplerRow> quantized_samplers() { return kRows; }

}  // namespace bantam::ops::testing
