// bantam inspect: what is in a model, before and after the compiler's passes.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "cli.h"
#include "compiler/branches.h"
#include "compiler/cost_model.h"
#include "compiler/load_model.h"
#include "compiler/select.h"
#include "graph/text.h"
#include "import/import.h"
#include "passes/passes.h"

namespace bantam::cli {
namespace {

struct InspectArguments {
  ModelOptions models;
  std::string stop_after;
  bool text = false;
  bool json = false;
};

nlohmann::json port_json(const DeclaredPort& port) {
  nlohmann::json j = {{"name", port.name}, {"type", element_type_name(port.type)}, {"dims", port.dims}};
  if (port.quantization)
    j["quantization"] = {{"scale", port.quantization->scale}, {"zero_point", port.quantization->zero_point}};
  return j;
}

nlohmann::json declaration_json(const Declaration& declaration) {
  nlohmann::json j = {
      {"format", declaration.format}, {"version", declaration.version}, {"producer", declaration.producer}};
  j["inputs"] = j["outputs"] = j["operators"] = nlohmann::json::array();
  for (const auto& port : declaration.inputs) j["inputs"].push_back(port_json(port));
  for (const auto& port : declaration.outputs) j["outputs"].push_back(port_json(port));
  for (const auto& [name, count] : declaration.operators)
    j["operators"].push_back({{"operator", name}, {"count", count}});
  j["metadata"] = nlohmann::json::object();
  for (const auto& [key, value] : declaration.metadata) j["metadata"][key] = value;
  return j;
}

std::string port_line(const char* kind, const DeclaredPort& port) {
  std::string dims;
  for (const std::string& dim : port.dims) dims += (dims.empty() ? "" : ",") + dim;
  std::string line =
      fmt::format("  {} {} {}[{}]", kind, printable(port.name), element_type_name(port.type), printable(dims));
  if (port.quantization)
    line += fmt::format(" scale {:g} zero point {}", port.quantization->scale, port.quantization->zero_point);
  return line;
}

/// Names that still need a value: symbols, or "?" of an input.
std::string open_dimensions(const Declaration& declaration) {
  std::string open;
  for (const auto& port : declaration.inputs)
    for (const std::string& dim : port.dims)
      if (!dim.empty() && dim.find_first_not_of("0123456789") != std::string::npos)
        open += fmt::format("{}{} of {}", open.empty() ? "" : ", ", printable(dim), printable(port.name));
  return open;
}

/// What the nodes of one operator that get one kernel come to.
struct KernelUse {
  std::int64_t nodes = 0;
  std::int64_t work = 0;
  double predicted_us = 0;
};

struct CoreSummary {
  std::size_t nodes = 0;
  std::int64_t weights_bytes = 0;
  std::int64_t work = 0;
  std::map<std::string, std::int64_t> ops;
  std::map<std::string, std::int64_t> fallbacks;                     ///< reason -> nodes
  std::map<std::pair<std::string, std::string>, KernelUse> kernels;  ///< by operator and kernel

  void add(const graph::Graph& graph, const graph::Node& node, const compiler::Selection& selection,
           const Machine& machine) {
    if (!selection.fallback.empty()) ++fallbacks[selection.fallback];
    if (selection.variant == nullptr) return;
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    const ops::OpCall call = tables.call(node);
    KernelUse& use = kernels[{std::string(node.op->name), std::string(selection.variant->name)}];
    ++use.nodes;
    if (node.op->work != nullptr) use.work += node.op->work(call);
    use.predicted_us += compiler::predicted_ns(*node.op, *selection.variant, call, machine) / 1000;
  }
};

CoreSummary summarize(const graph::Graph& graph, const compiler::KernelPolicy& policy) {
  CoreSummary summary;
  summary.nodes = graph.nodes.size();
  for (const graph::Node& node : graph.nodes) {
    ++summary.ops[std::string(node.op->name)];
    if (node.op->work == nullptr) continue;
    const graph::OperandTables tables = graph::operand_tables(graph, node);
    summary.work += node.op->work(tables.call(node));
  }
  summary.weights_bytes = graph::constant_bytes(graph);
  const Machine machine = compiler::machine_of(policy.target, summary.weights_bytes);
  // What no backend can compute is the plan's to report.
  if (const auto selected = compiler::select_kernels(graph, policy))
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) summary.add(graph, graph.nodes[n], (*selected)[n], machine);
  return summary;
}

nlohmann::json kernels_json(const CoreSummary& core) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [key, use] : core.kernels)
    list.push_back({{"operator", key.first},
                    {"kernel", key.second},
                    {"nodes", use.nodes},
                    {"multiply_accumulates", use.work},
                    {"predicted_us", use.predicted_us}});
  return list;
}

void print_kernels(const CoreSummary& core, const Target& target) {
  std::vector<std::vector<std::string>> rows = {{"operator", "kernel", "nodes", "million MACs", "predicted us"}};
  double total = 0;
  for (const auto& [key, use] : core.kernels) {
    total += use.predicted_us;
    rows.push_back({key.first, key.second, std::to_string(use.nodes),
                    fmt::format("{:.3f}", static_cast<double>(use.work) / 1e6),
                    fmt::format("{:.1f}", use.predicted_us)});
  }
  fmt::print("{}predicted for one thread of {}: {:.1f} us\n", format_table(rows, {false, false, true, true, true}),
             target.description, total);
}

int inspect(const InspectArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  if (fleet->spec.models.size() != 1)
    return report({StatusCode::kInvalidArgument, "inspect takes one model", "give one model file"});
  auto source = import::open_source(fleet->spec.models.front().path);
  if (!source) return report(source.error());
  auto declaration = import::declare_model(*source);
  if (!declaration) return report(declaration.error());
  const ModelSpec& spec = fleet->spec.models.front();
  const CompileOptions compile_options = options.models.compile_options();
  const compiler::KernelPolicy policy{.backend = spec.backend.value_or(compile_options.backend),
                                      .rules = spec.backends,
                                      .kernels = spec.kernels,
                                      .target = compile_options.target,
                                      .stores = spec.stores};
  const auto import_options = compiler::import_options(spec);
  if (!import_options) return report(import_options.error());
  auto graph = import::import_model(*source, *import_options);
  Result<void> passed;
  if (graph) passed = compiler::choose_outputs(*graph, spec.outputs, spec.keep);
  if (graph && passed) passed = passes::run_passes(*graph, {options.stop_after, false});
  const std::string open = open_dimensions(*declaration);
  // A model with open dimensions is no failure: telling them is what the command is for.
  const bool undecided = !graph && !open.empty() && options.models.dims.empty() && options.models.shapes.empty();
  if (options.text) {
    if (!graph) return report(graph.error());
    if (!passed) return report(passed.error());
    fmt::print("{}", graph::to_text(*graph));
    return kExitOk;
  }
  if (options.json) {
    nlohmann::json j = declaration_json(*declaration);
    if (graph && passed) {
      const CoreSummary core = summarize(*graph, policy);
      j["core"] = {{"nodes", core.nodes},   {"constant_bytes", core.weights_bytes}, {"multiply_accumulates", core.work},
                   {"operators", core.ops}, {"kernels", kernels_json(core)},        {"fallbacks", core.fallbacks}};
    } else {
      j[undecided ? "undecided" : "error"] = graph ? passed.error().message : graph.error().message;
    }
    print_json(j);
    return undecided || (graph && passed) ? kExitOk : kExitFailed;
  }
  fmt::print("{}: {} {}{}\n", options.models.files.front(), declaration->format, printable(declaration->version),
             declaration->producer.empty() ? "" : ", made by " + printable(declaration->producer));
  for (const auto& port : declaration->inputs) fmt::print("{}\n", port_line("input ", port));
  for (const auto& port : declaration->outputs) fmt::print("{}\n", port_line("output", port));
  if (!open.empty()) fmt::print("  open dimensions: {}\n", open);
  std::string operators;
  for (const auto& [name, count] : declaration->operators)
    operators += fmt::format("{}{} x{}", operators.empty() ? "" : ", ", printable(name), count);
  fmt::print("  operators: {}\n", operators);
  for (const auto& [key, value] : declaration->metadata)
    fmt::print("  metadata {} = {}\n", printable(key), printable(value));
  if (undecided) {
    fmt::print("as core operators: give the open dimensions values first, with --dim or --shape\n");
    return kExitOk;
  }
  if (!graph) return report(graph.error());
  if (!passed) return report(passed.error());
  const CoreSummary core = summarize(*graph, policy);
  std::string ops;
  for (const auto& [name, count] : core.ops) ops += fmt::format("{}{} x{}", ops.empty() ? "" : ", ", name, count);
  fmt::print("as core operators: {} nodes, {} of constants, {:.3f} million multiply-accumulates\n  {}\n", core.nodes,
             format_bytes(static_cast<std::uint64_t>(core.weights_bytes)), static_cast<double>(core.work) / 1e6, ops);
  print_kernels(core, compile_options.target);
  fmt::print("{}", describe_fallbacks(core.fallbacks));
  return kExitOk;
}

}  // namespace

void add_inspect(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("inspect", "graph, operators, sizes and dynamic dimensions of a model");
  auto options = std::make_shared<InspectArguments>();
  options->models.add_to(*command, false);
  options->models.add_target(*command);
  command->add_flag("--text", options->text, "print the graph of core operators in text form");
  command->add_option("--stop-after", options->stop_after, "run the passes only up to this one")->type_name("PASS");
  command->add_flag("--json", options->json, "print JSON");
  std::string passes = "Passes, in order:\n";
  for (const passes::Pass& pass : passes::all_passes()) passes += fmt::format("  {:24} {}\n", pass.name, pass.summary);
  passes +=
      "Examples:\n"
      "  bantam inspect model.onnx --dim batch=1\n"
      "  bantam inspect model.onnx --dim batch=1 --text --stop-after fold-constants";
  command->footer(passes);
  command->callback([=] { *exit_code = inspect(*options); });
}

}  // namespace bantam::cli
