// Problems and solutions as CSV, in the form of the MiniMalloc benchmark: `id,lower,upper,size` and, where wanted,
// `alignment` and `offset`, in any order, named by the header line. In a problem an offset is a fixed one and an empty
// cell means free; the CSV of a solution has every offset, as MiniMalloc prints it.
//
// Parsing accepts any bytes and answers with a valid Problem or an Error that names the line. Fields may be quoted as
// in RFC 4180. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "plan/problem.h"

namespace bantam::plan {

/// Largest file read_problem_csv takes.
inline constexpr std::int64_t kMaxCsvBytes = std::int64_t{64} << 20;

Result<Problem> parse_problem_csv(std::string_view text);

/// Reads a file. The error names the file.
Result<Problem> read_problem_csv(const std::string& path);

/// Writes what parse_problem_csv reads. Columns `alignment` and `offset` appear only where a buffer needs them.
std::string format_problem_csv(const Problem& problem);

/// The problem with the column `offset` filled. `solution` has an offset for each buffer.
std::string format_solution_csv(const Problem& problem, const Solution& solution);

}  // namespace bantam::plan
