#include "differential/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "graph/builder.h"
#include "ops/common/strides.h"
#include "ops/testing/harness.h"

namespace bantam::testing {
namespace {

using graph::kNone;
using graph::testing::HostTensor;
using ops::testing::TestTensor;

/// Sums are rounded in units of what is summed: where terms cancel, an error means nothing beside the sum. Of products,
/// in units of the largest possible one; of one operand's elements, half a unit in the last place of f32 per term, at
/// least of two, because a function of one element may add a constant to it.
constexpr double kSumRounding = 0x1p-19;
constexpr double kTermRounding = 0x1p-24;

/// A kernel may give what slightly other operands would have given: each number off by this part of itself.
constexpr float kOperandRounding = 0x1p-22F;
/// How many ways are tried to be off, and how much further than all of them a kernel may go.
constexpr unsigned kWaysToBeOff = 4;
constexpr double kFurther = 8.0;

/// A dense copy of what an operand holds.
HostTensor copy_of(const Tensor& tensor) {
  HostTensor copy{*tensor.desc, {}};
  copy.desc.set_dense_strides();
  copy.bytes.resize(static_cast<std::size_t>(copy.desc.bytes()));
  const auto size = static_cast<std::size_t>(element_size(copy.desc.type));
  const auto* from = static_cast<const std::byte*>(tensor.data);
  ops::for_each_element(ops::make_rows<2>(copy.desc, {&copy.desc, tensor.desc}), [&](const auto& at) {
    std::memcpy(copy.bytes.data() + static_cast<std::size_t>(at[0]) * size,
                from + static_cast<std::size_t>(at[1]) * size, size);
  });
  return copy;
}

HostTensor tensor_of(const TensorDesc& desc, std::span<const std::byte> bytes) {
  return {desc, {bytes.begin(), bytes.end()}};
}

Tensor tensor(HostTensor& value) { return {value.bytes.data(), &value.desc}; }

TestTensor test_tensor(const HostTensor& tensor) {
  TestTensor result(tensor.desc);
  result.set_packed(tensor.bytes);
  return result;
}

std::string compare(const HostTensor& found, const HostTensor& expected, const ops::Accuracy& accuracy) {
  if (same_shape_and_type(found.desc, expected.desc) && found.bytes == expected.bytes) return {};
  return ops::testing::compare(test_tensor(found), test_tensor(expected), accuracy);
}

/// Every f32 moved up or down by kOperandRounding of itself.
HostTensor moved(const HostTensor& tensor, std::mt19937& random) {
  HostTensor result = tensor;
  if (tensor.desc.type != ElementType::kF32) return result;
  for (std::size_t i = 0; i + sizeof(float) <= result.bytes.size(); i += sizeof(float)) {
    float x = 0;
    std::memcpy(&x, &result.bytes[i], sizeof x);
    x += (random() & 1U) != 0 ? x * kOperandRounding : -x * kOperandRounding;
    std::memcpy(&result.bytes[i], &x, sizeof x);
  }
  return result;
}

double largest_difference(const HostTensor& a, const HostTensor& b) {
  if (!same_shape_and_type(a.desc, b.desc) || !is_float(a.desc.type)) return 0.0;
  const std::vector<double> x = test_tensor(a).to_doubles();
  const std::vector<double> y = test_tensor(b).to_doubles();
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i])) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

double magnitude(const HostTensor& tensor) {
  double largest = 0.0;
  if (!is_float(tensor.desc.type)) return largest;
  for (const double x : test_tensor(tensor).to_doubles())
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

}  // namespace

Shadow::Shadow(const compiler::PlannedModel& planned, Session& session)
    : planned_(planned), session_(session), values_(planned.graph.values.size()) {
  for (std::size_t id = 0; id < values_.size(); ++id)
    if (const graph::Value& value = planned.graph.values[id]; value.constant)
      values_[id] = tensor_of(value.desc, value.constant->bytes);
  for (const graph::State& state : planned.graph.states) {
    const TensorDesc& desc = planned.graph.value(state.in).desc;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(desc.bytes()));
    states_.push_back(tensor_of(desc, state.initial ? state.initial->bytes : std::span<const std::byte>(zeros)));
  }
}

const graph::Node& Shadow::node_of(std::size_t step) const { return planned_.graph.node(planned_.steps[step].node); }

std::string Shadow::name_of(std::size_t step) const {
  return fmt::format("step {}, {} by {}", step, node_of(step).op->name, planned_.steps[step].variant->name);
}

std::string Shadow::invoke() {
  start();
  const Observer observer{this, before, after};
  session_.set_observer(&observer);
  const Status status = session_.invoke();
  session_.set_observer(nullptr);
  if (!problem_.empty()) return problem_;
  if (!status.ok()) {
    evaluate(node_of(running_));
    if (!faulted_) report(fmt::format("{} fails, the reference does not: {}", name_of(running_), status.message));
    return problem_;
  }
  advance(planned_.graph.nodes.size());
  check_ports();
  for (std::size_t s = 0; s < states_.size(); ++s)
    states_[s] = values_[static_cast<std::size_t>(planned_.graph.states[s].out)];
  return problem_;
}

void Shadow::start() {
  next_node_ = 0;
  running_ = 0;
  for (std::size_t i = 0; i < session_.input_count(); ++i)
    values_[static_cast<std::size_t>(planned_.graph.inputs[i].value)] = copy_of(session_.input(i));
  for (std::size_t s = 0; s < states_.size(); ++s)
    values_[static_cast<std::size_t>(planned_.graph.states[s].in)] = states_[s];
}

/// Nodes that no kernel runs for are views: the shadow computes them.
void Shadow::advance(std::size_t node) {
  for (; next_node_ < node; ++next_node_) evaluate(planned_.graph.nodes[next_node_]);
}

StepDecision Shadow::before(void* context, const Session& /*session*/, std::size_t step) {
  auto* self = static_cast<Shadow*>(context);
  self->running_ = step;
  self->advance(static_cast<std::size_t>(self->planned_.steps[step].node));
  self->check_operands(step);
  return StepDecision::kRun;
}

Status Shadow::after(void* context, const Session& /*session*/, std::size_t step) {
  auto* self = static_cast<Shadow*>(context);
  self->check_results(step);
  self->next_node_ = static_cast<std::size_t>(self->planned_.steps[step].node) + 1;
  return self->problem_.empty() ? ok_status() : failure(StatusCode::kInvalidArgument, "the shadow differs");
}

void Shadow::check_operands(std::size_t step) {
  const graph::Node& node = node_of(step);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone || planned_.graph.is_constant(node.inputs[i])) continue;
    const HostTensor found = copy_of(session_.step_operand(step, i));
    const auto difference = compare(found, values_[static_cast<std::size_t>(node.inputs[i])], ops::Accuracy{});
    if (!difference.empty()) report(fmt::format("{}, operand {} was overwritten: {}", name_of(step), i, difference));
  }
}

void Shadow::check_results(std::size_t step) {
  const graph::Node& node = node_of(step);
  evaluate(node);
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] == kNone) continue;
    HostTensor& expected = values_[static_cast<std::size_t>(node.outputs[o])];
    HostTensor found = copy_of(session_.step_operand(step, node.inputs.size() + o));
    ops::Accuracy accuracy = planned_.steps[step].variant->accuracy;
    auto difference = compare(found, expected, accuracy);
    if (!difference.empty() && accuracy.kind == ops::Accuracy::Kind::kRelative) {
      const double rounding = std::max(rounding_of_sums(node, expected), rounding_of_operands(node, o));
      accuracy.bound = std::max(accuracy.bound, static_cast<float>(rounding / std::max(magnitude(expected), 1e-30)));
      difference = compare(found, expected, accuracy);
    }
    if (!difference.empty()) report(fmt::format("{}, result {}: {}", name_of(step), o, difference));
    expected = std::move(found);
  }
}

double Shadow::rounding_of_sums(const graph::Node& node, const HostTensor& result) const {
  double largest = 1.0;
  for (const graph::ValueId id : node.inputs)
    if (id != kNone) largest *= std::max(1.0, magnitude(values_[static_cast<std::size_t>(id)]));
  if (node.inputs.size() != 1) return kSumRounding * largest;
  const std::int64_t terms = values_[static_cast<std::size_t>(node.inputs[0])].desc.elements() /
                             std::max<std::int64_t>(result.desc.elements(), 1);
  return kTermRounding * static_cast<double>(std::max<std::int64_t>(terms, 2)) * largest;
}

double Shadow::rounding_of_operands(const graph::Node& node, std::size_t output) {
  const std::vector<HostTensor> kept = values_;
  const auto result = static_cast<std::size_t>(node.outputs[output]);
  double largest = 0.0;
  for (unsigned seed = 0; seed < kWaysToBeOff; ++seed) {
    std::mt19937 random(seed);
    for (const graph::ValueId id : node.inputs)
      if (id != kNone) values_[static_cast<std::size_t>(id)] = moved(kept[static_cast<std::size_t>(id)], random);
    evaluate(node);
    if (!faulted_) largest = std::max(largest, largest_difference(values_[result], kept[result]));
    values_ = kept;
  }
  return kFurther * largest;
}

void Shadow::check_ports() {
  for (std::size_t o = 0; o < session_.output_count(); ++o) {
    const graph::ValueId id = planned_.graph.outputs[o].value;
    const auto difference =
        compare(copy_of(session_.output(o)), values_[static_cast<std::size_t>(id)], ops::Accuracy{});
    if (!difference.empty()) report(fmt::format("output {} was overwritten: {}", o, difference));
  }
}

void Shadow::evaluate(const graph::Node& node) {
  static constexpr TensorDesc kAbsent{};
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : node.inputs)
    inputs.push_back(id == kNone ? Tensor{nullptr, &kAbsent} : tensor(values_[static_cast<std::size_t>(id)]));
  std::vector<TensorDesc> descs(static_cast<std::size_t>(node.op->outputs));
  if (!ops::infer(*node.op, node.params.data(), inputs, descs).ok()) {
    report(fmt::format("{}: infer refuses the operands", node.op->name));
    return;
  }
  const auto results = graph::evaluate(*node.op, node.params, inputs, descs);
  faulted_ = !results;
  if (!results) return;
  for (std::size_t o = 0; o < node.outputs.size(); ++o)
    if (node.outputs[o] != kNone)
      values_[static_cast<std::size_t>(node.outputs[o])] = tensor_of(descs[o], (*results)[o].bytes);
}

}  // namespace bantam::testing
