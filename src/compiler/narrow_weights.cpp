#include "compiler/narrow_weights.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "ops/common/half.h"
#include "ops/nn/gemm/gemm_f16.h"

namespace bantam::compiler {
namespace {

/// Fewer weights than that are left as they are unless a rule asks: there is nothing to save.
constexpr std::int64_t kLeastElements = 1024;

struct StoreType {
  std::string_view name;
  ElementType type = ElementType::kF32;
  bool half_arithmetic = false;
};

constexpr StoreType kStoreTypes[] = {{"f32", ElementType::kF32},   {"f16", ElementType::kF16},
                                     {"bf16", ElementType::kBF16}, {"i8", ElementType::kI8},
                                     {"i4", ElementType::kI4},     {"f16-arithmetic", ElementType::kF16, true}};

constexpr float kLargestHalf = 65504.0F;

/// The f32 constants that the operator's narrowing kernels narrow.
std::vector<const graph::Constant*> weights_of(const graph::Graph& graph, const graph::Node& node) {
  std::vector<const graph::Constant*> weights;
  for (const ops::KernelVariant& variant : node.op->variants) {
    const ops::Narrowing* narrowing = ops::find_narrowing(*node.op, variant);
    if (narrowing == nullptr) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!narrowing->narrows(i) || !graph.is_constant(node.inputs[i])) continue;
      const graph::Value& value = graph.value(node.inputs[i]);
      if (value.desc.type == ElementType::kF32) weights.push_back(&*value.constant);
    }
    break;  // all of an operator narrow the same operands
  }
  return weights;
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
  for (const StoreType& type : kStoreTypes) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

Result<StoreRule> store_rule(const std::string& pattern, const std::string& name) {
  const auto* type = std::ranges::find(kStoreTypes, name, &StoreType::name);
  if (type != std::end(kStoreTypes)) return StoreRule{pattern, type->type, type->half_arithmetic};
  return fail(StatusCode::kInvalidArgument, fmt::format("weights are not stored as '{}'", name),
              "use one of: " + store_type_names());
}

/// Answers for constants, each looked through once per trait.
class StoreTypes::Findings {
 public:
  /// What all numbers of a constant may have in common.
  enum class Trait { kHalf, kBFloat16, kWithinHalf, kWithinHalfProducts, kFinite };

  bool all_have(Trait trait, const std::vector<const graph::Constant*>& weights) {
    return std::ranges::all_of(weights, [&](const graph::Constant* constant) { return have(trait, *constant); });
  }

  /// 16 bits where the weights are many and lose nothing.
  ElementType lossless_type(const std::vector<const graph::Constant*>& weights) {
    std::size_t elements = 0;
    for (const graph::Constant* constant : weights) elements += constant->bytes.size() / sizeof(float);
    if (elements < kLeastElements) return ElementType::kNone;
    if (all_have(Trait::kHalf, weights)) return ElementType::kF16;
    return all_have(Trait::kBFloat16, weights) ? ElementType::kBF16 : ElementType::kNone;
  }

 private:
  using Key = std::tuple<const std::byte*, std::size_t, Trait>;
  struct Finding {
    std::weak_ptr<const void> owner;  ///< of the numbers: other numbers may come to lie where its own were
    bool holds = false;
  };

  static bool has_trait(Trait trait, float x) {
    switch (trait) {
      case Trait::kHalf: return std::isfinite(x) && ops::to_f32(ops::to_half(x)) == x;
      case Trait::kBFloat16: return std::isfinite(x) && ops::to_f32(ops::to_bfloat16(x)) == x;
      case Trait::kWithinHalf: return std::fabs(x) <= kLargestHalf;
      case Trait::kWithinHalfProducts: return std::fabs(x) <= ops::gemm::kMostHalfWeight;
      case Trait::kFinite: return std::isfinite(x);
    }
    return false;
  }

  /// Of f32 numbers where the model file has them, aligned or not.
  static bool all_numbers_have(Trait trait, std::span<const std::byte> numbers) {
    for (; numbers.size() >= sizeof(float); numbers = numbers.subspan(sizeof(float))) {
      float x = 0;
      std::memcpy(&x, numbers.data(), sizeof x);
      if (!has_trait(trait, x)) return false;
    }
    return true;
  }

  bool have(Trait trait, const graph::Constant& constant) {
    Finding& finding = findings_[{constant.bytes.data(), constant.bytes.size(), trait}];
    const bool known =
        constant.owner && !finding.owner.owner_before(constant.owner) && !constant.owner.owner_before(finding.owner);
    if (!known) finding = {constant.owner, all_numbers_have(trait, constant.bytes)};
    return finding.holds;
  }

  std::map<Key, Finding> findings_;
};

StoreTypes::StoreTypes() : StoreTypes(std::vector<StoreRule>()) {}

StoreTypes::StoreTypes(std::initializer_list<StoreRule> rules) : StoreTypes(std::vector(rules)) {}

StoreTypes::StoreTypes(std::vector<StoreRule> rules)
    : rules_(std::move(rules)), findings_(std::make_shared<Findings>()) {}

ops::NarrowForm StoreTypes::of(const graph::Graph& graph, const graph::Node& node) const {
  if (node.op == nullptr) return {};
  const auto weights = weights_of(graph, node);
  if (weights.empty()) return {};
  const StoreRule* chosen = nullptr;
  for (const StoreRule& rule : rules_)
    if (fits_name(rule.pattern, node.name) && (chosen == nullptr || rule.pattern.size() >= chosen->pattern.size()))
      chosen = &rule;
  if (chosen == nullptr) return {findings_->lossless_type(weights)};
  if (chosen->type == ElementType::kF32) return {};
  using Trait = Findings::Trait;
  const Trait needed = chosen->type == ElementType::kF16 ? Trait::kWithinHalf : Trait::kFinite;
  if (!findings_->all_have(needed, weights)) return {};
  return {chosen->type, chosen->half_arithmetic && findings_->all_have(Trait::kWithinHalfProducts, weights)};
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
    narrowing.restore(aligned, operand, narrowing.form.type, packed.data(), restored.data());
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
