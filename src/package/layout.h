// Where everything of a fleet lies in its arena. One sequence of decisions, used to answer `requirements` and to place,
// so that the two cannot differ. Freestanding.
//
// The arena holds, from its start: activations (one area per group of sessions that exclude each other), links, then
// per session its state and the two copies of its alternating states, then the runtime's structures. A fleet planned
// for several memories has an arena of that order in each tier; the runtime's structures lie in the first.
#pragma once

#include <cstdint>

#include "bantam/runtime.h"
#include "base/shape.h"
#include "package/resolve.h"
#include "package/tables.h"

namespace bantam {

/// Size of the runtime's own objects on a target with the given pointer size.
struct SessionLayout {
  static constexpr std::uint64_t kSessionPointers = 12;
  static constexpr std::uint64_t kSessionWords = 4;

  static constexpr std::uint64_t session_bytes(std::uint64_t pointer_bytes) {
    return kSessionPointers * pointer_bytes + kSessionWords * 4;
  }
  static constexpr std::uint64_t fleet_bytes(std::uint64_t pointer_bytes) { return 2 * pointer_bytes; }
};
/// What a session of a model with dimensions keeps besides: its own copies of the tables that depend on them. One
/// block, in this order; offsets from its start.
struct SizeTables {
  const format::ResolvedKernel* kernels;  ///< by the package's kernel table
  std::uint32_t* params;
  std::int32_t* sizes;  ///< by dimension

  /// A session's values are followed by its SizeTables.
  static SizeTables& of(const void* values, const format::Model& model) {
    return *reinterpret_cast<SizeTables*>(
        const_cast<format::Value*>(static_cast<const format::Value*>(values) + model.values()->size()));
  }

  /// Sets the tables, and the values before them, to what the package has: every dimension at its bound.
  void load(const format::Model& model) {
    auto* values = reinterpret_cast<format::Value*>(this) - model.values()->size();
    const auto* from = reinterpret_cast<const format::Value*>(model.values()->data());
    for (std::uint32_t v = 0; v < model.values()->size(); ++v) values[v] = from[v];
    for (std::uint32_t p = 0; p < model.params()->size(); ++p) params[p] = model.params()->Get(p);
    for (std::uint32_t d = 0; d < format::dimension_count(model); ++d) sizes[d] = model.dimensions()->Get(d)->bound();
  }
};

struct SizeTablesLayout {
  SizeTablesLayout(const format::Model& model, std::uint64_t kernel_count, std::uint64_t pointer_bytes)
      : tables(model.values()->size() * sizeof(format::Value)),
        kernels(tables + 3 * pointer_bytes),
        params(kernels + 2 * kernel_count * pointer_bytes),
        sizes(params + 4 * std::uint64_t{model.params()->size()}),
        bytes(sizes + 4 * std::uint64_t{format::dimension_count(model)}) {}

  std::uint64_t tables;
  std::uint64_t kernels;
  std::uint64_t params;
  std::uint64_t sizes;
  std::uint64_t bytes;
};
static_assert(sizeof(SizeTables) == 3 * sizeof(void*) && sizeof(format::ResolvedKernel) == 2 * sizeof(void*));
static_assert(sizeof(format::Value) % alignof(format::Value) == 0 && alignof(format::Value) >= alignof(void*));

static_assert(sizeof(Session) == SessionLayout::session_bytes(sizeof(void*)));
static_assert(sizeof(Fleet) == SessionLayout::fleet_bytes(sizeof(void*)));

/// What a fleet, or one session alone, needs beyond what each session brings along. Sizes were bounded by
/// format::verify_tables.
struct SharedNeeds {
  std::uint32_t tiers = 1;
  std::uint64_t activation_bytes[format::kMaxTiers] = {};
  std::uint64_t link_bytes = 0;
  std::uint32_t link_tier = 0;
  std::uint64_t sessions = 1;
  std::uint64_t kernels = 0;

  /// Those of the package's fleet. Without groups, all sessions share the activations of the largest.
  static SharedNeeds of(const format::Package& package) {
    SharedNeeds needs;
    needs.tiers = format::tier_count(package);
    needs.link_bytes = package.link_bytes();
    needs.link_tier = package.link_tier();
    needs.sessions = package.fleet()->size();
    needs.kernels = package.kernels()->size();
    for (const format::FleetEntry* entry : *package.fleet()) {
      const format::Model& model = *package.models()->Get(entry->model());
      for (std::uint32_t tier = 0; tier < format::tier_count(model); ++tier) {
        const std::uint64_t end =
            format::area_offset(package, entry->group(), tier) + format::activation_bytes(model, tier);
        if (end > needs.activation_bytes[tier]) needs.activation_bytes[tier] = end;
      }
    }
    return needs;
  }
};

class ArenaLayout {
 public:
  /// Offsets in the arena of a tier; the runtime's objects lie in the first.
  struct SessionPlace {
    std::uint32_t state_tier = 0;
    std::uint64_t state = 0;
    std::uint64_t swap[2] = {};
    std::uint64_t session = 0;  ///< the Session object
    std::uint64_t bases = 0;    ///< its base addresses
    std::uint64_t sizes = 0;    ///< its SizeTables' block, for a model with dimensions
  };

  /// Starts with what the sessions share.
  ArenaLayout(const SharedNeeds& shared, std::uint64_t pointer_bytes)
      : pointer_bytes_(pointer_bytes), kernels_(shared.kernels), tiers_(shared.tiers) {
    for (std::uint32_t tier = 0; tier < tiers_; ++tier) {
      activations[tier] = take(tier, shared.activation_bytes[tier]);
      needs_[tier].activation_bytes = shared.activation_bytes[tier];
    }
    links = take(shared.link_tier, shared.link_bytes);
    needs_[shared.link_tier].link_bytes = shared.link_bytes;
    fleet = take_table(SessionLayout::fleet_bytes(pointer_bytes));
    session_table = take_table(shared.sessions * pointer_bytes);
    kernel_table = take_table(shared.kernels * pointer_bytes);
  }

  /// Adds the next session, with its state in that tier.
  SessionPlace add(const format::Model& model, std::uint32_t state_tier) {
    SessionPlace place;
    place.state_tier = state_tier;
    place.state = take(state_tier, model.state_bytes());
    for (std::uint64_t& copy : place.swap) copy = take(state_tier, model.swap_bytes());
    needs_[state_tier].state_bytes += model.state_bytes() + 2 * model.swap_bytes();
    place.session = take_table(SessionLayout::session_bytes(pointer_bytes_));
    place.bases = take_table(format::slot_count(model) * pointer_bytes_);
    if (format::dimension_count(model) != 0)
      place.sizes = take_table(SizeTablesLayout(model, kernels_, pointer_bytes_).bytes, alignof(format::Value));
    return place;
  }

  /// Needs of everything added so far in one tier.
  Requirements requirements(std::uint32_t tier) const {
    Requirements r = needs_[tier];
    r.arena_bytes = cursor_[tier];
    r.alignment = format::kArenaAlignment;
    return r;
  }

  /// In all tiers, the arena being one block in which their arenas follow one another.
  Requirements requirements() const {
    Requirements sum;
    sum.alignment = format::kArenaAlignment;
    for (std::uint32_t tier = 0; tier < tiers_; ++tier) {
      sum.table_bytes += needs_[tier].table_bytes;
      sum.state_bytes += needs_[tier].state_bytes;
      sum.link_bytes += needs_[tier].link_bytes;
      sum.activation_bytes += needs_[tier].activation_bytes;
    }
    sum.arena_bytes = start_of(tiers_ - 1) + cursor_[tiers_ - 1];
    return sum;
  }

  /// Where the arena of a tier begins when one block holds them all.
  std::uint64_t start_of(std::uint32_t tier) const {
    std::uint64_t start = 0;
    for (std::uint32_t t = 0; t < tier; ++t) start = aligned(start + cursor_[t], format::kArenaAlignment);
    return start;
  }

  std::uint64_t activations[format::kMaxTiers] = {};
  std::uint64_t links = 0;
  std::uint64_t fleet = 0;
  std::uint64_t session_table = 0;
  std::uint64_t kernel_table = 0;

 private:
  static std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
    return static_cast<std::uint64_t>(
        align_up(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(alignment)));
  }
  std::uint64_t take(std::uint32_t tier, std::uint64_t bytes) {
    const std::uint64_t start = aligned(
        cursor_[tier], bytes >= format::kBigBufferBytes ? format::kBigBufferAlignment : format::kBufferAlignment);
    cursor_[tier] = start + bytes;
    return start;
  }
  std::uint64_t take_table(std::uint64_t bytes) { return take_table(bytes, pointer_bytes_); }
  std::uint64_t take_table(std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t start = aligned(cursor_[0], alignment);
    cursor_[0] = start + bytes;
    needs_[0].table_bytes += bytes;
    return start;
  }

  std::uint64_t pointer_bytes_;
  std::uint64_t kernels_;
  std::uint32_t tiers_;
  std::uint64_t cursor_[format::kMaxTiers] = {};
  Requirements needs_[format::kMaxTiers];
};

}  // namespace bantam
