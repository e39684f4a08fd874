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

/// The f32 constants that the operator's narrowing kernels narrow.
std::vector<std::span<const float>> weights_of(const graph::Graph& graph, const graph::Node& node) {
  std::vector<std::span<const float>> weights;
  for (const ops::KernelVariant& variant : node.op->variants) {
    const ops::Narrowing* narrowing = ops::find_narrowing(*node.op, variant);
    if (narrowing == nullptr) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!narrowing->narrows(i) || !graph.is_constant(node.inputs[i])) continue;
      const graph::Value& value = graph.value(node.inputs[i]);
      if (value.desc.type != ElementType::kF32) continue;
      weights.emplace_back(reinterpret_cast<const float*>(value.constant->bytes.data()),
                           static_cast<std::size_t>(value.desc.elements()));
    }
    break;  // all of an operator narrow the same operands
  }
  return weights;
}

bool keeps_half(float x) { return std::isfinite(x) && ops::to_f32(ops::to_half(x)) == x; }
bool keeps_bfloat16(float x) { return std::isfinite(x) && ops::to_f32(ops::to_bfloat16(x)) == x; }

bool all_of(const std::vector<std::span<const float>>& weights, bool (*holds)(float)) {
  return std::ranges::all_of(weights, [&](std::span<const float> w) { return std::ranges::all_of(w, holds); });
}

/// 16 bits where the weights are many and lose nothing.
ElementType lossless_type(const std::vector<std::span<const float>>& weights) {
  std::size_t elements = 0;
  for (const std::span<const float> w : weights) elements += w.size();
  if (elements < kLeastElements) return ElementType::kNone;
  if (all_of(weights, keeps_half)) return ElementType::kF16;
  return all_of(weights, keeps_bfloat16) ? ElementType::kBF16 : ElementType::kNone;
}

bool can_hold(ElementType type, const std::vector<std::span<const float>>& weights) {
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
    std::vector<std::byte> packed(static_cast<std::size_t>(ops::packed_bytes(variant, call, operand)));
    variant.pack(call, operand, packed.data());
    std::vector<float> restored(static_cast<std::size_t>(desc.elements()));
    narrowing.restore(call, operand, narrowing.type, packed.data(), restored.data());
    effect.saved_bytes += desc.bytes() - static_cast<std::int64_t>(packed.size());
    const auto* weights = static_cast<const float*>(call.inputs[i].data);
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
