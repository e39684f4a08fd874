// Planned models in several memories: what lies in the fast one, what in the slow ones.
//
// Called by the fleet compiler when every model is planned and none is packed yet; without FleetSpec::memories nothing
// of this happens. One joint decision for the fleet: tables lie in the cheapest memory; states, links and the
// activations of every lane and priority compete for what is left of it, by the bytes that an invoke of every session
// accesses there. Models keep their order, kernels and sharing; their buffers move. Host only; no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "compiler/planned_model.h"

namespace bantam::compiler {

/// The fleet's memories that have an arena, the cheapest first. Fails for contradictions among them.
Result<std::vector<MemorySpec>> arena_memories(const FleetSpec& fleet);

/// A model that was planned for sessions of one group.
struct MemoryUser {
  PlannedModel* model = nullptr;
  std::string name;
  std::uint16_t group = 0;    ///< sessions of one lane and priority (compiler/lanes.h)
  std::int64_t sessions = 1;  ///< that run this plan
  PlanOptions options{};      ///< with which it was planned
};

struct MemoryNeeds {
  std::vector<MemoryUser> users;
  std::uint64_t link_bytes = 0;
  std::uint64_t pointer_bytes = 8;
  bool resident = false;    ///< weights stay in what is left of the arenas (FleetSpec::resident)
  double weights_cost = 0;  ///< of a byte of the package; 0: its accesses are not counted, and none are saved
  std::optional<std::uint64_t> budget{};  ///< bytes of all arenas together beyond which no weights are copied
};

struct MemoryChoice {
  std::vector<std::uint8_t> state_tiers;  ///< by user
  std::uint8_t link_tier = 0;
  std::vector<std::uint64_t> accessed_bytes;  ///< by tier
  std::uint64_t copy_accesses = 0;            ///< of these, those of streamed weights
  std::uint64_t weight_bytes = 0;             ///< read from the package's memory
  std::uint64_t weight_reads = 0;             ///< likewise, did no step read a copy
  double cost = 0;                            ///< of all accesses
  double unstreamed = 0;                      ///< the same before weights were streamed
};

/// Has the cheapest memory room for the whole fleet as its models were planned? Then no block need be moved.
bool fits_cheapest(const MemoryNeeds& needs, std::span<const MemorySpec> memories);

/// Do kernels read weights of the package so often that copies could save accesses (weight_streams.h)?
bool may_stream(const MemoryNeeds& needs, std::span<const MemorySpec> memories);

/// Gives every block, state and link a tier and moves the models' values there. When the memories are too small, the
/// Error names the one, the bytes it would need and the layer that needs them. Requires models of whole
/// blocks (PlanOptions), unless the cheapest memory has room for all; the weights of whole ones only are streamed.
Result<MemoryChoice> place_in_memories(const MemoryNeeds& needs, std::span<const MemorySpec> memories);

}  // namespace bantam::compiler
