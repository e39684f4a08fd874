#include "support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "bantam/runtime.h"
#include "compiler/emit.h"
#include "compiler/planned_model.h"
#include "ops/op.h"
#include "ops/testing/guarded_memory.h"
#include "package/control_flow.h"
#include "passes/passes.h"

namespace bantam::fuzz {
namespace {

/// Larger models are imported and planned but not run: the fuzzer's time is better spent on many small ones.
constexpr std::uint64_t kMaxArenaBytes = std::uint64_t{32} << 20;
constexpr std::int64_t kMaxValueBytes = std::int64_t{32} << 20;
constexpr std::int64_t kMaxWork = 20'000'000;
/// Most elements of an input whose dimensions the target chooses.
constexpr std::int64_t kOpenDimension = 2;

/// How often each step runs at most, by the limits of the loops around it.
std::vector<std::int64_t> repeats_of(const Session& session) {
  std::vector<std::int64_t> repeats(session.step_count(), 1);
  for (std::size_t s = 0; s < session.step_count(); ++s) {
    if (session.step_operator(s) != "loop_begin") continue;
    const format::Step& step = *session.model().steps()->Get(static_cast<std::uint32_t>(s));
    const format::ControlParams& loop = format::control_params(step, session.model().params()->data());
    for (std::size_t inside = s + 1; inside < loop.target; ++inside)
      repeats[inside] = std::min(kMaxWork + 1, repeats[inside] * loop.limit);
  }
  return repeats;
}

/// Multiply-accumulates and elements written by one invoke, and the steps that jump.
std::int64_t work_of(const Session& session) {
  std::int64_t work = 0;
  const std::vector<std::int64_t> repeats = repeats_of(session);
  const auto add = [&](std::size_t s, std::int64_t amount) {
    work = std::min(kMaxWork + 1, work + std::min(kMaxWork + 1, amount) * repeats[s]);
  };
  for (std::size_t s = 0; s < session.step_count(); ++s) {
    add(s, 1);
    if (session.step_jumps(s)) continue;
    const ops::OpDef* op = ops::find_op(session.step_operator(s));
    const format::Step& step = *session.model().steps()->Get(static_cast<std::uint32_t>(s));
    Tensor operands[ops::kMaxInputs + ops::kMaxOutputs];
    const std::size_t inputs = step.inputs();
    const std::size_t outputs = step.outputs();
    for (std::size_t i = 0; i < inputs + outputs; ++i) operands[i] = session.step_operand(s, i);
    const ops::OpCall call{
        session.model().params()->data() + step.first_param(), {operands, inputs}, {operands + inputs, outputs}};
    for (std::size_t i = 0; i < inputs + outputs; ++i)
      if (operands[i].desc->present()) add(s, operands[i].desc->elements());
    if (op->work != nullptr) add(s, op->work(call));
  }
  return work;
}

void invoke(Session& session, unsigned pattern) {
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    const Tensor input = session.input(i);
    if (input.data == nullptr) continue;
    auto* bytes = static_cast<unsigned char*>(input.data);
    const std::uint64_t count = session.input_info(i).bytes;
    for (std::uint64_t b = 0; b < count; ++b) bytes[b] = static_cast<unsigned char>(b * pattern);
  }
  // A data-dependent failure is an answer too.
  static_cast<void>(session.invoke());
}

bool small(const graph::Graph& graph) {
  const bool values = std::all_of(graph.values.begin(), graph.values.end(),
                                  [](const graph::Value& v) { return v.desc.bytes() <= kMaxValueBytes; });
  return values && std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& n) {
           return std::all_of(n.bodies.begin(), n.bodies.end(), small);
         });
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         text.size() < 10;
}

}  // namespace

void require(bool promise, const std::string& message) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", message.c_str());
  std::abort();
}

void require_message(const Error& error) {
  require(!error.message.empty(), "an error without a message");
  require(error.message.back() != '\n', "an error message that ends with a newline");
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

import::Options options_for(const Declaration& declaration){import::Options options;
for (const DeclaredPort& port : declaration.inputs) {
  if (std::all_of(port.dims.begin(), port.dims.end(), is_number)) continue;
  std::vector<std::int64_t>& shape = options.shapes[port.name];
  for (const std::string& dim : port.dims) shape.push_back(is_number(dim) ? std::stoll(dim) : kOpenDimension);
}
return options;
}  // namespace bantam::fuzz

format::PackageBytes compile_graph(graph::Graph graph) {
  const auto before = graph::verify(graph);
  require(before.has_value(), before ? "" : "an invalid graph: " + before.error().message);
  if (!small(graph)) return {};
  const auto passed = passes::run_passes(graph, {.verify = true});
  require(passed.has_value(), passed ? "" : "a pass failed: " + passed.error().message);
  auto planned = compiler::plan_model(std::move(graph), {});
  if (!planned) {
    require_message(planned.error());
    return {};
  }
  format::PackageData package;
  package.fleet.emplace_back("model", std::uint16_t{0});
  if (const auto emitted = compiler::emit_model(*planned, "model", package); !emitted) {
    require_message(emitted.error());
    return {};
  }
  auto bytes = format::write_package(package);
  require(bytes.data() != nullptr, "no memory for the package");
  Package opened;
  const Status status = Package::open(bytes.bytes(), &opened);
  require(status.ok(), "the compiler wrote a package that the reader refuses: " + error_from(status).message);
  return bytes;
}

bool run_package(std::span<const std::byte> bytes) {
  Package package;
  if (const Status status = Package::open(bytes, &package); !status.ok()) {
    require_message(error_from(status));
    return false;
  }
  const Requirements need = package.requirements();
  for (std::size_t i = 0; i < package.session_count(); ++i)
    require(package.session_requirements(i).alignment == need.alignment, "alignments differ");
  if (need.arena_bytes > kMaxArenaBytes) return true;
  ops::testing::GuardedMemory arena(static_cast<std::size_t>(need.arena_bytes),
                                    static_cast<std::size_t>(need.alignment));
  Fleet* fleet = nullptr;
  require(Fleet::place(package, arena.bytes(), &fleet).ok(), "placement fails in the promised memory");
  std::int64_t work = 0;
  for (std::size_t i = 0; i < fleet->size(); ++i) work = std::min(kMaxWork + 1, work + work_of(*fleet->session(i)));
  if (work > kMaxWork) return true;
  for (const unsigned pattern : {0U, 37U})
    for (std::size_t i = 0; i < fleet->size(); ++i) invoke(*fleet->session(i), pattern);
  require(arena.intact(), "a canary beside the arena was overwritten");
  return true;
}

void import_and_run(std::span<const std::byte> bytes,
                    Result<graph::Graph> (*importer)(const import::Source&, const import::Options&),
                    Result<Declaration> (*declare)(const import::Source&)) {
  const import::Source source{"model", bytes, nullptr, {}};
  const auto declaration = declare(source);
  if (!declaration) require_message(declaration.error());
  auto graph = importer(source, declaration ? options_for(*declaration) : import::Options{});
  if (!graph) {
    require_message(graph.error());
    return;
  }
  const format::PackageBytes package = compile_graph(std::move(*graph));
  if (!package.bytes().empty()) require(run_package(package.bytes()), "a package opens once only");
}

}  // namespace bantam::fuzz
