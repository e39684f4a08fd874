// Plans as pictures: fills the views of plan/report.h from what the compiler reports. Called by `bantam plan --map`.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "plan/report.h"

namespace bantam::compiler {

/// The activations of one model in one memory (PlanBlock::tier): time is its steps. With the bounds it meets or misses
/// and what else was tried.
plan::MapView map_of_model(const ModelReport& model, std::uint32_t tier = 0);

/// The whole arena of a fleet that has one: sessions that exclude each other stand one after another, those of other
/// lanes and priorities beside them from the beginning; what is never shared spans them all.
plan::MapView map_of_fleet(const Compiled& compiled);

/// All maps of a fleet: the whole arena, then every model in every memory where it has buffers.
std::vector<plan::MapView> maps_of(const Compiled& compiled);

/// "order: optimal; places: 12 bytes above the lower bound of this order".
std::string describe_bounds(const ModelReport& model);

/// "input", "scratch", ...
const char* kind_name(PlanBlock::Kind kind);

}  // namespace bantam::compiler
