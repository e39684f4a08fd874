#include "differential/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "differential/shadow.h"
#include "graph/text.h"
#include "io/file.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/testing/harness.h"
#include "passes/passes.h"

namespace bantam::testing {
namespace {

using compiler::PlanChoice;
using compiler::PlanOptions;
using compiler::testing::compile_graph;
using compiler::testing::place_package;
using compiler::testing::PlacedFleet;
using compiler::testing::TextPackage;
using graph::testing::HostTensor;

using Outputs = std::vector<std::vector<std::byte>>;

void fill(Session& session, const Tensors& inputs) {
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    const HostTensor& tensor = inputs.at(std::string(session.input_info(i).name));
    if (!tensor.bytes.empty()) std::memcpy(session.input(i).data, tensor.bytes.data(), tensor.bytes.size());
  }
}

/// The placements themselves have tests of their own; here they need not be the best.
constexpr std::int64_t kSearchSteps = 20'000;

/// Outputs by round; fewer rounds where one faults.
std::vector<Outputs> run_rounds(Session& session, const Sample& sample) {
  std::vector<Outputs> rounds;
  for (const Tensors& inputs : sample.rounds) {
    fill(session, inputs);
    if (!session.invoke().ok()) break;
    rounds.push_back(compiler::testing::outputs_of(session));
  }
  return rounds;
}

std::vector<double> to_doubles(const HostTensor& tensor) {
  ops::testing::TestTensor copy(tensor.desc);
  copy.set_packed(tensor.bytes);
  return copy.to_doubles();
}

std::string difference(const std::vector<Outputs>& a, const std::vector<Outputs>& b) {
  if (a.size() != b.size()) return fmt::format("{} rounds without a fault, and {}", a.size(), b.size());
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t o = 0; o < a[r].size(); ++o)
      if (a[r][o] != b[r][o]) return fmt::format("output {} differs in round {}", o, r);
  return {};
}

/// One package placed, with what is needed to run it; empty and reported to GoogleTest when the runtime refuses it.
struct Placed {
  std::optional<TextPackage> compiled;
  std::optional<PlacedFleet> fleet;
  std::string problem;

  Session& session() { return *fleet->fleet->session(0); }
};

Placed place(const graph::Graph& graph, PlanOptions options, std::byte fill = ops::testing::kCanary) {
  Placed placed;
  options.search_steps = kSearchSteps;
  auto compiled = compile_graph(graph, options);
  if (!compiled) {
    placed.problem = compiled.error().message;
    return placed;
  }
  placed.compiled.emplace(std::move(*compiled));
  placed.fleet = place_package(placed.compiled->package.bytes(), 1, fill);
  if (!placed.fleet) placed.problem = "the runtime refuses the package";
  return placed;
}

std::string shadowed(const Sample& sample, const PlanOptions& options) {
  Placed placed = place(sample.graph, options);
  if (!placed.problem.empty()) return placed.problem;
  Shadow shadow(placed.compiled->planned, placed.session());
  for (std::size_t r = 0; r < sample.rounds.size() && !shadow.faulted(); ++r) {
    fill(placed.session(), sample.rounds[r]);
    if (auto problem = shadow.invoke(); !problem.empty())
      return fmt::format("round {} of plan '{}': {}", r, placed.compiled->planned.method, problem);
  }
  return placed.fleet->arena.intact() ? "" : "a byte outside the arena was written";
}

std::string any_plan(const Sample& sample, Backend backend) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const PlanChoice choice{(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0};
    if (auto problem = shadowed(sample, {.backend = backend, .choice = choice}); !problem.empty()) return problem;
  }
  return shadowed(sample, {.backend = backend});
}

std::string plans_of_fast_kernels(const Sample& sample) { return any_plan(sample, Backend::kFast); }
std::string plans_of_plain_kernels(const Sample& sample) { return any_plan(sample, Backend::kReference); }

/// Plain kernels in any plan are the interpreter, which shares no memory between values.
std::string plain_kernels_and_interpreter(const Sample& sample) {
  Placed placed = place(sample.graph, {.backend = Backend::kReference});
  if (!placed.problem.empty()) return placed.problem;
  graph::testing::Interpreter interpreter(sample.graph);
  for (std::size_t r = 0; r < sample.rounds.size(); ++r) {
    const auto expected = interpreter.run(sample.rounds[r]);
    fill(placed.session(), sample.rounds[r]);
    const Status status = placed.session().invoke();
    if (!expected) return {};  // where nobody reads what faults, the session does not run it
    if (!status.ok()) return fmt::format("round {}: only the session faults: {}", r, status.message);
    const Outputs found = compiler::testing::outputs_of(placed.session());
    for (std::size_t o = 0; o < found.size(); ++o)
      if (found[o] != expected->at(sample.graph.outputs[o].name).bytes)
        return fmt::format("output {} differs in round {}", o, r);
  }
  return {};
}

/// Four threads that are one: tasks in reverse order. What a kernel gets wrong about splitting its work shows, races
/// do not.
constexpr ops::Threads kReversed{.count = 4,
                                 .run = [](void*, void (*task)(void*, std::size_t), void* argument, std::size_t n) {
                                   while (n > 0) task(argument, --n);
                                 }};

std::string threads(const Sample& sample) {
  const PlanOptions options{.threads = 4};
  Placed one = place(sample.graph, options);
  Placed four = place(sample.graph, options);
  if (!one.problem.empty()) return one.problem;
  const auto expected = run_rounds(one.session(), sample);
  (void)four.session().set_threads(&kReversed);
  if (auto problem = difference(expected, run_rounds(four.session(), sample)); !problem.empty()) return problem;
  if (sample.graph.nodes.size() % 8 != 7) return {};  // threads start and wait slowly on a busy machine
  const auto pool = ThreadPool::create(4);
  if (!pool) return pool.error().message;
  four.session().reset();
  (void)four.session().set_threads(pool->threads());
  return difference(expected, run_rounds(four.session(), sample));
}

std::string second_run(const Sample& sample) {
  Placed a = place(sample.graph, {}, std::byte{0});
  Placed b = place(sample.graph, {}, std::byte{0xff});
  if (!a.problem.empty()) return a.problem;
  const auto first = run_rounds(a.session(), sample);
  a.session().reset();
  if (auto problem = difference(first, run_rounds(a.session(), sample)); !problem.empty())
    return "after a reset: " + problem;
  if (auto problem = difference(first, run_rounds(b.session(), sample)); !problem.empty())
    return "in other memory: " + problem;
  return {};
}

std::string some_outputs(const Sample& sample) {
  Placed whole = place(sample.graph, {});
  Placed partial = place(sample.graph, {});
  if (!whole.problem.empty()) return whole.problem;
  const auto expected = run_rounds(whole.session(), sample);
  const std::size_t count = sample.graph.outputs.size();
  for (std::size_t r = 0; r < expected.size(); ++r) {
    OutputSet chosen;
    const auto is_chosen = [&](std::size_t o) { return (o + r) % 3 == 0; };
    for (std::size_t o = 0; o < count; ++o)
      if (is_chosen(o)) chosen.add(o);
    fill(partial.session(), sample.rounds[r]);
    if (const Status s = partial.session().invoke(chosen); !s.ok()) return fmt::format("round {}: {}", r, s.message);
    const Outputs found = compiler::testing::outputs_of(partial.session());
    for (std::size_t o = 0; o < count; ++o)
      if (is_chosen(o) && found[o] != expected[r][o]) return fmt::format("output {} differs in round {}", o, r);
  }
  return {};
}

/// A package that was written and read back is the package; a graph that was printed and parsed is the graph.
std::string round_trips(const Sample& sample) {
  const auto compiled = compile_graph(sample.graph, {.search_steps = kSearchSteps});
  if (!compiled) return compiled.error().message;
  const auto bytes = compiled->package.bytes();
  const auto path = std::filesystem::temp_directory_path() / fmt::format("differential-{}.bantam", getpid());
  if (const auto written = io::write_file(path.string(), bytes); !written) return written.error().message;
  const auto read = io::MappedFile::open(path.string());
  std::filesystem::remove(path);
  if (!read) return read.error().message;
  auto a = place_package(bytes);
  auto b = place_package(read->bytes());
  if (!a || !b) return "the runtime refuses the package";
  if (auto problem = difference(run_rounds(*a->fleet->session(0), sample), run_rounds(*b->fleet->session(0), sample));
      !problem.empty())
    return "package: " + problem;
  const std::string text = graph::to_text(sample.graph);
  if (text.find("...") != std::string::npos) return {};
  const auto parsed = graph::from_text(text);
  if (!parsed) return "text: " + parsed.error().message;
  return graph::to_text(*parsed) == text ? "" : "the text of the parsed text differs";
}

/// True where a last place more or less in a float stays about that: no step functions, orders or integers made of it,
/// no quotients or logarithms that magnify it.
bool is_smooth(const graph::Graph& graph, const graph::Node& node) {
  using U = ops::UnaryFunction;
  using B = ops::BinaryFunction;
  static constexpr U kSmoothUnary[] = {U::kIdentity, U::kAbs,  U::kNeg,       U::kSquare,      U::kSin,
                                       U::kCos,      U::kTanh, U::kErf,       U::kSigmoid,     U::kRelu,
                                       U::kClip,     U::kElu,  U::kLeakyRelu, U::kHardSigmoid, U::kHardSwish,
                                       U::kSoftplus, U::kGelu, U::kSoftsign,  U::kSilu,        U::kMish};
  static constexpr B kSmoothBinary[] = {B::kAdd, B::kSub, B::kMul, B::kMin, B::kMax, B::kSquaredDifference, B::kPrelu};
  static constexpr std::string_view kSmooth[] = {"concat",    "copy",       "expand",  "gather", "gather_elements",
                                                 "gather_nd", "pad",        "reshape", "slice",  "tile",
                                                 "transpose", "trilu",      "conv2d",  "matmul", "depthwise_conv2d",
                                                 "pool2d",    "softmax",    "gru",     "lstm",   "conv_transpose2d",
                                                 "resize",    "dequantize", "cumsum"};
  const auto type_of = [&](graph::ValueId id) {
    return id == graph::kNone ? ElementType::kNone : graph.value(id).desc.type;
  };
  const auto is_exact = [&](graph::ValueId id) {
    return !is_float(type_of(id)) || (id != graph::kNone && graph.is_constant(id));
  };
  if (std::ranges::all_of(node.inputs, is_exact)) return true;
  const auto is_whole = [&](graph::ValueId id) {
    return type_of(id) != ElementType::kF16 && type_of(id) != ElementType::kBF16;
  };
  if (!std::ranges::all_of(node.inputs, is_whole) || !std::ranges::all_of(node.outputs, is_whole)) return false;
  if (node.op->name == "unary")
    return std::ranges::find(kSmoothUnary, node.as<ops::UnaryParams>().function) != std::end(kSmoothUnary);
  if (node.op->name == "binary")
    return std::ranges::find(kSmoothBinary, node.as<ops::BinaryParams>().function) != std::end(kSmoothBinary);
  const bool hybrid = node.inputs.size() > 1 && type_of(node.inputs[0]) == ElementType::kF32 &&
                      type_of(node.inputs[1]) == ElementType::kI8;
  return !hybrid && std::ranges::find(kSmooth, node.op->name) != std::end(kSmooth);
}

double largest_number(const Sample& sample) {
  double largest = 1.0;
  for (const Tensors& round : all_values(sample))
    for (const auto& [name, tensor] : round) {
      if (!is_float(tensor.desc.type)) continue;
      for (const double x : to_doubles(tensor)) largest = std::max(largest, std::abs(x));
    }
  return largest;
}

/// Integers must be equal; floats may be off by a small part of the largest number in the graph.
std::string compare(const HostTensor& found, const HostTensor& expected, double tolerance) {
  if (!same_shape_and_type(found.desc, expected.desc)) return "it has another shape or type";
  const std::vector<double> a = to_doubles(found);
  const std::vector<double> b = to_doubles(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool close = is_float(found.desc.type) ? std::abs(a[i] - b[i]) <= tolerance : a[i] == b[i];
    if (!close && std::isfinite(b[i])) return fmt::format("element {} is {}, was {}", i, a[i], b[i]);
  }
  return {};
}

std::string same_results(const Sample& before, const Sample& after, double tolerance) {
  graph::testing::Interpreter first(before.graph);
  graph::testing::Interpreter second(after.graph);
  for (const Tensors& inputs : before.rounds) {
    const auto expected = first.run(inputs);
    const auto found = second.run(inputs);
    if (!expected || !found) return {};  // a pass may drop a node that faults and that nobody reads
    for (const auto& [name, tensor] : *expected)
      if (auto problem = compare(found->at(name), tensor, tolerance); !problem.empty()) return name + ": " + problem;
  }
  return {};
}

/// Passes may round differently; what does not depend on that must stay.
std::string passes_keep_results(const Sample& sample) {
  const bool smooth =
      std::ranges::all_of(sample.graph.nodes, [&](const graph::Node& node) { return is_smooth(sample.graph, node); });
  const double tolerance = smooth ? 2e-5 * largest_number(sample) : 0.0;
  for (const bool any_size : {false, true}) {
    Sample rewritten{.graph = sample.graph, .rounds = sample.rounds};
    if (const auto done = passes::run_passes(rewritten.graph, {.verify = true, .any_size = any_size}); !done)
      return done.error().message;
    if (auto problem = shadowed(rewritten, {}); !problem.empty()) return "afterwards: " + problem;
    if (!smooth) continue;
    if (auto problem = same_results(sample, rewritten, tolerance); !problem.empty()) return problem;
  }
  return {};
}

constexpr Check kChecks[] = {{"plans of fast kernels", plans_of_fast_kernels},
                             {"plans of plain kernels", plans_of_plain_kernels},
                             {"plain kernels and interpreter", plain_kernels_and_interpreter},
                             {"one thread and four", threads},
                             {"first run and second", second_run},
                             {"some outputs", some_outputs},
                             {"round trips", round_trips},
                             {"passes", passes_keep_results},
                             {"smaller sizes", smaller_sizes}};

}  // namespace

std::span<const Check> all_checks() { return kChecks; }

std::string first_failure(const Sample& sample) {
  for (const Check& check : kChecks)
    if (auto problem = check.run(sample); !problem.empty()) return fmt::format("{}: {}", check.name, problem);
  return {};
}

}  // namespace bantam::testing
