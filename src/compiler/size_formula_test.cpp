#include "compiler/size_formula.h"

#include <gtest/gtest.h>

#include <random>

namespace bantam::compiler {
namespace {

const std::map<std::string, std::int64_t> kSizes = {{"T", 67}, {"U_1", 5}};

TEST(SizeFormula, ComputesWithSizes) {
  EXPECT_EQ(evaluate_formula("(T-3)/4+64", kSizes), 80);
  EXPECT_EQ(evaluate_formula(" 2 * U_1 - T ", kSizes), -57);
  EXPECT_EQ(evaluate_formula("(U_1 - 8) / 2", kSizes), -2);
  EXPECT_EQ(evaluate_formula("12", {}), 12);
}

TEST(SizeFormula, SaysWhatIsWrong) {
  const auto message = [](const char* text) {
    const auto value = evaluate_formula(text, kSizes);
    return value ? std::string("accepted") : value.error().message;
  };
  EXPECT_NE(message("T + V").find("'V' is neither a number nor a dimension"), std::string::npos) << message("T + V");
  EXPECT_NE(message("(T").find("')' is expected"), std::string::npos);
  EXPECT_NE(message("T 3").find("character 3"), std::string::npos) << message("T 3");
  EXPECT_NE(message("T / (U_1 - 5)").find("divisor 0"), std::string::npos);
  EXPECT_NE(message("9223372036854775807 + T").find("64 bits"), std::string::npos);
  EXPECT_NE(message("").find("expected"), std::string::npos);
  EXPECT_NE(message(std::string(100000, '(').c_str()).find("too many"), std::string::npos);
}

TEST(SizeFormula, SurvivesAnyText) {
  std::mt19937 random(7);
  const std::string alphabet = "T3U_1+-*/() .9";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto length = random() % 24; length > 0; --length) text += alphabet[random() % alphabet.size()];
    static_cast<void>(evaluate_formula(text, kSizes));
  }
}

}  // namespace
}  // namespace bantam::compiler
