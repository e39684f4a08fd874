// Time by stage and memory by source, as `bantam run` accounts for them: what was planned beside what the process uses.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bantam/open_fleet.h"
#include "diagnose/process_memory.h"

namespace bantam::cli {

struct Accounts {
  // Microseconds, over all sessions and rounds.
  double open_us = 0;                        ///< compile, or map and verify
  double place_us = 0;                       ///< arena, threads, tables
  double read_us = 0;                        ///< files read and decoded once, before the first round
  double preprocess_us = 0;                  ///< inputs brought into the tensors; direct pictures are decoded here
  double run_us = 0;                         ///< invokes
  double postprocess_us = 0;                 ///< outputs read
  std::optional<std::uint64_t> stack_bytes;  ///< deepest of one invoke of each session
  std::optional<diagnose::ProcessMemory> at_start;
  std::optional<diagnose::ProcessMemory> opened;
  std::optional<diagnose::ProcessMemory> ran;
  std::vector<std::string> direct_inputs;  ///< "session.input" into which pictures are decoded straight
};

void print_accounts(const Accounts& accounts, const OpenFleet& fleet);
nlohmann::json accounts_json(const Accounts& accounts, const OpenFleet& fleet);

}  // namespace bantam::cli
