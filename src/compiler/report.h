// What a plan decided, in the public report's terms.
#pragma once

#include "bantam/compiler.h"
#include "compiler/planned_model.h"

namespace bantam::compiler {

ModelReport report_model(const PlannedModel& model, const std::string& name, std::int64_t weights_bytes,
                         const Target& target);

}  // namespace bantam::compiler
