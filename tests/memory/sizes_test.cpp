// Sessions whose dimensions change between invokes: the same results as a compilation for each size, in the same arena,
// without allocating.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/testing/sanitizers.h"
#include "compiler/testing/placed_fleet.h"
#include "diagnose/allocations/allocation_counter.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

using compiler::testing::fill_inputs;
using compiler::testing::place_fleet;
using compiler::testing::PlacedFleet;

/// A model with dimensions, and sizes to run it at.
struct SizedModelCase {
  std::string name;
  ModelSpec spec;  ///< with bounds
  std::vector<std::vector<std::int64_t>> sizes;
};

void PrintTo(const SizedModelCase& c, std::ostream* out) { *out << c.name; }  // NOLINT: GoogleTest's name

/// The sizes first, first + step ... up to last, one dimension; every fourth of them in a sanitized build.
std::vector<std::vector<std::int64_t>> range(std::int64_t first, std::int64_t last, std::int64_t step = 1) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (std::int64_t size = first; size <= last; size += kSanitized ? 4 * step : step) sizes.push_back({size});
  return sizes;
}

std::vector<SizedModelCase> cases() {
  std::vector<SizedModelCase> result;
  result.push_back({"sign", {.path = "models/sign.onnx", .bounds = {{"batch", 8}}}, range(1, 8)});
  const std::filesystem::path wenet = shared_folder() / "wenet-tiny";
  if (!std::filesystem::is_directory(wenet)) return result;
  result.push_back({"ctc", {.path = wenet / "ctc.onnx", .bounds = {{"T", 64}}}, range(1, 64, 3)});
  result.push_back({"decoder_frames",
                    {.path = wenet / "decoder.onnx",
                     .dims = {{"NBEST", 10}, {"L", 20}},
                     .bounds = {{"T", 64}},
                     .counts = {{"hyps_lens", "19"}}},
                    range(1, 64, 9)});
  result.push_back({"decoder_all",
                    {.path = wenet / "nonstreaming/decoder.onnx", .bounds = {{"L", 14}, {"NBEST", 10}, {"T", 40}}},
                    {{14, 10, 40}, {1, 1, 1}, {2, 3, 40}, {13, 10, 7}, {14, 1, 39}, {5, 9, 2}}});
  // The mask covers the cache and what the chunk becomes.
  result.push_back({"encoder_chunk",
                    {.path = wenet / "encoder.onnx",
                     .dims = {{"T_CACHE", 64}},
                     .bounds = {{"T", 67}},
                     .formulas = {{"T_ADD_T_CACHE", "(T - 3) / 4 + 64"}},
                     .values = {{"offset", {64}}, {"required_cache_size", {64}}}},
                    range(7, 67, 12)});
  result.push_back({"encoder_whole",
                    {.path = wenet / "nonstreaming/encoder.onnx",
                     .dims = {{"T_CACHE", 0}},
                     .bounds = {{"T", 200}},
                     .values = {{"offset", {0}}}},
                    range(7, 200, 24)});
  return result;
}

/// The model at fixed sizes.
ModelSpec fixed(const SizedModelCase& model, const std::vector<std::int64_t>& sizes) {
  ModelSpec spec = model.spec;
  std::size_t d = 0;
  for (const auto& [name, bound] : model.spec.bounds) spec.dims[name] = sizes[d++];
  spec.bounds.clear();
  return spec;
}

void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_TRUE(same_shape_and_type(*actual.desc, *expected.desc));
  ASSERT_EQ(expected.desc->type, ElementType::kF32);
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < expected.desc->elements(); ++i) {
    const double right = expected.as<float>()[i];
    const double difference = std::abs(right - static_cast<double>(actual.as<float>()[i]));
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    largest = std::max(largest, std::abs(right));
  }
  EXPECT_LE(error, 1e-5 * largest);
}

class Sizes : public ::testing::TestWithParam<SizedModelCase> {};

TEST_P(Sizes, GiveWhatACompilationForEachGives) {
  const SizedModelCase& model = GetParam();
  auto placed = place_fleet({.models = {model.spec}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  ASSERT_EQ(session.dim_count(), model.spec.bounds.size());
  std::uint32_t seed = 0;
  for (const auto& sizes : model.sizes) {
    SCOPED_TRACE(fmt::format("sizes {}, seed {}", fmt::join(sizes, "x"), ++seed));
    std::vector<DimSize> wanted;
    for (std::size_t d = 0; d < sizes.size(); ++d) wanted.push_back({session.dim_name(d), sizes[d]});
    fill_inputs(session, seed);
    const std::uint64_t before = diagnose::allocation_count();
    const Status set = session.set_dims(wanted);
    const Status too_large = session.set_dim(session.dim_name(0), session.dim_bound(0) + 1);
    const std::uint64_t after = diagnose::allocation_count();
    ASSERT_TRUE(set.ok()) << set.message << ", index " << set.index;
    EXPECT_EQ(too_large.code, StatusCode::kInvalidArgument);
    EXPECT_EQ(after, before);
    EXPECT_EQ(session.dim(session.dim_name(0)), sizes[0]);
    auto other = place_fleet({.models = {fixed(model, sizes)}});
    ASSERT_TRUE(other);
    Session& expected = *other->fleet->session(0);
    fill_inputs(session, seed);
    fill_inputs(expected, seed);
    ASSERT_TRUE(expected.invoke().ok());
    const std::uint64_t before_invoke = diagnose::allocation_count();
    const Status invoked = session.invoke();
    EXPECT_EQ(diagnose::allocation_count(), before_invoke);
    ASSERT_TRUE(invoked.ok()) << invoked.message;
    for (std::size_t o = 0; o < session.output_count(); ++o) expect_close(session.output(o), expected.output(o));
  }
  EXPECT_TRUE(placed->arena.intact());
}

TEST_P(Sizes, StayAsTheyWereAfterAnError) {
  auto placed = place_fleet({.models = {GetParam().spec}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const std::string name(session.dim_name(0));
  const std::int64_t size = session.dim_bound(0) - 1;
  ASSERT_TRUE(session.set_dim(name, size).ok());
  const std::uint64_t bytes = session.output_info(0).bytes;
  EXPECT_EQ(session.set_dim("no such dimension", 1).code, StatusCode::kNotFound);
  EXPECT_EQ(session.set_dim(name, -1).code, StatusCode::kInvalidArgument);
  EXPECT_EQ(session.set_dim(name, session.dim_bound(0) + 1).code, StatusCode::kInvalidArgument);
  const DimSize half[] = {{name, session.dim_least(0)}, {"no such dimension", 1}};
  EXPECT_EQ(session.set_dims(half).code, StatusCode::kNotFound);
  EXPECT_EQ(session.dim(name), size);
  EXPECT_EQ(session.output_info(0).bytes, bytes);
  fill_inputs(session, 1);
  EXPECT_TRUE(session.invoke().ok());
}

INSTANTIATE_TEST_SUITE_P(All, Sizes, ::testing::ValuesIn(cases()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(SharedSizes, ArePresent) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
}

}  // namespace
}  // namespace bantam::testing
