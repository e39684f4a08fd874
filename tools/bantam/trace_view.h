// How `bantam run --trace` shows what passed through every step of a session.
#pragma once

#include <nlohmann/json.hpp>

#include "bantam/compiler.h"
#include "bantam/runtime.h"
#include "diagnose/trace.h"

namespace bantam::cli {

/// `report`: of the session's model where it was compiled here, for the names of tensors; null for a package.
void print_trace(const Session& session, const ModelReport* report, const diagnose::Trace& trace);

/// One object per result of a step that ran.
nlohmann::json trace_json(const Session& session, const ModelReport* report, const diagnose::Trace& trace);

}  // namespace bantam::cli
