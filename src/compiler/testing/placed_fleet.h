// Placing fleets in guarded memory and driving their sessions with seeded data, for tests.
//
// Failures go to GoogleTest. One fleet belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/runtime.h"
#include "ops/testing/guarded_memory.h"
#include "schedule/threads/thread_pool.h"

namespace bantam::compiler::testing {

/// A fleet in an arena of exactly the bytes it asked for: one byte beyond lies an inaccessible page, and
/// between the two, as before the arena, canaries.
struct PlacedFleet {
  std::optional<Compiled> compiled;  ///< what place_fleet compiled
  Package package;
  ops::testing::GuardedMemory arena;
  std::optional<ThreadPool> threads;
  Fleet* fleet = nullptr;

  Requirements need() const { return package.requirements(); }
  std::span<std::byte> bytes() const { return arena.bytes(); }
};

/// Empty after a failure, which was reported. The arena is filled with `fill` before placing.
std::optional<PlacedFleet> place_fleet(const FleetSpec& spec, const CompileOptions& options = {},
                                       std::byte fill = ops::testing::kCanary);

/// The same for a package that somebody else made and keeps alive.
std::optional<PlacedFleet> place_package(std::span<const std::byte> package, int threads = 1,
                                         std::byte fill = ops::testing::kCanary);

/// Fills all inputs that no link fills: floats in [-1, 1), integers over their range, 64-bit integers 0 or 1, bools 0
/// or 1. The same seed and shapes give the same data.
void fill_inputs(Session& session, std::uint32_t seed, const std::vector<bool>& linked = {});

/// Contents of all outputs, in order.
std::vector<std::vector<std::byte>> outputs_of(const Session& session);

/// Fills, invokes, expects success, returns the outputs.
std::vector<std::vector<std::byte>> run(Session& session, std::uint32_t seed, const std::vector<bool>& linked = {});

/// Expects equal contents of a tensor: to the bit, or for f32 within 1e-5 of the largest magnitude, or of 1 if all are
/// smaller.
void expect_close(const std::vector<std::byte>& expected, const std::vector<std::byte>& actual, ElementType type);

}  // namespace bantam::compiler::testing
