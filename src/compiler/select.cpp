#include "compiler/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/backends.h"
#include "compiler/branches.h"
#include "compiler/cost_model.h"

namespace bantam::compiler {
namespace {

/// Does the variant support the node at every size, with weights laid out alike?
bool serves(const ops::KernelVariant& variant, std::span<const graph::Graph* const> sizes, std::size_t n) {
  std::vector<std::int64_t> packed;
  for (const graph::Graph* graph : sizes) {
    const graph::Node& node = graph->nodes[n];
    if (sizes.size() > 1 && is_idle(*graph, node)) continue;
    const graph::OperandTables tables = graph::operand_tables(*graph, node);
    const ops::OpCall call = tables.call(node);
    if (!ops::supports(variant, call)) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::int64_t bytes =
          graph->is_constant(node.inputs[i]) ? ops::packed_bytes(variant, call, static_cast<int>(i)) : 0;
      if (packed.size() <= i) packed.push_back(bytes);
      if (packed[i] != bytes) return false;
    }
  }
  return true;
}

/// Does the backend have this kernel on the target?
bool has(const BackendDef& backend, const Target& target, const ops::KernelVariant& variant) {
  return backend.owns(variant) && target.has_kernel(variant.name);
}

/// The node's application at each size at which it computes anything.
class SizedCalls {
 public:
  SizedCalls(std::span<const graph::Graph* const> sizes, std::size_t n) {
    for (const graph::Graph* graph : sizes) {
      if (sizes.size() > 1 && is_idle(*graph, graph->nodes[n])) continue;
      tables_.push_back(graph::operand_tables(*graph, graph->nodes[n]));
      calls_.push_back(tables_.back().call(graph->nodes[n]));
    }
  }

  std::span<const ops::OpCall> calls() const { return calls_; }

 private:
  std::vector<graph::OperandTables> tables_;
  std::vector<ops::OpCall> calls_;  ///< of what the tables hold, whose memory does not move with them
};

Setting setting_of(std::span<const graph::Graph* const> sizes, const KernelPolicy& policy) {
  Setting setting{machine_of(policy.target, graph::constant_bytes(*sizes.front())), 0};
  for (std::size_t n = 0; n < sizes.front()->nodes.size(); ++n) {
    const SizedCalls sized(sizes, n);
    for (const ops::OpCall& call : sized.calls()) setting.room_bytes = std::max(setting.room_bytes, value_bytes(call));
  }
  return setting;
}

/// What the node's weights should be narrowed to, and what will do where no kernel does that.
std::array<ops::NarrowForm, 2> forms_in_turn(const KernelPolicy& policy, const graph::Graph& graph, std::size_t n) {
  ops::NarrowForm wished = policy.stores.of(graph, graph.nodes[n]);
  wished.half_arithmetic = wished.half_arithmetic && machine_of(policy.target).f16_macs > 0;
  return {wished, {}};
}

/// Does the kernel store weights as wished? It need not use 16-bit arithmetic, but must not where nobody wishes it.
bool narrows_as(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::NarrowForm& wished) {
  const ops::NarrowForm form = ops::narrow_form(op, variant);
  return form.type == wished.type && form.half_arithmetic <= wished.half_arithmetic;
}

/// The backend's kernel to take, of those that store weights as `narrow`.
const ops::KernelVariant* best_serving(const BackendDef& backend, const Target& target, const Setting& setting,
                                       std::span<const graph::Graph* const> sizes, std::size_t n,
                                       const ops::NarrowForm& narrow) {
  const ops::OpDef& op = *sizes.front()->nodes[n].op;
  std::vector<const ops::KernelVariant*> serving;
  for (const ops::KernelVariant& variant : op.variants)
    if (has(backend, target, variant) && narrows_as(op, variant, narrow) && serves(variant, sizes, n))
      serving.push_back(&variant);
  if (serving.size() < 2) return serving.empty() ? nullptr : serving.front();
  return cheapest(op, serving, SizedCalls(sizes, n).calls(), setting);
}

/// The kernel of any backend that serves with the least scratch and stores weights as `narrow`, the first of those
/// listed.
const ops::KernelVariant* sparing_variant(const KernelPolicy& policy, std::span<const graph::Graph* const> sizes,
                                          std::size_t n, const ops::NarrowForm& narrow) {
  const ops::OpDef& op = *sizes.front()->nodes[n].op;
  const ops::KernelVariant* best = nullptr;
  std::int64_t least = 0;
  for (const ops::KernelVariant& variant : op.variants) {
    if (!policy.target.has_kernel(variant.name) || !narrows_as(op, variant, narrow) || !serves(variant, sizes, n))
      continue;
    std::int64_t scratch = 0;
    for (const graph::Graph* graph : sizes) {
      if (sizes.size() > 1 && is_idle(*graph, graph->nodes[n])) continue;
      const graph::OperandTables tables = graph::operand_tables(*graph, graph->nodes[n]);
      scratch = std::max(scratch, ops::footprint(variant, tables.call(graph->nodes[n]), policy.threads).scratch_bytes);
    }
    if (best != nullptr && scratch >= least) continue;
    best = &variant;
    least = scratch;
  }
  return best;
}

const ops::KernelVariant* sparing_variant(const KernelPolicy& policy, std::span<const graph::Graph* const> sizes,
                                          std::size_t n) {
  for (const ops::NarrowForm& form : forms_in_turn(policy, *sizes.front(), n))
    if (const auto* variant = sparing_variant(policy, sizes, n, form)) return variant;
  return nullptr;
}

std::string operand_types(const ops::OpCall& call) {
  std::string types;
  for (const Tensor& input : call.inputs)
    if (input.desc->present()) types += fmt::format("{}{}", types.empty() ? "" : ", ", graph::format_desc(*input.desc));
  return types;
}

/// "no fast kernel for gather", or why none of those that there are fits.
std::string why_not(const ops::OpDef& op, const BackendDef& wanted, const Target& target, const ops::OpCall& call) {
  std::string names;
  for (const ops::KernelVariant& variant : op.variants)
    if (has(wanted, target, variant)) names += (names.empty() ? "" : ", ") + std::string(variant.name);
  if (names.empty()) return fmt::format("there is no {} kernel for {}", wanted.name, op.name);
  return fmt::format("no {} kernel for {} ({}) supports {}", wanted.name, op.name, names, operand_types(call));
}

Result<Selection> select(std::span<const graph::Graph* const> sizes, std::size_t n, Backend backend,
                         const KernelPolicy& policy, const Setting& setting) {
  const graph::Node& node = sizes.front()->nodes[n];
  const Target& target = policy.target;
  if (node.op->variants.empty()) return Selection{};
  const BackendDef& wanted = backend_def(backend);
  for (const ops::NarrowForm& form : forms_in_turn(policy, *sizes.front(), n))
    if (const auto* variant = best_serving(wanted, target, setting, sizes, n, form)) return Selection{variant, {}};
  const graph::OperandTables tables = graph::operand_tables(*sizes.front(), node);
  for (const BackendDef& other : all_backends())
    if (const auto* variant = best_serving(other, target, setting, sizes, n, {}))
      return Selection{variant,
                       fmt::format("{}: {}", why_not(*node.op, wanted, target, tables.call(node)), other.name)};
  return fail(StatusCode::kUnsupported,
              fmt::format("node '{}' ({}): no kernel of '{}' supports its operand types", node.name, node.origin,
                          node.op->name),
              "export the model in float32 or int8");
}

/// The kernel that the longest rule that fits the node gives it; none where it does not serve.
const ops::KernelVariant* ruled_variant(const KernelPolicy& policy, std::span<const graph::Graph* const> sizes,
                                        std::size_t n) {
  const graph::Node& node = sizes.front()->nodes[n];
  const ops::KernelVariant* chosen = nullptr;
  std::size_t length = 0;
  for (const KernelRule& rule : policy.kernels) {
    if (rule.pattern.size() < length || !fits_name(rule.pattern, node.name)) continue;
    const ops::KernelVariant* variant = ops::find_variant(*node.op, rule.kernel);
    if (variant == nullptr || !policy.target.has_kernel(variant->name) || !serves(*variant, sizes, n)) continue;
    chosen = variant;
    length = rule.pattern.size();
  }
  return chosen;
}

bool fits_any(const graph::Graph& graph, const KernelRule& rule) {
  return std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
    const auto inside = [&](const graph::Graph& body) { return fits_any(body, rule); };
    return (fits_name(rule.pattern, node.name) && ops::find_variant(*node.op, rule.kernel) != nullptr) ||
           std::ranges::any_of(node.bodies, inside);
  });
}

/// The backend of every node: the model's, or that of the longest pattern that fits.
class BackendChooser {
 public:
  BackendChooser(const graph::Graph& graph, const KernelPolicy& policy)
      : graph_(graph),
        marks_(policy.marks.empty() ? output_marks(graph) : policy.marks),
        chosen_(graph.nodes.size(), policy.backend),
        lengths_(chosen_.size(), 0) {}

  Result<void> apply(const BackendRule& rule) {
    const auto output = std::ranges::find(graph_.outputs, rule.pattern, &graph::Port::name);
    const bool is_output = output != graph_.outputs.end();
    const std::uint64_t branch =
        is_output ? OutputSet().add(static_cast<std::size_t>(output - graph_.outputs.begin())).marks() : 0;
    bool used = false;
    for (std::size_t n = 0; n < chosen_.size(); ++n) {
      const bool concerned = is_output ? marks_[n] == branch : fits_name(rule.pattern, graph_.nodes[n].name);
      used = used || concerned;
      if (!concerned || rule.pattern.size() < lengths_[n]) continue;
      chosen_[n] = rule.backend;
      lengths_[n] = rule.pattern.size();
    }
    if (used) return {};
    return fail(StatusCode::kInvalidArgument,
                is_output ? fmt::format("backends: nothing is needed by output '{}' alone", rule.pattern)
                          : fmt::format("backends: '{}' is no output and fits no node", rule.pattern),
                "`bantam plan MODEL --layers` lists the nodes that are left after fusing");
  }

  Backend of(std::size_t node) const { return chosen_[node]; }

 private:
  const graph::Graph& graph_;
  std::vector<std::uint64_t> marks_;
  std::vector<Backend> chosen_;
  std::vector<std::size_t> lengths_;  ///< of the pattern that chose
};

}  // namespace

Result<std::vector<Selection>> select_kernels(std::span<const graph::Graph* const> sizes, const KernelPolicy& policy) {
  const graph::Graph& graph = *sizes.front();
  BackendChooser chooser(graph, policy);
  for (const BackendRule& rule : policy.rules)
    if (auto applied = chooser.apply(rule); !applied) return fail(std::move(applied.error()));
  const Setting setting = setting_of(sizes, policy);
  std::vector<Selection> result;
  result.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (const auto* kernel = graph.nodes[n].kernel; kernel != nullptr && serves(*kernel, sizes, n)) {
      // Why it is not of the wanted backend, if that is what would be said of the choice.
      auto usual = select(sizes, n, chooser.of(n), policy, setting);
      result.push_back(usual && usual->variant == kernel ? std::move(*usual) : Selection{kernel, {}});
      continue;
    }
    if (policy.sparing.contains(graph.nodes[n].name)) {
      if (const auto* variant = sparing_variant(policy, sizes, n)) {
        result.push_back({variant, {}});
        continue;
      }
    }
    if (const auto* variant = ruled_variant(policy, sizes, n)) {
      result.push_back({variant, {}});
      continue;
    }
    auto selection = select(sizes, n, chooser.of(n), policy, setting);
    if (!selection) return fail(std::move(selection.error()));
    result.push_back(std::move(*selection));
  }
  return result;
}

std::vector<const ops::KernelVariant*> alternatives(const graph::Graph& graph, const graph::Node& node,
                                                    const ops::KernelVariant& kernel, const Target& target) {
  std::vector<const ops::KernelVariant*> found;
  const graph::OperandTables tables = graph::operand_tables(graph, node);
  for (const ops::KernelVariant& variant : node.op->variants)
    if (&variant != &kernel && has(backend_def(Backend::kFast), target, variant) &&
        ops::narrow_form(*node.op, variant) == ops::narrow_form(*node.op, kernel) &&
        ops::supports(variant, tables.call(node)))
      found.push_back(&variant);
  return found;
}

Result<void> check_kernel_rules(const graph::Graph& graph, const std::vector<KernelRule>& rules) {
  for (const KernelRule& rule : rules)
    if (!fits_any(graph, rule))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("kernels: no node that '{}' fits has a kernel '{}'", rule.pattern, rule.kernel),
                  "`bantam plan MODEL --layers` lists nodes, `bantam bench --kernels` the kernels of their operators");
  return {};
}

std::vector<const ops::KernelVariant*> variants_of(const std::vector<Selection>& selected) {
  std::vector<const ops::KernelVariant*> variants;
  variants.reserve(selected.size());
  for (const Selection& selection : selected) variants.push_back(selection.variant);
  return variants;
}

bool is_idle(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::all_of(
      node.outputs, [&](graph::ValueId id) { return id == graph::kNone || graph.value(id).desc.elements() == 0; });
}

bool supported(const std::vector<const ops::KernelVariant*>& variants, const graph::Graph& graph) {
  for (std::size_t n = 0; n < variants.size(); ++n) {
    if (is_idle(graph, graph.nodes[n])) continue;
    const graph::OperandTables tables = graph::operand_tables(graph, graph.nodes[n]);
    if (!ops::supports(*variants[n], tables.call(graph.nodes[n]))) return false;
  }
  return true;
}

}  // namespace bantam::compiler
