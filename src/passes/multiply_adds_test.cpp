// Text-to-text tests of multiply_adds.
#include <gtest/gtest.h>

#include "passes/list.h"
#include "passes/testing/text_to_text.h"

namespace bantam::passes {
namespace {

using testing::after;
using testing::normalised;

/// A sum of a product; `outputs`: their lines.
std::string scaled_and_shifted(const std::string& product, const std::string& sum, const std::string& outputs) {
  return R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 "z" = input : f32[3]
    %2 = const : f32[3] {1, 2, 3}
    %3 = const : f32[1] {4}
    %4 = )" +
         product + "\n    %5 = " + sum + "\n" + outputs + "\n  }";
}

std::string fused(const std::string& params) {
  return R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 "z" = input : f32[3]
    %2 = const : f32[3] {1, 2, 3}
    %3 = const : f32[1] {4}
    %4 = multiply_add(%0, %2, %3))" +
         params + R"(
    output "y" %4
  })";
}

TEST(MultiplyAdds, JoinsAProductAndASumWithConstants) {
  const std::string end = R"(    output "y" %5)";
  EXPECT_EQ(after(multiply_adds, scaled_and_shifted("binary(%0, %2) {function=\"mul\"}", "binary(%4, %3)", end)),
            normalised(fused("")));
  EXPECT_EQ(after(multiply_adds,
                  scaled_and_shifted("binary(%2, %0) {function=\"mul\"}", "binary(%3, %4) {activation=\"relu\"}", end)),
            normalised(fused(" {activation=\"relu\"}")));
}

TEST(MultiplyAdds, LeavesWhatIsReadElsewhereOrIsNoConstantOrHasAnActivation) {
  const std::string end = R"(    output "y" %5)";
  for (const std::string& text :
       {scaled_and_shifted("binary(%0, %2) {function=\"mul\"}", "binary(%4, %3)", end + "\n    output \"w\" %4"),
        scaled_and_shifted("binary(%0, %1) {function=\"mul\"}", "binary(%4, %3)", end),
        scaled_and_shifted("binary(%0, %2) {function=\"mul\"}", "binary(%4, %1)", end),
        scaled_and_shifted("binary(%0, %2) {function=\"mul\", activation=\"relu\"}", "binary(%4, %3)", end),
        scaled_and_shifted("binary(%0, %2)", "binary(%4, %3)", end),
        scaled_and_shifted("binary(%0, %2) {function=\"mul\"}", "binary(%4, %3) {function=\"sub\"}", end)})
    EXPECT_EQ(after(multiply_adds, text), normalised(text));
}

}  // namespace
}  // namespace bantam::passes
