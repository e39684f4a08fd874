// From planned models to package data: packs weights for the chosen kernels and writes the tables.
#pragma once

#include "bantam/error.h"
#include "compiler/planned_model.h"
#include "package/writer/package_data.h"

namespace bantam::compiler {

/// Appends the model to the package. Returns the bytes of weights it uses, shared ones included.
Result<std::int64_t> emit_model(const PlannedModel& model, const std::string& name, format::PackageData& package);

}  // namespace bantam::compiler
