// Where everything of a fleet lies in its arena. One sequence of decisions, used to answer `requirements` and to place,
// so that the two cannot differ. Freestanding.
//
// The arena holds, from its start: activations (shared by all sessions), links, then per session its state and the two
// copies of its alternating states, then the runtime's structures.
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

class ArenaLayout {
 public:
  struct SessionPlace {
    std::uint64_t state = 0;
    std::uint64_t swap[2] = {};
    std::uint64_t session = 0;  ///< the Session object
    std::uint64_t bases = 0;    ///< its base addresses
    std::uint64_t sizes = 0;    ///< its SizeTables' block, for a model with dimensions
  };

  /// Starts with what the sessions share. Sizes were bounded by format::verify_tables.
  ArenaLayout(std::uint64_t activation_bytes, std::uint64_t link_bytes, std::uint64_t sessions, std::uint64_t kernels,
              std::uint64_t pointer_bytes)
      : pointer_bytes_(pointer_bytes), kernels_(kernels) {
    activations = take(activation_bytes);
    links = take(link_bytes);
    needs_.activation_bytes = activation_bytes;
    needs_.link_bytes = link_bytes;
    fleet = take_table(SessionLayout::fleet_bytes(pointer_bytes));
    session_table = take_table(sessions * pointer_bytes);
    kernel_table = take_table(kernels * pointer_bytes);
  }

  /// Adds the next session.
  SessionPlace add(const format::Model& model) {
    SessionPlace place;
    place.state = take(model.state_bytes());
    for (std::uint64_t& copy : place.swap) copy = take(model.swap_bytes());
    needs_.state_bytes += model.state_bytes() + 2 * model.swap_bytes();
    place.session = take_table(SessionLayout::session_bytes(pointer_bytes_));
    place.bases = take_table((format::kFirstPort + format::port_count(model)) * pointer_bytes_);
    if (format::dimension_count(model) != 0)
      place.sizes = take_table(SizeTablesLayout(model, kernels_, pointer_bytes_).bytes, alignof(format::Value));
    return place;
  }

  /// Needs of everything added so far.
  Requirements requirements() const {
    Requirements r = needs_;
    r.arena_bytes = cursor_;
    r.alignment = format::kArenaAlignment;
    return r;
  }

  std::uint64_t activations = 0;
  std::uint64_t links = 0;
  std::uint64_t fleet = 0;
  std::uint64_t session_table = 0;
  std::uint64_t kernel_table = 0;

 private:
  std::uint64_t take(std::uint64_t bytes) {
    const auto alignment = static_cast<std::int64_t>(bytes >= format::kBigBufferBytes ? format::kBigBufferAlignment
                                                                                      : format::kBufferAlignment);
    const auto start = static_cast<std::uint64_t>(align_up(static_cast<std::int64_t>(cursor_), alignment));
    cursor_ = start + bytes;
    return start;
  }
  std::uint64_t take_table(std::uint64_t bytes) { return take_table(bytes, pointer_bytes_); }
  std::uint64_t take_table(std::uint64_t bytes, std::uint64_t alignment) {
    const auto start =
        static_cast<std::uint64_t>(align_up(static_cast<std::int64_t>(cursor_), static_cast<std::int64_t>(alignment)));
    cursor_ = start + bytes;
    needs_.table_bytes += bytes;
    return start;
  }

  std::uint64_t pointer_bytes_;
  std::uint64_t kernels_;
  std::uint64_t cursor_ = 0;
  Requirements needs_;
};

}  // namespace bantam
