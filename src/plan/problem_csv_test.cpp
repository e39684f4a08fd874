#include "plan/problem_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/testing/instances.h"

namespace bantam::plan {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto problem = parse_problem_csv(text);
  return problem ? "no error" : problem.error().message;
}

TEST(ProblemCsvTest, ReadsTheBenchmarkForm) {
  const auto problem = parse_problem_csv("id,lower,upper,size\n0,5,9,100\n1,0,5,7\n");
  ASSERT_TRUE(problem) << problem.error().message;
  ASSERT_EQ(problem->buffers.size(), 2U);
  EXPECT_EQ(problem->buffers[0].id, "0");
  EXPECT_EQ(problem->buffers[0].lower, 5);
  EXPECT_EQ(problem->buffers[0].upper, 9);
  EXPECT_EQ(problem->buffers[0].size, 100);
  EXPECT_EQ(problem->buffers[0].alignment, 1);
  EXPECT_FALSE(problem->buffers[0].fixed);
}

TEST(ProblemCsvTest, ColumnsMayComeInAnyOrderAndOptionalCellsMayBeEmpty) {
  const auto problem = parse_problem_csv("size,offset,id,alignment,upper,lower\r\n64,128,a,64,3,1\r\n8,,b,,2,0");
  ASSERT_TRUE(problem) << problem.error().message;
  ASSERT_EQ(problem->buffers.size(), 2U);
  EXPECT_EQ(problem->buffers[0].alignment, 64);
  EXPECT_EQ(problem->buffers[0].fixed, 128);
  EXPECT_EQ(problem->buffers[1].alignment, 1);
  EXPECT_EQ(problem->buffers[1].fixed, std::nullopt);
}

TEST(ProblemCsvTest, SkipsBlankLinesSpacesAndByteOrderMark) {
  const auto problem = parse_problem_csv("\xef\xbb\xbfid, lower, upper, size\n\n a ,0, 1 ,\t2\n\n");
  ASSERT_TRUE(problem) << problem.error().message;
  ASSERT_EQ(problem->buffers.size(), 1U);
  EXPECT_EQ(problem->buffers[0].id, "a");
  EXPECT_EQ(problem->buffers[0].size, 2);
}

TEST(ProblemCsvTest, HeaderAloneIsAnEmptyProblem) {
  const auto problem = parse_problem_csv("id,lower,upper,size");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_TRUE(problem->buffers.empty());
}

TEST(ProblemCsvTest, QuotedNamesSurviveWritingAndReading) {
  Problem problem;
  for (const char* id : {"plain", "a,b", "say \"hi\"", "two\nlines", " spaces ", ""})
    problem.buffers.push_back({.id = id, .lower = 1, .upper = 4, .size = 16});
  const auto again = parse_problem_csv(format_problem_csv(problem));
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->buffers.size(), problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) EXPECT_EQ(again->buffers[i].id, problem.buffers[i].id);
}

TEST(ProblemCsvTest, RandomProblemsSurviveWritingAndReading) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Problem problem = testing::random_problem(seed, {.max_alignment = 32, .fix_some = true});
    const auto again = parse_problem_csv(format_problem_csv(problem));
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(again->buffers.size(), problem.buffers.size());
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      EXPECT_EQ(again->buffers[i].lower, problem.buffers[i].lower);
      EXPECT_EQ(again->buffers[i].upper, problem.buffers[i].upper);
      EXPECT_EQ(again->buffers[i].size, problem.buffers[i].size);
      EXPECT_EQ(again->buffers[i].alignment, problem.buffers[i].alignment);
      EXPECT_EQ(again->buffers[i].fixed, problem.buffers[i].fixed);
    }
  }
}

TEST(ProblemCsvTest, SolutionAddsTheOffsetColumn) {
  Problem problem;
  problem.buffers.push_back({.id = "a", .lower = 0, .upper = 2, .size = 10});
  problem.buffers.push_back({.id = "b", .lower = 1, .upper = 3, .size = 20});
  EXPECT_EQ(format_solution_csv(problem, {.offsets = {20, 0}, .peak = 30, .method = "test"}),
            "id,lower,upper,size,offset\na,0,2,10,20\nb,1,3,20,0\n");
}

TEST(ProblemCsvTest, EveryDefectNamesItsLine) {
  EXPECT_THAT(error_of(""), HasSubstr("line 1"));
  EXPECT_THAT(error_of("id,lower,upper"), HasSubstr("line 1: column 'size' is missing"));
  EXPECT_THAT(error_of("id,lower,upper,size,colour"), HasSubstr("unknown column 'colour'"));
  EXPECT_THAT(error_of("id,lower,upper,size,id"), HasSubstr("column 'id' appears twice"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1\n"), HasSubstr("line 2: 3 fields, expected 4"));
  EXPECT_THAT(error_of("id,lower,upper,size\n\na,0,1,2,3\n"), HasSubstr("line 3: 5 fields, expected 4"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,ten\n"), HasSubstr("line 2: size is 'ten'"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,1e3\n"), HasSubstr("size is '1e3'"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,\n"), HasSubstr("size is ''"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,99999999999999999999\n"), HasSubstr("line 2"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,9223372036854775807\n"), HasSubstr("line 2: buffer 'a' has size"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,0,1,-1\n"), HasSubstr("line 2: buffer 'a' has size -1"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,-1,1,1\n"), HasSubstr("line 2: buffer 'a' is alive in [-1, 1)"));
  EXPECT_THAT(error_of("id,lower,upper,size\na,1,1,1\n"), HasSubstr("line 2: buffer 'a' is alive in [1, 1)"));
  EXPECT_THAT(error_of("id,lower,upper,size,alignment\na,0,1,1,3\n"), HasSubstr("alignment 3"));
  EXPECT_THAT(error_of("id,lower,upper,size,alignment,offset\na,0,1,1,4,6\n"), HasSubstr("fixed at offset 6"));
  EXPECT_THAT(error_of("id,lower,upper,size\n\"a,0,1,1\n"), HasSubstr("line 2: a quoted field is not closed"));
  EXPECT_THAT(error_of("id,lower,upper,size\n\"a\"b,0,1,1\n"), HasSubstr("line 2: text after a quoted field"));
  EXPECT_THAT(error_of(std::string(100000, ',')), HasSubstr("too many fields"));
}

TEST(ProblemCsvTest, SumsThatCouldOverflowAreRefused) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 20; ++i) text += "b,0,1,1000000000000000000\n";
  EXPECT_THAT(error_of(text), HasSubstr("together"));
}

TEST(ProblemCsvTest, AnyBytesGiveAProblemOrAnError) {
  const std::string_view alphabet = "id,lower,upper,size\n\r\"0123456789-,,,\n\n \t\xef\xbb\xbf\0x";
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string text = seed % 2 == 0 ? "id,lower,upper,size\na,0,9,4\nb,3,5,7\n" : "";
    for (std::uint64_t edits = random() % 12; edits > 0; --edits)
      text.insert(random() % (text.size() + 1), 1, alphabet[random() % alphabet.size()]);
    const auto problem = parse_problem_csv(text);
    if (problem)
      EXPECT_TRUE(validate(*problem));
    else
      EXPECT_THAT(problem.error().message, ::testing::AnyOf(HasSubstr("line "), HasSubstr("together")));
  }
}

TEST(ProblemCsvTest, MissingFileIsNamed) {
  const auto problem = read_problem_csv("/nonexistent/problem.csv");
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, StatusCode::kIo);
  EXPECT_THAT(problem.error().message, HasSubstr("/nonexistent/problem.csv"));
}

}  // namespace
}  // namespace bantam::plan
