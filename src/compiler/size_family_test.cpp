#include "compiler/size_family.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/fleet_file.h"
#include "compiler/testing/placed_fleet.h"

namespace bantam::compiler {
namespace {

/// A bundled model whose batch is open.
ModelSpec family(std::vector<std::int64_t> sizes) {
  return {.name = "sign", .path = "models/sign.onnx", .sizes = {{"batch", std::move(sizes)}}};
}

ModelSpec fixed(std::int64_t size) { return {.name = "sign", .path = "models/sign.onnx", .dims = {{"batch", size}}}; }

TEST(SizeFamily, HasAPlanForEverySizeAndTheWeightsOnce) {
  auto fleet = testing::place_fleet({.models = {family({1, 4, 2})}});
  ASSERT_TRUE(fleet);
  ASSERT_EQ(fleet->fleet->size(), 3U);
  std::uint64_t largest = 0;
  std::uint64_t weights = 0;
  for (const std::int64_t size : {1, 2, 4}) {
    SCOPED_TRACE(size);
    const std::string name = "sign@batch:" + std::to_string(size);
    Session* session = fleet->fleet->find(name);
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->input_info(0).desc->dims[0], size);
    auto alone = testing::place_fleet({.models = {fixed(size)}});
    ASSERT_TRUE(alone);
    EXPECT_EQ(testing::run(*session, 3), testing::run(*alone->fleet->session(0), 3));
    // A size's own plan needs what the model would at that size.
    std::size_t index = 0;
    while (fleet->package.session_name(index) != name) ++index;
    EXPECT_EQ(fleet->package.session_requirements(index).arena_bytes, alone->need().arena_bytes);
    largest = std::max(largest, alone->need().activation_bytes);
    weights = std::max(weights, alone->need().weights_bytes);
  }
  EXPECT_EQ(fleet->need().activation_bytes, largest);
  EXPECT_LT(fleet->need().weights_bytes, 2 * weights);
  EXPECT_TRUE(fleet->arena.intact());
}

TEST(SizeFamily, SessionsPickOneSize) {
  const FleetSpec spec{.models = {family({1, 2})}, .sessions = {{"small", "sign@batch:1"}, {"more", "sign@batch:1"}}};
  auto fleet = testing::place_fleet(spec);
  ASSERT_TRUE(fleet);
  EXPECT_EQ(fleet->fleet->find("more")->input_info(0).desc->dims[0], 1);
  const auto unsaid = compile({.models = {family({1, 2})}, .sessions = {{"which", "sign"}}});
  ASSERT_FALSE(unsaid);
  EXPECT_NE(unsaid.error().remedy.find("sign@batch:2"), std::string::npos) << unsaid.error().remedy;
}

TEST(SizeFamily, SizesThatAreNoneAreRefused) {
  for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{
           {}, {0}, {-1}, {1, 2, 1}, {std::int64_t{1} << 40}, std::vector<std::int64_t>(65, 1)}) {
    const auto refused = compile({.models = {family(sizes)}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, StatusCode::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("'batch'"), std::string::npos) << refused.error().message;
  }
  ModelSpec both = family({1, 2});
  both.dims["batch"] = 1;
  EXPECT_FALSE(compile({.models = {both}}));
  ModelSpec unknown = family({1});
  unknown.sizes["nowhere"] = {1, 2};
  EXPECT_FALSE(compile({.models = {unknown}}));
}

TEST(SizeFamily, TwoDimensionsGiveEveryCombination) {
  ModelSpec model = family({1, 2});
  model.sizes["T"] = {8, 16};
  const auto expanded = expand_sizes({.models = {fixed(1), model}});
  ASSERT_TRUE(expanded) << expanded.error().message;
  EXPECT_EQ(expanded->origins, (std::vector<std::size_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(expanded->spec.models[2].name, "sign@T:8,batch:2");
  EXPECT_EQ(expanded->spec.models[2].dims, (std::map<std::string, std::int64_t>{{"T", 8}, {"batch", 2}}));
}

TEST(SizeFamily, OfAFleetFileIsFedAsItsModel) {
  const auto parsed =
      parse_fleet_file("[[model]]\npath = \"sign.onnx\"\nsizes = { batch = [1, 2] }\nlabels = { p = \"l.txt\" }\n",
                       "fleet.toml", "models");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto expanded = expand_families(*parsed);
  ASSERT_TRUE(expanded) << expanded.error().message;
  ASSERT_EQ(expanded->feeds.size(), 2U);
  EXPECT_EQ(expanded->feeds[1].session, "sign@batch:2");
  EXPECT_TRUE(expanded->feeds[1].labels.contains("p"));
}

}  // namespace
}  // namespace bantam::compiler
