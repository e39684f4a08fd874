#include "graph/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shape.h"

namespace bantam::graph {
namespace {

using Kind = ops::ParamField::Kind;

constexpr LoopParams kDefaultLoop{};
constexpr ops::ParamField kLoopFields[] = {{"limit", Kind::kI32, offsetof(LoopParams, limit)}};

tl::unexpected<Error> broken(std::string message) { return fail(StatusCode::kInvalidModel, std::move(message)); }

bool is_flag(const TensorDesc& desc) { return desc.type == ElementType::kBool && desc.elements() == 1; }

Result<void> check_match(const TensorDesc& found, const TensorDesc& expected, const std::string& what) {
  if (same_shape_and_type(found, expected)) return {};
  return broken(fmt::format("{} is {}, expected {}", what, format_desc(found), format_desc(expected)));
}

class ControlChecker {
 public:
  ControlChecker(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Result<void> run(int depth) {
    if (depth >= kMaxBodyDepth) return broken(fmt::format("more than {} bodies inside one another", kMaxBodyDepth));
    const std::size_t bodies = node_.is(kIf) ? 2 : 1;
    if (node_.bodies.size() != bodies)
      return broken(fmt::format("it has {} bodies, {} needed", node_.bodies.size(), bodies));
    if (node_.inputs.size() < leading_operands(node_))
      return broken(fmt::format("it has {} operands, {} needed", node_.inputs.size(), leading_operands(node_)));
    if (auto sound = check_leading(); !sound) return sound;
    for (const Graph& body : node_.bodies)
      if (auto sound = check_body(body, depth); !sound) return sound;
    return {};
  }

 private:
  const TensorDesc& operand(std::size_t i) const { return graph_.value(node_.inputs[i]).desc; }

  Result<void> check_flag(std::size_t i) const {
    if (node_.inputs[i] == kNone || is_flag(operand(i))) return {};
    return broken(fmt::format("the condition is {}, expected one element of bool", format_desc(operand(i))));
  }

  Result<void> check_leading() const {
    for (std::size_t i = node_.is(kIf) ? 0 : leading_operands(node_); i < node_.inputs.size(); ++i)
      if (node_.inputs[i] == kNone) return broken(fmt::format("operand {} is absent", i));
    if (node_.is(kIf)) return check_flag(0);
    if (node_.as<LoopParams>().limit < 1) return broken("a loop needs a limit of at least 1");
    if (node_.inputs[0] != kNone && (operand(0).type != ElementType::kI64 || operand(0).elements() != 1))
      return broken(fmt::format("the trip count is {}, expected one element of i64", format_desc(operand(0))));
    return check_flag(1);
  }

  Result<void> check_body(const Graph& body, int depth) const {
    if (!body.states.empty()) return broken("a body has states");
    if (!body.measured.empty()) return broken("a body has sizes that it computes from data, which is not supported");
    const std::size_t leading = leading_inputs(node_);
    const std::size_t captures = node_.inputs.size() - leading_operands(node_);
    if (body.inputs.size() != leading + captures)
      return broken(fmt::format("a body has {} inputs, {} needed", body.inputs.size(), leading + captures));
    if (auto sound = verify_body(body, depth + 1); !sound) return fail(std::move(sound.error()).in("body"));
    for (std::size_t i = 0; i < captures; ++i)
      if (auto same = check_match(body.value(body.inputs[leading + i].value).desc, operand(leading_operands(node_) + i),
                                  fmt::format("input {} of a body", leading + i));
          !same)
        return same;
    const std::size_t first = node_.is(kIf) ? 0 : 1;
    if (body.outputs.size() != node_.outputs.size() + first)
      return broken(fmt::format("a body has {} outputs, {} needed", body.outputs.size(), node_.outputs.size() + first));
    for (std::size_t o = 0; o < node_.outputs.size(); ++o)
      if (auto same = check_match(body.value(body.outputs[o + first].value).desc, control_result(node_, o),
                                  fmt::format("output {} of a body", o + first));
          !same)
        return same;
    return node_.is(kIf) ? Result<void>() : check_loop_body(body);
  }

  Result<void> check_loop_body(const Graph& body) const {
    const TensorDesc& iteration = body.value(body.inputs[0].value).desc;
    if (iteration.type != ElementType::kI64 || iteration.rank != 0)
      return broken(fmt::format("the iteration is {}, expected i64[]", format_desc(iteration)));
    if (!is_flag(body.value(body.outputs[0].value).desc))
      return broken(fmt::format("the body's condition is {}, expected one element of bool",
                                format_desc(body.value(body.outputs[0].value).desc)));
    for (std::size_t o = 0; o < node_.outputs.size(); ++o) {
      if (node_.inputs[2 + o] == kNone) continue;
      auto same = check_match(operand(2 + o), control_result(node_, o), fmt::format("initial value {} of a loop", o));
      if (!same) return same;
    }
    return {};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

const ops::OpDef kIf{.name = "if", .min_inputs = 1, .max_inputs = ops::kMaxInputs};
const ops::OpDef kLoop{.name = "loop",
                       .params_bytes = sizeof(LoopParams),
                       .default_params = &kDefaultLoop,
                       .fields = kLoopFields,
                       .min_inputs = 2,
                       .max_inputs = ops::kMaxInputs};

const ops::OpDef* find_control_op(std::string_view name) noexcept {
  if (name == kIf.name) return &kIf;
  return name == kLoop.name ? &kLoop : nullptr;
}

std::size_t leading_operands(const Node& node) { return node.is(kIf) ? 1 : 2 + node.outputs.size(); }

std::size_t leading_inputs(const Node& node) { return node.is(kIf) ? 0 : 1 + node.outputs.size(); }

const TensorDesc& control_result(const Node& node, std::size_t i) {
  const Graph& body = node.bodies.front();
  return node.is(kIf) ? body.value(body.outputs[i].value).desc : body.value(body.inputs[1 + i].value).desc;
}

Result<void> check_control(const Graph& graph, const Node& node, int depth) {
  return ControlChecker(graph, node).run(depth);
}

bool has_control(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return !node.bodies.empty(); });
}

}  // namespace bantam::graph
