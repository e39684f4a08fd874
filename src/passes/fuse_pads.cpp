// Moves a constant pad of height and width into the convolution or pooling that follows it.
//
// A convolution's own padding contributes what a padded element contributes: nothing for f32 zeros, and nothing for
// integers equal to the input's zero point. An average pool counts explicit zeros as elements, which is what
// count_include_pad means; its own padding must then be counted too, or be absent. A maximum ignores its padding, as it
// ignores elements of the smallest value. The pad may have other readers: it then stays for them. Exact for integers;
// for f32 exact but for the sign of a zero.
#include <algorithm>
#include <cmath>

#include "ops/data/pad/pad.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/pool2d/pool2d.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// True when the pad appends, by a constant, rows and columns of an NHWC image and nothing else.
bool pads_image(const ops::PadParams& p) {
  const auto outer_only = [](const ops::IntList& n) {
    return n.size == 4 && n.v[0] == 0 && n.v[3] == 0 && n.v[1] >= 0 && n.v[2] >= 0;
  };
  return p.mode == ops::PadMode::kConstant && outer_only(p.before) && outer_only(p.after);
}

/// The pad's constant as a number; absent means zero.
std::optional<double> pad_value(const graph::Graph& graph, const Node& pad) {
  if (pad.inputs.size() < 2 || pad.inputs[1] == graph::kNone) return 0.0;
  if (const auto f = splat(graph, pad.inputs[1])) return *f;
  if (const auto i = integer_splat(graph, pad.inputs[1])) return static_cast<double>(*i);
  return std::nullopt;
}

template <typename P>
void add_padding(P& params, const ops::PadParams& pad) {
  params.pad_top += pad.before.v[1];
  params.pad_left += pad.before.v[2];
  params.pad_bottom += pad.after.v[1];
  params.pad_right += pad.after.v[2];
}

bool accepts(const ops::Conv2dParams& p, ElementType type, double value) {
  if (type == ElementType::kF32) return value == 0.0;
  return value == p.input_zero_point;
}

/// A zero point known only at run time may differ from the constant.
bool accepts(const ops::Conv2dAffineParams& p, ElementType /*type*/, double value) {
  return value == p.form.input_zero_point;
}

/// Pads of hybrid convolutions are part of what is quantised, but zeros never change the largest magnitude.
bool accepts(ops::Pool2dParams& p, ElementType type, double value) {
  const bool padded = (p.pad_top | p.pad_left | p.pad_bottom | p.pad_right) != 0;
  if (p.kind == ops::PoolKind::kMax) return type == ElementType::kF32 && std::isinf(value) && value < 0;
  // ceil_mode drops windows by the image's size, which padding by an operator of its own would change.
  if (value != 0.0 || (padded && p.count_include_pad == 0) || p.ceil_mode != 0) return false;
  p.count_include_pad = 1;
  return true;
}

template <typename P>
Replacement fuse_pad(Rewriter& rewriter, const Node& node) {
  const Node* pad = rewriter.producer(node.inputs[0], ops::kPad);
  if (pad == nullptr || !pads_image(pad->as<ops::PadParams>())) return std::nullopt;
  const auto value = pad_value(rewriter.graph(), *pad);
  P params = node.as<P>();
  if (!value || !accepts(params, rewriter.desc(pad->inputs[0]).type, *value)) return std::nullopt;
  add_padding(params, pad->as<ops::PadParams>());
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = pad->inputs[0];
  rewriter.set_fused_source(*pad, node);
  const auto fused = rewriter.emit(*node.op, params, std::move(inputs));
  if (!fused || !same_shape_and_type(rewriter.desc(*fused), rewriter.desc(node.outputs[0]))) return std::nullopt;
  return fused;
}

}  // namespace

Result<bool> fuse_pads(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    if (node.is(ops::kConv2d) || node.is(ops::kDepthwiseConv2d)) return fuse_pad<ops::Conv2dParams>(rewriter, node);
    if (node.is(ops::kConv2dAffine) && (node.inputs.size() < 5 || node.inputs[4] == graph::kNone))
      return fuse_pad<ops::Conv2dAffineParams>(rewriter, node);
    if (node.is(ops::kPool2d)) return fuse_pad<ops::Pool2dParams>(rewriter, node);
    return std::nullopt;
  });
}

}  // namespace bantam::passes
