// Moves look-up tables that never fall behind maxima over windows, which leave fewer elements to be looked up:
//
//   max_pool(lookup8(x)) -> lookup8(max_pool(x)), where a larger x never gives a smaller entry
//
// Bit for bit the same: the largest entry of a window is that of its largest element. Every window must meet the image,
// since the least value of one that does not is no entry. Activations that are quantised on grids of their own, apart
// from the convolutions that they follow, are such tables.
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/nn/pool2d/pool2d.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;

/// Is the maximum that of all elements in the window, of which there always are some, without limits of its own?
bool is_plain_maximum(const ops::Pool2dParams& p, ElementType type) {
  const bool meets_image = p.pad_top < p.kernel_h && p.pad_bottom < p.kernel_h && p.pad_left < p.kernel_w &&
                           p.pad_right < p.kernel_w && p.dilation_h == 1 && p.dilation_w == 1;
  const int least = type == ElementType::kI8 ? -128 : 0;
  return p.kind == ops::PoolKind::kMax && meets_image && p.minimum == least && p.maximum == least + 255;
}

/// Do entries of type `to` never fall while their index, of type `from`, grows? Both are i8 or u8.
bool never_falls(std::span<const std::byte> table, ElementType from, ElementType to) {
  const auto number = [](unsigned bits, ElementType type) {
    return type == ElementType::kI8 && bits >= 128 ? static_cast<int>(bits) - 256 : static_cast<int>(bits);
  };
  const unsigned first = from == ElementType::kI8 ? 128 : 0;
  int last = number(std::to_integer<unsigned>(table[first]), to);
  for (unsigned i = 1; i < 256; ++i) {
    const int next = number(std::to_integer<unsigned>(table[(first + i) % 256]), to);
    if (next < last) return false;
    last = next;
  }
  return true;
}

std::optional<ValueId> sink_lookup(Rewriter& rewriter, const Node& node) {
  if (!node.is(ops::kPool2d)) return std::nullopt;
  const Node* lookup = rewriter.producer(node.inputs[0], ops::kLookup8);
  if (lookup == nullptr || !rewriter.only_reader(node.inputs[0])) return std::nullopt;
  const TensorDesc x = rewriter.desc(lookup->inputs[0]);
  const TensorDesc y = rewriter.desc(node.outputs[0]);
  const graph::Value& table = rewriter.value(lookup->inputs[1]);
  auto params = node.as<ops::Pool2dParams>();
  if (!is_plain_maximum(params, y.type) || y.elements() >= x.elements() || !table.constant ||
      !never_falls(table.constant->bytes, x.type, y.type))
    return std::nullopt;
  params.minimum = x.type == ElementType::kI8 ? -128 : 0;
  params.maximum = params.minimum + 255;
  const ValueId entries = lookup->inputs[1];
  const auto most = rewriter.emit(ops::kPool2d, params, {lookup->inputs[0]});
  return most ? rewriter.emit(ops::kLookup8, graph::Params(), {*most, entries}) : std::nullopt;
}

}  // namespace

Result<bool> sink_lookups(graph::Graph& graph) { return Rewriter(graph).sweep(sink_lookup); }

}  // namespace bantam::passes
