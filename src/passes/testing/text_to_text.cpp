#include "passes/testing/text_to_text.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "graph/testing/interpret.h"
#include "graph/text.h"

namespace bantam::passes::testing {
namespace {

using graph::testing::HostTensor;

/// Random numbers for every input; bools are mixed.
std::map<std::string, HostTensor> random_inputs(const graph::Graph& graph) {
  std::mt19937 random(5);
  std::map<std::string, HostTensor> inputs;
  for (const graph::Port& port : graph.inputs) {
    HostTensor tensor{graph.value(port.value).desc, {}};
    tensor.bytes.resize(static_cast<std::size_t>(tensor.desc.bytes()));
    if (tensor.desc.type == ElementType::kBool) {
      for (std::byte& b : tensor.bytes) b = static_cast<std::byte>(random() % 2);
    } else {
      for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
        const float value = std::uniform_real_distribution<float>(-2, 2)(random);
        std::memcpy(&tensor.bytes[i], &value, sizeof value);
      }
    }
    inputs.emplace(port.name, std::move(tensor));
  }
  return inputs;
}

std::vector<float> results_of(const graph::Graph& graph) {
  auto results = graph::testing::interpret(graph, random_inputs(graph));
  EXPECT_TRUE(results) << (results ? "" : results.error().message);
  if (!results) return {};
  const HostTensor& y = results->at("y");
  std::vector<float> values(y.bytes.size() / sizeof(float));
  std::memcpy(values.data(), y.bytes.data(), y.bytes.size());
  return values;
}

}  // namespace

graph::Graph parse(std::string_view text) {
  auto graph = graph::from_text(text);
  if (!graph) {
    ADD_FAILURE() << graph.error().message << "\nin\n" << text;
    return {};
  }
  return std::move(*graph);
}

std::string normalised(std::string_view text) { return graph::to_text(parse(text)); }

std::string after(Result<bool> (*pass)(graph::Graph&), std::string_view text) {
  graph::Graph graph = parse(text);
  const std::string before = graph::to_text(graph);
  const auto changed = pass(graph);
  if (!changed) return "error: " + changed.error().message;
  if (const auto sound = graph::verify(graph); !sound) return "broken: " + sound.error().message;
  std::string text_after = graph::to_text(graph);
  if (before != text_after) {
    EXPECT_TRUE(*changed) << "the pass changed the graph without saying so";
  }
  return text_after;
}

void expect_rewritten(Result<bool> (*pass)(graph::Graph&), std::string_view text, std::string_view expected) {
  EXPECT_EQ(after(pass, text), normalised(expected));
  const auto before = results_of(parse(text));
  const auto now = results_of(parse(expected));
  ASSERT_EQ(before.size(), now.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], now[i], 1e-5) << i;
}

}  // namespace bantam::passes::testing
