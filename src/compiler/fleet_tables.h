// The tables of a fleet inside a larger configuration file, whose other tables the caller reads.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <string>

#include "compiler/fleet_file.h"

namespace bantam {

/// budget, weights, [[memory]], [[model]], [[session]] and [[link]] of `root`, as in a fleet file; other keys are the
/// caller's to check, and there may be no model. `name` and `directory` as in parse_fleet_file.
Result<FleetFile> read_fleet(const toml::table& root, const std::string& name, const std::filesystem::path& directory);

}  // namespace bantam
