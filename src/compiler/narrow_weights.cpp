#include "compiler/narrow_weights.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "ops/common/half.h"

namespace bantam::compiler {
namespace {

/// Fewer weights than that are left as they are unless a rule asks: there is nothing to save.
constexpr std::int64_t kLeastElements = 1024;

constexpr ElementType kStoreTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBF16, ElementType::kI8,
                                       ElementType::kI4};

constexpr float kLargestHalf = 65504.0F;

bool has_variants_for(const graph::Node& node) {
  return std::ranges::any_of(node.op->variants, [&](const ops::KernelVariant& variant) {
    return ops::find_narrowing(*node.op, variant) != nullptr;
  });
}

/// f32 numbers where the model file has them, aligned or not.
class Floats {
 public:
  explicit Floats(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size() / sizeof(float); }
  float operator[](std::size_t i) const {
    float x = 0;
    std::memcpy(&x, bytes_.data() + i * sizeof x, sizeof x);
    return x;
  }

 private:
  std::span<const std::byte> bytes_;
};

/// The f32 constants that the operator's narrowing kernels narrow.
std::vector<Floats> weights_of(const graph::Graph& graph, const graph::Node& node) {
  std::vector<Floats> weights;
  for (const ops::KernelVariant& variant : node.op->variants) {
    const ops::Narrowing* narrowing = ops::find_narrowing(*node.op, variant);
    if (narrowing == nullptr) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!narrowing->narrows(i) || !graph.is_constant(node.inputs[i])) continue;
      const graph::Value& value = graph.value(node.inputs[i]);
      if (value.desc.type != ElementType::kF32) continue;
      weights.emplace_back(
          std::span<const std::byte>(value.constant->bytes).first(static_cast<std::size_t>(value.desc.bytes())));
    }
    break;  // all of an operator narrow the same operands
  }
  return weights;
}

bool keeps_half(float x) { return std::isfinite(x) && ops::to_f32(ops::to_half(x)) == x; }
bool keeps_bfloat16(float x) { return std::isfinite(x) && ops::to_f32(ops::to_bfloat16(x)) == x; }

bool all_of(const std::vector<Floats>& weights, bool (*holds)(float)) {
  for (const Floats& w : weights)
    for (std::size_t i = 0; i < w.size(); ++i)
      if (!holds(w[i])) return false;
  return true;
}

/// 16 bits where the weights are many and lose nothing.
ElementType lossless_type(const std::vector<Floats>& weights) {
  std::size_t elements = 0;
  for (const Floats& w : weights) elements += w.size();
  if (elements < kLeastElements) return ElementType::kNone;
  if (all_of(weights, keeps_half)) return ElementType::kF16;
  return all_of(weights, keeps_bfloat16) ? ElementType::kBF16 : ElementType::kNone;
}

bool can_hold(ElementType type, const std::vector<Floats>& weights) {
  if (type == ElementType::kF16) return all_of(weights, [](float x) { return std::fabs(x) <= kLargestHalf; });
  return all_of(weights, [](float x) { return std::isfinite(x); });
}

bool fits_any(const graph::Graph& graph, const StoreRule& rule) {
  return std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
    const auto inside = [&](const graph::Graph& body) { return fits_any(body, rule); };
    return (fits_name(rule.pattern, node.name) && !weights_of(graph, node).empty()) ||
           std::ranges::any_of(node.bodies, inside);
  });
}

}  // namespace

bool fits_name(const std::string& pattern, const std::string& name) {
  return pattern == name || fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::string store_type_names() {
  std::string names;
  for (const ElementType type : kStoreTypes)
    names += (names.empty() ? "" : ", ") + std::string(element_type_name(type));
  return names;
}

Result<ElementType> store_type(const std::string& name) {
  const ElementType type = element_type_from_name(name.data(), name.size());
  if (std::ranges::find(kStoreTypes, type) != std::end(kStoreTypes)) return type;
  return fail(StatusCode::kInvalidArgument, fmt::format("weights are not stored as '{}'", name),
              "use one of: " + store_type_names());
}

ElementType narrow_type(const graph::Graph& graph, const graph::Node& node, const std::vector<StoreRule>& rules) {
  if (node.op == nullptr || !has_variants_for(node)) return ElementType::kNone;
  const auto weights = weights_of(graph, node);
  if (weights.empty()) return ElementType::kNone;
  const StoreRule* chosen = nullptr;
  for (const StoreRule& rule : rules)
    if (fits_name(rule.pattern, node.name) && (chosen == nullptr || rule.pattern.size() >= chosen->pattern.size()))
      chosen = &rule;
  if (chosen == nullptr) return lossless_type(weights);
  const bool narrows = chosen->type != ElementType::kF32 && can_hold(chosen->type, weights);
  return narrows ? chosen->type : ElementType::kNone;
}

Result<void> check_store_rules(const graph::Graph& graph, const std::vector<StoreRule>& rules) {
  for (const StoreRule& rule : rules)
    if (!fits_any(graph, rule))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("store: '{}' fits no node with f32 weights that a kernel narrows", rule.pattern),
                  "`bantam plan MODEL --layers` lists the nodes; conv2d, matmul, lstm and gru have such weights");
  return {};
}

NarrowingEffect narrowing_effect(const ops::OpCall& call, const ops::KernelVariant& variant,
                                 const ops::Narrowing& narrowing) {
  NarrowingEffect effect;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!narrowing.narrows(i) || call.inputs[i].data == nullptr) continue;
    const TensorDesc& desc = *call.inputs[i].desc;
    const auto operand = static_cast<int>(i);
    // A copy, since the model file may have them at any address.
    std::vector<float> weights(static_cast<std::size_t>(desc.elements()));
    std::memcpy(weights.data(), call.inputs[i].data, static_cast<std::size_t>(desc.bytes()));
    std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.end());
    inputs[i].data = weights.data();
    const ops::OpCall aligned{call.params, inputs, call.outputs};
    std::vector<std::byte> packed(static_cast<std::size_t>(ops::packed_bytes(variant, aligned, operand)));
    variant.pack(aligned, operand, packed.data());
    std::vector<float> restored(weights.size());
    narrowing.restore(aligned, operand, narrowing.type, packed.data(), restored.data());
    effect.saved_bytes += desc.bytes() - static_cast<std::int64_t>(packed.size());
    float largest = 0.0F;
    float change = 0.0F;
    for (std::size_t e = 0; e < restored.size(); ++e) {
      largest = std::max(largest, std::fabs(weights[e]));
      change = std::max(change, std::fabs(restored[e] - weights[e]));
    }
    if (largest > 0.0F) effect.error = std::max(effect.error, change / largest);
  }
  return effect;
}

}  // namespace bantam::compiler
