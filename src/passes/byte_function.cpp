#include "passes/byte_function.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/dequantize/dequantize.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::passes {

using graph::kNone;
using graph::Node;
using graph::ValueId;

std::optional<ByteFunction> ByteFunction::of(const Rewriter& rewriter, ValueId x) {
  ByteFunction function;
  function.result_ = x;
  if (rewriter.desc(x).type != ElementType::kF32 || !function.reaches(rewriter, x)) return std::nullopt;
  return function;
}

std::optional<ByteFunction> ByteFunction::of(const Rewriter& rewriter, const Quantized& x) {
  ByteFunction function;
  function.result_ = x.q;
  function.grid_ = x.grid;
  if (!is_8_bit(x.grid.type) || !function.reaches(rewriter, x.q)) return std::nullopt;
  return function;
}

bool ByteFunction::has_step(ValueId x) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Node& step) { return step.outputs[0] == x; });
}

/// Does `x`, f32 or integers of 8 bits, come from the argument? Adds the steps on the way.
bool ByteFunction::reaches(const Rewriter& rewriter, ValueId x) {
  if (x == argument_ || has_step(x)) return true;
  const Node* node = rewriter.producer(x);
  if (is_8_bit(rewriter.desc(x).type) && (node == nullptr || !node->is(ops::kLookup8))) {
    if (argument_ != kNone) return false;
    argument_ = x;
    return true;
  }
  if (node == nullptr || ++looked_at_ > kMostOperators || !reaches_through(rewriter, *node)) return false;
  steps_.push_back(*node);
  return true;
}

bool ByteFunction::reaches_through(const Rewriter& rewriter, const Node& node) {
  const ValueId first = node.inputs[0];
  if (node.is(ops::kLookup8)) return reaches(rewriter, first);
  if (node.is(ops::kDequantize)) {
    return grid_of(rewriter.graph(), rewriter.desc(first).type, node.inputs[1], operand(node, 2)) &&
           is_8_bit(rewriter.desc(first).type) && reaches(rewriter, first);
  }
  if (!node.is(ops::kUnary) && !node.is(ops::kBinary)) return false;
  const TensorDesc& shape = rewriter.desc(node.outputs[0]);
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId x) {
    const TensorDesc& desc = rewriter.desc(x);
    if (rewriter.graph().is_constant(x)) return desc.type == ElementType::kF32 && desc.elements() == 1;
    return same_shape_and_type(desc, shape) && reaches(rewriter, x);
  });
}

std::optional<ValueId> ByteFunction::operator()(Rewriter& rewriter, ValueId integers) const {
  std::map<ValueId, ValueId> known{{argument_, integers}};
  for (const Node& step : steps_) {
    std::vector<ValueId> inputs = step.inputs;
    for (ValueId& x : inputs)
      if (const auto found = known.find(x); found != known.end()) x = found->second;
    const auto y =
        step.is(ops::kDequantize)
            ? dequantize_from(rewriter, inputs[0],
                              *grid_of(rewriter.graph(), rewriter.desc(inputs[0]).type, inputs[1], operand(step, 2)))
            : rewriter.emit(*step.op, step.params, std::move(inputs));
    if (!y) return std::nullopt;
    known[step.outputs[0]] = *y;
  }
  const ValueId result = known.at(result_);
  return grid_ ? dequantize_from(rewriter, result, *grid_) : std::optional(result);
}

std::optional<ValueId> lookup_table(Rewriter& rewriter, const ByteFunction& function, const Grid& to,
                                    const Limits& limits) {
  const ElementType from = rewriter.desc(function.argument()).type;
  std::vector<std::int32_t> numbers;
  for (int pattern = 0; pattern < 256; ++pattern)  // entry 255 of an i8 is -1
    numbers.push_back(from == ElementType::kI8 && pattern > 127 ? pattern - 256 : pattern);
  const auto y = function(rewriter, integer_list(rewriter, from, numbers));
  const auto q = y ? quantize_on(rewriter, *y, to) : std::nullopt;
  const auto results = q ? graph::constant_integers(rewriter.graph(), *q) : std::nullopt;
  if (!results || results->size() != numbers.size()) return std::nullopt;
  std::transform(results->begin(), results->end(), numbers.begin(), [&](std::int64_t v) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(v, limits.low, limits.high));
  });
  return integer_list(rewriter, to.type, numbers);
}

}  // namespace bantam::passes
