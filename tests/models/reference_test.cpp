// Whole models against recorded results of the engines they come from: what `bantam verify` does, for every case and
// sequence of every model's reference file.
#include "diagnose/reference.h"

#include <gtest/gtest.h>

#include "support/models.h"

namespace bantam::testing {
namespace {

std::string describe(const diagnose::OutputCheck& check) {
  return "case " + check.case_name + ", output " + check.output + ": " + std::to_string(check.mismatches) + " of " +
         std::to_string(check.elements) + " elements differ, largest error " +
         std::to_string(check.max_absolute_error) + ", relative " + std::to_string(check.max_relative_error);
}

void expect_agreement(const TestModel& model, const CompileOptions& compile) {
  diagnose::ReferenceOptions options;
  options.tolerance.floats = model.tolerance;
  options.compile = compile;
  const auto report = diagnose::check_reference(model.reference_spec(), model.reference, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->cases, 0);
  EXPECT_TRUE(report->within);
  for (const diagnose::OutputCheck& check : report->checks) EXPECT_TRUE(check.within) << describe(check);
}

class ModelReference : public ::testing::TestWithParam<TestModel> {};

TEST_P(ModelReference, AgreesInEveryCaseAndSequence) { expect_agreement(GetParam(), {}); }

INSTANTIATE_TEST_SUITE_P(Bundled, ModelReference, ::testing::ValuesIn(bundled_models()), test_name);
INSTANTIATE_TEST_SUITE_P(Shared, ModelReference, ::testing::ValuesIn(shared_models()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ModelReference);

class BundledReference : public ::testing::TestWithParam<TestModel> {};

TEST_P(BundledReference, AgreesWithPlainKernels) { expect_agreement(GetParam(), {.backend = Backend::kReference}); }

TEST_P(BundledReference, AgreesWithTwoThreads) { expect_agreement(GetParam(), {.threads = 2}); }

INSTANTIATE_TEST_SUITE_P(Bundled, BundledReference, ::testing::ValuesIn(bundled_models()), test_name);

TEST(SharedModels, ArePresent) {
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  for (const TestModel& model : shared_models()) {
    EXPECT_TRUE(std::filesystem::exists(model.path)) << model.path;
    EXPECT_TRUE(std::filesystem::exists(model.reference)) << model.reference;
  }
}

TEST(ReferenceCheck, ReportsAnOutputThatDiffers) {
  TestModel model = bundled_models().front();
  diagnose::ReferenceOptions options;
  options.tolerance.floats = 0;
  // The recorded results come from another engine, which sums in another order: not one bit may differ is too much.
  const auto report = diagnose::check_reference(model.reference_spec(), model.reference, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->within);
}

TEST(ReferenceCheck, RefusesTheReferenceOfAnotherModel) {
  const auto models = bundled_models();
  const auto report = diagnose::check_reference(models[0].reference_spec(), models[3].reference, {});
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("no input of the model"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace bantam::testing
