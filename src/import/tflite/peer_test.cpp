// Every operator and element type that TensorFlow Lite Micro registers, against what it computed
// (testing/peer_cases.h).
//
// peer_golden.inc has a line per case: a hash of all result bytes, and for float results their sum and sum of
// magnitudes. It was written by this program: with BANTAM_TFLM naming a program that runs a model on TensorFlow Lite
// Micro (arguments: model, steps, one file per input, result file), each case is run there too and compared element by
// element, and BANTAM_TFLM_GOLDEN names the file that the lines go to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/tflite/testing/model_builder.h"
#include "import/tflite/testing/peer_cases.h"

namespace bantam::import::tflite {
namespace {

using testing::PeerCase;

struct Golden {
  const char* name;
  std::uint64_t hash;
  double sum;        ///< of float results
  double magnitude;  ///< sum of their magnitudes; 0: no float results, the hash must agree
};

constexpr Golden kGolden[] = {
#include "import/tflite/peer_golden.inc"
};

const Golden* golden_of(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kGolden), std::end(kGolden), [&](const Golden& g) { return g.name == name; });
  return found == std::end(kGolden) ? nullptr : found;
}

/// All results of one case: step by step, output by output.
struct Results {
  std::vector<std::byte> bytes;
  std::vector<bool> is_float;  ///< by byte
};

std::uint64_t hash_of(const std::vector<std::byte>& bytes) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 1099511628211U;
  return hash;
}

std::vector<float> floats_of(const Results& results, const std::vector<std::byte>& bytes) {
  std::vector<float> floats;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += results.is_float[i] ? 4 : 1) {
    if (!results.is_float[i]) continue;
    float value = 0;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    floats.push_back(value);
  }
  return floats;
}

Results run(const PeerCase& peer_case) {
  Results results;
  const auto graph = import_tflite(testing::source_of(peer_case.file), {});
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return results;
  graph::testing::Interpreter interpreter(*graph);
  for (int step = 0; step < peer_case.steps; ++step) {
    std::map<std::string, graph::testing::HostTensor> inputs;
    for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
      const TensorDesc& desc = graph->value(graph->inputs[i].value).desc;
      const auto size = static_cast<std::size_t>(desc.bytes());
      std::vector<std::byte> bytes(size);
      std::memcpy(bytes.data(), peer_case.inputs[i].data() + static_cast<std::size_t>(step) * size, size);
      inputs[graph->inputs[i].name] = {desc, std::move(bytes)};
    }
    const auto outputs = interpreter.run(inputs);
    EXPECT_TRUE(outputs) << outputs.error().message;
    if (!outputs) return results;
    for (const graph::Port& port : graph->outputs) {
      const auto& tensor = outputs->at(port.name);
      results.bytes.insert(results.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      results.is_float.resize(results.bytes.size(), tensor.desc.type == ElementType::kF32);
    }
  }
  return results;
}

double magnitude_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += std::abs(static_cast<double>(v));
  return sum;
}

double sum_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v);
  return sum;
}

constexpr double kFloatTolerance = 1e-5;

class TflitePeer : public ::testing::TestWithParam<PeerCase> {};

TEST_P(TflitePeer, Agrees) {
  const Results results = run(GetParam());
  const Golden* golden = golden_of(GetParam().name);
  ASSERT_NE(golden, nullptr) << "no line in peer_golden.inc";
  if (golden->magnitude == 0) {
    EXPECT_EQ(hash_of(results.bytes), golden->hash);
    return;
  }
  const auto floats = floats_of(results, results.bytes);
  EXPECT_NEAR(sum_of(floats), golden->sum, kFloatTolerance * golden->magnitude);
  EXPECT_NEAR(magnitude_of(floats), golden->magnitude, kFloatTolerance * golden->magnitude);
}

void write_file(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// What the peer computes; nothing when it refuses the model.
std::optional<std::vector<std::byte>> run_peer(const PeerCase& peer_case, const std::string& program) {
  const std::string base = ::testing::TempDir() + "tflite_peer";
  write_file(base + ".tflite", peer_case.file);
  std::string command = fmt::format("{} {}.tflite {}", program, base, peer_case.steps);
  for (std::size_t i = 0; i < peer_case.inputs.size(); ++i) {
    write_file(fmt::format("{}.in{}", base, i), peer_case.inputs[i]);
    command += fmt::format(" {}.in{}", base, i);
  }
  if (std::system(fmt::format("{} {}.out", command, base).c_str()) != 0) return std::nullopt;
  std::ifstream file(base + ".out", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> result(bytes.size());
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

/// Bytes that differ where they must not, or floats that differ too much.
std::size_t differences(const Results& ours, const std::vector<std::byte>& theirs) {
  if (ours.bytes.size() != theirs.size()) return std::max(ours.bytes.size(), theirs.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) count += !ours.is_float[i] && ours.bytes[i] != theirs[i] ? 1 : 0;
  const auto a = floats_of(ours, ours.bytes);
  const auto b = floats_of(ours, theirs);
  double largest = 0;
  for (const float v : b) largest = std::max(largest, std::abs(static_cast<double>(v)));
  for (std::size_t i = 0; i < a.size(); ++i)
    count += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= kFloatTolerance * largest ? 0 : 1;
  return count;
}

TEST(TflitePeerProgram, ComputesWhatWasRecorded) {
  const char* program = std::getenv("BANTAM_TFLM");
  if (program == nullptr) GTEST_SKIP() << "BANTAM_TFLM names no TensorFlow Lite Micro runner";
  const char* golden_path = std::getenv("BANTAM_TFLM_GOLDEN");
  std::ofstream golden(golden_path == nullptr ? "/dev/null" : golden_path);
  for (const PeerCase& peer_case : testing::peer_cases()) {
    SCOPED_TRACE(peer_case.name);
    const auto theirs = run_peer(peer_case, program);
    EXPECT_TRUE(theirs) << "the peer refuses the model";
    if (!theirs) continue;
    const Results ours = run(peer_case);
    EXPECT_EQ(differences(ours, *theirs), 0U) << "of " << theirs->size() << " bytes";
    if (ours.is_float.size() != theirs->size()) continue;
    const auto floats = floats_of(ours, *theirs);
    golden << fmt::format("{{\"{}\", 0x{:016x}U, {:.9g}, {:.9g}}},\n", peer_case.name, hash_of(*theirs), sum_of(floats),
                          magnitude_of(floats));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, TflitePeer, ::testing::ValuesIn(testing::peer_cases()),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace

namespace testing {
void PrintTo(const PeerCase& peer_case, std::ostream* out) { *out << peer_case.name; }
}  // namespace testing

}  // namespace bantam::import::tflite
