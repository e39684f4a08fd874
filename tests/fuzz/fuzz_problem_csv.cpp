// Planning problems: what parses is solved, proved by the independent verifier, and survives being written and read.
#include "plan/problem_csv.h"
#include "plan/solve.h"
#include "plan/verify.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_problem_csv(std::span<const std::byte> bytes) {
  const auto problem = plan::parse_problem_csv(text_of(bytes));
  if (!problem) {
    require_message(problem.error());
    return;
  }
  const std::string written = plan::format_problem_csv(*problem);
  const auto again = plan::parse_problem_csv(written);
  require(again.has_value(), again ? "" : "a written problem does not parse: " + again.error().message);
  require(plan::format_problem_csv(*again) == written, "a problem changes when written and read");

  // The search adds nothing to what the other layers see, only time; a few steps of it are enough to pass through it.
  constexpr std::int64_t kSearchSteps = 100'000;
  const auto solved = plan::solve(*problem, {.step_budget = kSearchSteps});
  if (!solved) {
    require_message(solved.error());
    return;
  }
  plan::Problem uncapped = *problem;
  uncapped.capacity.reset();
  require(plan::verify(uncapped, solved->solution).has_value(), "the verifier refuses the planner's solution");
  require(solved->lower_bound.bytes <= solved->proven_bound && solved->proven_bound <= solved->solution.peak,
          "bounds and peak are out of order");
  require(plan::parse_problem_csv(plan::format_solution_csv(*problem, solved->solution)).has_value(),
          "a written solution does not parse");
}

}  // namespace bantam::fuzz
