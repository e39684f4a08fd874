// bantam plan --frontier, a way of planning of its own: called by plan.cpp with what its options say. Prints, and
// returns the exit code.
#pragma once

#include <string>

#include "cli.h"

namespace bantam::cli {

struct FrontierArguments {
  const ModelOptions& models;
  const std::string& map;  ///< file for the curve, .svg or .html; empty: none
  bool measure = false;    ///< run every plan
  bool json = false;
};

int plan_frontier(const FrontierArguments& options);

}  // namespace bantam::cli
