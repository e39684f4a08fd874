#include "documentation/operator_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string_view>
#include <vector>

#include "import/onnx/lowering.h"
#include "import/tflite/operators.h"
#include "ops/narrowing.h"
#include "ops/testing/sampling.h"
#include "support/conformance_case.h"

namespace bantam::testing {
namespace {

using ops::testing::Random;
using ops::testing::Sampling;

constexpr const char* kHead = R"(# Operators

Made from the tables of operators and importers by `documentation_test --update`; a test fails when it is not what they
say. Do not edit it.

)";

/// What probing finds about one core operator.
struct Probe {
  std::vector<ElementType> types;     ///< that its first operand may have
  std::vector<ElementType> simd;      ///< of these, with a fast kernel on x86 and AArch64
  std::vector<ElementType> portable;  ///< of these, with a kernel made for small cores
};

bool any_variant(const ops::OpDef& op, const ops::testing::OpCase& op_case, std::string_view suffix) {
  return std::ranges::any_of(op.variants, [&](const ops::KernelVariant& variant) {
    return variant.name.ends_with(suffix) && variant_supports(op_case, variant);
  });
}

/// Of the first operand, or of the result where there is none.
ElementType first_type(const ops::testing::OpCase& op_case) {
  if (!op_case.inputs.empty()) return op_case.inputs.front().tensor.desc().type;
  std::vector<TensorDesc> outputs;
  (void)infer_case(op_case, &outputs);
  return outputs.front().type;
}

Probe probe(const ops::OpDef& op) {
  Probe found;
  for (int t = 1; t <= static_cast<int>(ElementType::kBool); ++t) {
    const auto type = static_cast<ElementType>(t);
    bool accepted = false;
    bool simd = false;
    bool portable = false;
    for (std::uint64_t seed = 1; seed <= 24 && (accepted || seed <= 5); ++seed) {
      Random random(seed);
      Sampling sampling(random);
      sampling.force_type(type);
      if (!sample(op, sampling, 40)) continue;
      const ops::testing::OpCase op_case = to_case(op, sampling);
      if (first_type(op_case) != type) continue;
      accepted = true;
      simd = simd || any_variant(op, op_case, "__simd");
      portable = portable || any_variant(op, op_case, "__portable");
    }
    if (accepted) found.types.push_back(type);
    if (simd) found.simd.push_back(type);
    if (portable) found.portable.push_back(type);
  }
  return found;
}

std::string names_of(const std::vector<ElementType>& types) {
  std::vector<std::string_view> names;
  for (const ElementType type : types) names.emplace_back(element_type_name(type));
  return fmt::format("{}", fmt::join(names, " "));
}

std::string core_operators() {
  std::string text = R"(## Core operators

What models are lowered to. *Types* are those of the first operand. *Fast* kernels use SIMD on x86-64 and AArch64; those
for *small* cores are made for Cortex-M. Everything else runs on the plain kernel, everywhere. *Accuracy*: an *exact* result
is defined to the bit; a *consistent* one is made of floats by one order of operations; both are the same bits from every
kernel, on every target, with any number of threads. With a *bound*, floats of a fast kernel are within that part of the
result's largest magnitude of the plain kernel's, integers are exact, and the number of threads changes nothing. Kernels in
16-bit floating-point arithmetic, which only `--store f16-arithmetic` or their names choose, have a bound of 5e-02.

| operator | types | fast | small | accuracy |
| --- | --- | --- | --- | --- |
)";
  const auto accuracies = stated_accuracies();
  for (const ops::OpDef* op : ops::all_ops()) {
    const auto accuracy = accuracies.find(std::string(op->name));
    const Probe found = probe(*op);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", op->name, names_of(found.types), names_of(found.simd),
                        names_of(found.portable), accuracy == accuracies.end() ? "" : accuracy->second);
  }
  return text;
}

using Lowered = std::map<std::string, std::set<std::string_view>>;

/// Which core operators the nodes of ONNX's tests became, by source operator.
Lowered observe_onnx() {
  Lowered lowered;
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(kConformanceData) / suite)) {
      const auto graph = import_conformance_case(entry.path());
      if (!graph) continue;
      for (const graph::Node& node : graph->nodes) lowered[node.origin].insert(node.op->name);
    }
  return lowered;
}

std::string onnx_operators() {
  std::string text = R"(
## ONNX

*Sets* are the operator sets in which the operator may appear. *Core operators* are what the standard's own tests of the
operator were lowered to: a node becomes one or several of them, or none where it is folded.

| operator | sets | core operators |
| --- | --- | --- |
)";
  const Lowered lowered = observe_onnx();
  std::vector<std::string> rows;
  for (const import::onnx::OperatorRow* row : import::onnx::all_operators()) {
    const std::string name =
        row->domain.empty() ? std::string(row->name) : fmt::format("{}.{}", row->domain, row->name);
    const auto found = lowered.find(std::string(row->name));
    const std::string core = found == lowered.end() ? "" : fmt::format("{}", fmt::join(found->second, " "));
    const bool newest = row->until == import::onnx::kNewest;
    const std::string sets =
        newest ? fmt::format("{} and later", row->since) : fmt::format("{} to {}", row->since, row->until);
    rows.push_back(fmt::format("| {} | {} | {} |\n", name, sets, core));
  }
  std::ranges::sort(rows);
  return text + fmt::format("{}", fmt::join(rows, ""));
}

std::string tflite_operators() {
  std::vector<std::string> names;
  for (const auto code : import::tflite::schema::EnumValuesBuiltinOperator())
    if (import::tflite::find_operator(code) != nullptr)
      names.emplace_back(import::tflite::schema::EnumNameBuiltinOperator(code));
  for (const auto& rows : {import::tflite::signal_operators(), import::tflite::custom_operators()})
    for (const import::tflite::CustomOperatorRow& row : rows) names.push_back(fmt::format("CUSTOM:{}", row.name));
  std::ranges::sort(names);
  std::string text = "\n## TensorFlow Lite\n\n";
  for (const std::string& name : names) text += fmt::format("- {}\n", name);
  return text;
}

}  // namespace

std::map<std::string, std::string> stated_accuracies() {
  static const std::regex kDefinition(R"re(extern const OpDef \w+;\s+// "(\w+)".*\. Accuracy: (.*))re");
  std::map<std::string, std::string> stated;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("src/ops")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_match(line, match, kDefinition)) stated[match[1]] = match[2];
  }
  return stated;
}

float accuracy_bound(const ops::OpDef& op) {
  float bound = 0.0F;
  for (const ops::KernelVariant& variant : op.variants)
    if (variant.accuracy.kind == ops::Accuracy::Kind::kRelative && !ops::narrow_form(op, variant).half_arithmetic)
      bound = std::max(bound, variant.accuracy.bound);
  return bound;
}

std::string operators_document() { return kHead + core_operators() + onnx_operators() + tflite_operators(); }

}  // namespace bantam::testing
