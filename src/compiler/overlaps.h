// Which steps let their result overlap their operand (StorageOptions::overlaps): those that set a model's peak, for as
// long as there are such. Overlapping joins two buffers into one that lives as long as both, which elsewhere would only
// be in the way. Asked by the planner between its attempts; pure.
#pragma once

#include <vector>

#include "compiler/planned_model.h"

namespace bantam::compiler {

/// Adds the steps at which most bytes of this plan are alive and whose kernels permit it to `overlaps`, by node. False
/// when they are all in it: nothing more can be gained.
bool add_overlaps_at_peak(const PlannedModel& model, std::vector<bool>* overlaps);

}  // namespace bantam::compiler
