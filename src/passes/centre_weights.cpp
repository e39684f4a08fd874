// Moves zero points of constant weights into these.
//
// A product with weights w, whose zero point is z, is one with the numbers w - z, which wants no sums of what it is
// multiplied with. These have nine bits. But where weights were quantised from the least to the largest of a layer, all
// numbers of most channels have eight. Where those of all do, no zero points are left; else the other channels keep
// one, as small as may be, and those have 0, which is done where they are half of all channels or more. Exact.
#include <algorithm>
#include <vector>

#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "passes/list.h"
#include "passes/quantized_values.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

// Operands, see ops/common/affine_form.h.
constexpr std::size_t kWeights = 1;
constexpr std::size_t kZeroPoints = 5;

/// Constant bytes with the zero points of their channels.
struct Weights {
  std::span<const std::byte> bytes;
  ElementType type = ElementType::kI8;
  std::int64_t step = 1;                  ///< elements from one channel to the next
  std::vector<std::int32_t> zero_points;  ///< one per channel

  /// Calls f(channel, number) for all, in their order.
  template <typename F>
  void for_each_number(F f) const {
    for (std::size_t i = 0; i < bytes.size();)
      for (std::size_t c = 0; c < zero_points.size(); ++c)
        for (std::int64_t inner = 0; inner < step; ++inner, ++i) {
          const auto bits = std::to_integer<std::uint8_t>(bytes[i]);
          f(c, (type == ElementType::kU8 ? bits : static_cast<std::int8_t>(bits)) - zero_points[c]);
        }
  }
};

/// What the weights of `node` are, whose channels run along `axis` and are described by `form`. Nothing unless all of
/// it is known.
std::optional<Weights> weights_of(const Rewriter& rewriter, const Node& node, const ops::AffineForm& form, int axis) {
  const ValueId id = node.inputs[kWeights];
  const graph::Value& value = rewriter.value(id);
  if (!value.constant || !value.desc.is_dense() || value.desc.elements() == 0) return std::nullopt;
  const auto elements = static_cast<std::size_t>(value.desc.elements());
  Weights w{value.constant->bytes.first(elements), value.desc.type, 1, {}};
  for (int i = axis + 1; i < value.desc.rank; ++i) w.step *= value.desc.dims[i];
  w.zero_points.assign(static_cast<std::size_t>(value.desc.dims[axis]), form.weights_zero_point);
  if (const ValueId zeros = operand(node, kZeroPoints); zeros != kNone) {
    const auto known = graph::constant_integers(rewriter.graph(), zeros);
    if (!known) return std::nullopt;
    for (std::size_t c = 0; c < w.zero_points.size(); ++c)
      w.zero_points[c] = static_cast<std::int32_t>((*known)[known->size() == 1 ? 0 : c]);
  }
  return w;
}

/// Are these what kernels see as int8 without zero points?
bool are_centred(const Weights& w) {
  const std::int32_t middle = w.type == ElementType::kU8 ? 128 : 0;
  return std::all_of(w.zero_points.begin(), w.zero_points.end(), [&](std::int32_t z) { return z == middle; });
}

/// The zero points that channels need as int8.
std::vector<std::int32_t> least_zero_points(const Weights& w) {
  std::vector<std::int32_t> zeros(w.zero_points.size(), 0);
  w.for_each_number([&](std::size_t channel, std::int32_t number) {
    if (number > 127) zeros[channel] = std::min(zeros[channel], 127 - number);
    if (number < -128) zeros[channel] = std::max(zeros[channel], -128 - number);
  });
  return zeros;
}

/// The node with weights whose channels run along `axis`, if it is worth it.
template <typename Params>
Replacement centre(Rewriter& rewriter, const Node& node, int axis) {
  Params params = node.as<Params>();
  const auto w = weights_of(rewriter, node, params.form, axis);
  if (!w || are_centred(*w)) return std::nullopt;
  const std::vector<std::int32_t> zeros = least_zero_points(*w);
  const auto channels = static_cast<std::int64_t>(zeros.size());
  const std::int64_t left = channels - std::count(zeros.begin(), zeros.end(), 0);
  if (2 * left > channels) return std::nullopt;
  std::vector<std::int8_t> numbers;
  numbers.reserve(w->bytes.size());
  w->for_each_number([&](std::size_t channel, std::int32_t number) {
    numbers.push_back(static_cast<std::int8_t>(number + zeros[channel]));
  });
  const TensorDesc desc = rewriter.desc(node.inputs[kWeights]);
  std::vector<ValueId> inputs = node.inputs;
  inputs[kWeights] = rewriter.constant<std::int8_t>(dims_of(desc), numbers);
  inputs.resize(kZeroPoints + 1, kNone);
  inputs[kZeroPoints] = left > 0 ? integer_list(rewriter, ElementType::kI8, zeros) : kNone;
  while (inputs.back() == kNone) inputs.pop_back();
  params.form.weights_zero_point = 0;
  return rewriter.emit(*node.op, params, std::move(inputs));
}

Replacement centre_weights_of(Rewriter& rewriter, const Node& node) {
  if (node.is(ops::kConv2dAffine)) return centre<ops::Conv2dAffineParams>(rewriter, node, 0);
  if (node.is(ops::kConvTranspose2dAffine)) return centre<ops::ConvTranspose2dAffineParams>(rewriter, node, 0);
  if (!node.is(ops::kMatmulAffine) || rewriter.desc(node.inputs[kWeights]).rank != 2) return std::nullopt;
  return centre<ops::MatmulAffineParams>(rewriter, node, node.as<ops::MatmulAffineParams>().transpose_b != 0 ? 0 : 1);
}

}  // namespace

Result<bool> centre_weights(graph::Graph& graph) { return Rewriter(graph).sweep(centre_weights_of); }

}  // namespace bantam::passes
