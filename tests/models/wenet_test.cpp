// A streaming speech recogniser in three graphs, chunk by chunk: the caches that one chunk leaves are fed to the next.
// Its reference file has keys of its own, which its README tells.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "bantam/open_fleet.h"
#include "io/npz.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest magnitude of a tensor, as the reference's README allows

using Arrays = std::map<std::string, io::Array>;

class Wenet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(folder_)) GTEST_SKIP() << kNoSharedModels;
    auto archive = io::NpzReader::open((folder_ / "reference.npz").string());
    ASSERT_TRUE(archive) << archive.error().message;
    archive_.emplace(std::move(*archive));
  }

  io::Array read(const std::string& entry) {
    auto array = archive_->read(entry);
    if (!array) {
      ADD_FAILURE() << array.error().message;
      return {};
    }
    return std::move(*array);
  }

  /// Compiles a graph for the shapes of these inputs and runs it once. `values` are fixed at compile time.
  Arrays run(const std::string& graph, const Arrays& inputs, const std::map<std::string, std::vector<double>>& values,
             const std::map<std::string, std::string>& counts = {}) {
    ModelSpec spec{.name = graph, .path = folder_ / (graph + ".onnx"), .values = values, .counts = counts};
    for (const auto& [name, array] : inputs)
      spec.shapes[name].assign(array.desc.dims, array.desc.dims + array.desc.rank);
    auto fleet = OpenFleet::compile({.models = {spec}});
    Arrays outputs;
    if (!fleet) {
      ADD_FAILURE() << fleet.error().message;
      return outputs;
    }
    Session& session = fleet->session(0);
    EXPECT_EQ(session.input_count(), inputs.size());
    for (const auto& [name, array] : inputs) {
      const int i = session.find_input(name);
      if (i < 0) {
        ADD_FAILURE() << "no input " << name;
        return outputs;
      }
      std::memcpy(session.input(static_cast<std::size_t>(i)).data, array.data.data(), array.data.size());
    }
    const Status status = session.invoke();
    EXPECT_TRUE(status.ok()) << status.message;
    for (std::size_t o = 0; o < session.output_count(); ++o) {
      const Tensor t = session.output(o);
      const auto* bytes = static_cast<const std::byte*>(t.data);
      outputs[std::string(session.output_info(o).name)] = {*t.desc, {bytes, bytes + t.desc->bytes()}};
    }
    return outputs;
  }

  static void expect_close(const io::Array& actual, const io::Array& expected, const std::string& what) {
    ASSERT_TRUE(same_shape_and_type(actual.desc, expected.desc))
        << what << ": " << io::describe(actual.desc) << ", expected " << io::describe(expected.desc);
    double error = 0;
    double largest = 0;
    for (std::size_t i = 0; i < io::elements_of<float>(expected).size(); ++i) {
      const double e = io::elements_of<float>(expected)[i];
      const double difference = std::abs(e - static_cast<double>(io::elements_of<float>(actual)[i]));
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      largest = std::max(largest, std::abs(e));
    }
    EXPECT_LE(error, kTolerance * largest) << what;
  }

  static io::Array zeros(std::vector<std::int64_t> dims) { return *io::make_array(ElementType::kF32, dims); }

  std::filesystem::path folder_ = shared_folder() / "wenet-tiny";
  std::optional<io::NpzReader> archive_;
};

TEST_F(Wenet, EncodesChunkAfterChunkAndScoresThem) {
  constexpr double kCacheFrames = 64;  // left_chunks * chunk_size
  io::Array attention = zeros({4, 4, 64, 40});
  io::Array convolution = zeros({4, 1, 80, 7});
  int chunks = 0;
  for (; archive_->contains(fmt::format("chunk{}_chunk", chunks)); ++chunks) {
    const std::string key = fmt::format("chunk{}_", chunks);
    SCOPED_TRACE(key);
    const io::Array offset = read(key + "offset");
    Arrays inputs = {{"chunk", read(key + "chunk")},
                     {"att_cache", attention},
                     {"cnn_cache", convolution},
                     {"att_mask", read(key + "att_mask")}};
    // Both set shapes or slice positions inside the graph: they are constants of one compilation.
    const Arrays encoded = run("encoder", inputs,
                               {{"offset", {static_cast<double>(io::elements_of<std::int64_t>(offset).front())}},
                                {"required_cache_size", {kCacheFrames}}});
    if (encoded.empty()) return;
    for (const char* name : {"output", "r_att_cache", "r_cnn_cache"})
      expect_close(encoded.at(name), read(key + name), name);
    attention = encoded.at("r_att_cache");
    convolution = encoded.at("r_cnn_cache");
    const Arrays scored = run("ctc", {{"hidden", encoded.at("output")}}, {});
    if (scored.empty()) return;
    expect_close(scored.at("probs"), read(key + "probs"), "probs");
  }
  EXPECT_EQ(chunks, 5);
}

TEST_F(Wenet, RescoresHypothesesInBothDirections) {
  const io::Array lengths = read("decoder_hyps_lens");
  // The graph reverses the hypotheses over the length of the longest, which it computes from the data.
  const Arrays scored =
      run("decoder", {{"hyps", read("decoder_hyps")}, {"hyps_lens", lengths}, {"encoder_out", read("encoder_out")}}, {},
          {{"hyps_lens", std::to_string(std::ranges::max(io::elements_of<std::int64_t>(lengths)))}});
  if (scored.empty()) return;
  expect_close(scored.at("score"), read("decoder_score"), "score");
  expect_close(scored.at("r_score"), read("decoder_r_score"), "r_score");
}

}  // namespace
}  // namespace bantam::testing
