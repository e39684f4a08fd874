// The node tests of the ONNX standard (Debian package libonnx-testdata), imported and run with reference kernels.
//
// Operands that decide shapes are inputs in those models; where the importer needs them as constants, it gets them
// through Options::values, as a user would. A test that cannot pass stands in kUnsupported with the reason; one that
// passes although it stands there is a failure, so that the list stays true.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/onnx/constant.h"
#include "import/onnx/model.h"
#include "io/array.h"
#include "io/file.h"

namespace bantam::import {
namespace {

using graph::format_desc;
using graph::testing::HostTensor;

constexpr const char* kFolder = "/usr/share/libonnx-testdata/data/node";

struct Exception {
  std::string_view prefix;  ///< of the test's name
  std::string_view reason;
  bool expanded_too = true;  ///< also for the test's twin that spells the operator out by simpler ones
};
#include "import/onnx/conformance_exceptions.inc"

const Exception* exception_for(const std::string& name) {
  for (const Exception& e : kUnsupported)
    if (name.starts_with(e.prefix) && (e.expanded_too || !name.ends_with("_expanded"))) return &e;
  return nullptr;
}

std::optional<HostTensor> read_tensor_file(const std::filesystem::path& path) {
  auto source = open_source(path);
  if (!source) return std::nullopt;
  auto proto = onnx::read_tensor(source->bytes);
  if (!proto) return std::nullopt;
  auto constant = onnx::ConstantReader(*source).read(*proto);
  if (!constant) return std::nullopt;
  return HostTensor{constant->desc, {constant->data.bytes.begin(), constant->data.bytes.end()}};
}

/// Elements as double; 64-bit integers of the tests are small.
std::vector<double> numbers_of(const HostTensor& tensor) {
  std::vector<double> numbers;
  const io::Array array{tensor.desc, tensor.bytes};
  io::with_element_type(tensor.desc.type, [&]<typename T>(std::type_identity<T>) {
    for (const T element : io::elements_of<T>(array)) numbers.push_back(static_cast<double>(io::number_of(element)));
  });
  return numbers;
}

/// ONNX's own tolerance for floats; integers must be equal.
bool close(ElementType type, double expected, double found) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (expected == found) return true;
  return is_float(type) && std::abs(expected - found) <= 1e-6 + 1e-3 * std::abs(expected);
}

std::string compare(const HostTensor& expected, const HostTensor& found) {
  if (!same_shape_and_type(expected.desc, found.desc))
    return fmt::format("result is {}, expected {}", format_desc(found.desc), format_desc(expected.desc));
  const auto a = numbers_of(expected);
  const auto b = numbers_of(found);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!close(expected.desc.type, a[i], b[i]))
      return fmt::format("element {} of {} is {}, expected {}", i, format_desc(found.desc), b[i], a[i]);
  return {};
}

/// One folder of the test data.
class NodeTest {
 public:
  explicit NodeTest(const std::filesystem::path& folder) : folder_(folder) {}

  /// What went wrong; empty when the test passes.
  std::string run() {
    auto source = open_source(folder_ / "model.onnx");
    if (!source) return source.error().message;
    auto declared = declare_model(*source);
    if (!declared) return declared.error().message;
    const auto data = folder_ / "test_data_set_0";
    for (std::size_t i = 0; i < declared->inputs.size(); ++i) {
      auto tensor = read_tensor_file(data / fmt::format("input_{}.pb", i));
      if (!tensor) return fmt::format("input {} cannot be read", i);
      inputs_.emplace_back(declared->inputs[i].name, std::move(*tensor));
    }
    for (std::size_t i = 0; i < declared->outputs.size(); ++i) {
      auto tensor = read_tensor_file(data / fmt::format("output_{}.pb", i));
      if (!tensor) return fmt::format("output {} cannot be read", i);
      outputs_.emplace_back(declared->outputs[i].name, std::move(*tensor));
    }
    // As inputs if possible, else with constants from the second operand on, else all constant.
    std::string first_error;
    for (const std::size_t free : {inputs_.size(), std::size_t{1}, std::size_t{0}}) {
      auto graph = import_model(*source, options(free));
      if (graph) return check(*graph);
      if (first_error.empty()) first_error = graph.error().message;
    }
    return first_error;
  }

 private:
  /// Shapes of all inputs; those from `free` on are constant.
  Options options(std::size_t free) const {
    Options options;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto& [name, tensor] = inputs_[i];
      options.shapes[name].assign(tensor.desc.dims, tensor.desc.dims + tensor.desc.rank);
      if (i >= free) options.values[name] = numbers_of(tensor);
    }
    return options;
  }

  std::string check(const graph::Graph& graph) const {
    if (auto verified = graph::verify(graph); !verified) return "verify: " + verified.error().message;
    auto results = graph::testing::interpret(graph, {inputs_.begin(), inputs_.end()});
    if (!results) return results.error().message;
    for (const auto& [name, expected] : outputs_) {
      const auto found = results->find(name);
      if (found == results->end()) return "no result " + name;
      if (auto difference = compare(expected, found->second); !difference.empty()) return name + ": " + difference;
    }
    return {};
  }

  std::filesystem::path folder_;
  std::vector<std::pair<std::string, HostTensor>> inputs_;
  std::vector<std::pair<std::string, HostTensor>> outputs_;
};

TEST(OnnxConformance, NodeTestsOfTheStandard) {
  std::error_code error;
  std::set<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) folders.insert(entry.path());
  if (error) GTEST_SKIP() << kFolder << " is absent; install libonnx-testdata to run ONNX's own tests";
  int passed = 0;
  int excepted = 0;
  for (const auto& folder : folders) {
    const std::string name = folder.filename();
    const std::string problem = NodeTest(folder).run();
    const Exception* exception = exception_for(name);
    if (problem.empty()) {
      EXPECT_EQ(exception, nullptr) << name << " passes; take it from the list of exceptions";
      ++passed;
    } else {
      EXPECT_NE(exception, nullptr) << name << ": " << problem;
      ++excepted;
    }
  }
  std::cout << passed << " of " << folders.size() << " node tests of ONNX pass, " << excepted << " do not\n";
}

}  // namespace
}  // namespace bantam::import
