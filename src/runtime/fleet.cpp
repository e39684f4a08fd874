#include <new>

#include "bantam/runtime.h"
#include "package/layout.h"
#include "package/resolve.h"
#include "package/tables.h"
#include "runtime/kernel.h"

namespace bantam {
namespace {

/// Fails unless the memory is aligned and large enough for an arena of these needs.
Status check_arena(std::span<std::byte> arena, const Requirements& need, const char* too_small) {
  const auto offset = reinterpret_cast<std::uintptr_t>(arena.data()) % need.alignment;
  if (offset != 0)
    return failure(StatusCode::kMisaligned, "arena address", static_cast<std::int64_t>(offset),
                   static_cast<std::int64_t>(need.alignment));
  if (arena.size() < need.arena_bytes)
    return failure(StatusCode::kArenaTooSmall, too_small, static_cast<std::int64_t>(arena.size()),
                   static_cast<std::int64_t>(need.arena_bytes));
  return ok_status();
}

/// Fills a SizeTables block with the tables at the sizes that the package has, which are the largest.
Status fill_size_tables(const format::Model& model, const Package& package, std::byte* block) {
  const auto& kernels = *package.meta()->kernels();
  const SizeTablesLayout layout(model, kernels.size(), sizeof(void*));
  auto* tables = new (block + layout.tables) SizeTables();
  auto* resolved = reinterpret_cast<format::ResolvedKernel*>(block + layout.kernels);
  for (std::uint32_t k = 0; k < kernels.size(); ++k)
    BANTAM_RETURN_IF_ERROR(
        format::resolve_kernel(*kernels.Get(k), package.ops(), new (&resolved[k]) format::ResolvedKernel));
  tables->kernels = resolved;
  tables->params = reinterpret_cast<std::uint32_t*>(block + layout.params);
  tables->sizes = reinterpret_cast<std::int32_t*>(block + layout.sizes);
  tables->load(model);
  return ok_status();
}

}  // namespace

Status Fleet::place(const Package& package, std::span<std::byte> arena, Fleet** out) noexcept {
  BANTAM_RETURN_IF_ERROR(check_arena(arena, package.requirements(), "the fleet does not fit the arena"));
  std::byte* tiers[format::kMaxTiers] = {};
  std::byte* next = arena.data();
  for (std::uint32_t t = 0; t < package.tier_count(); ++t) {
    tiers[t] = next;
    next += align_up(static_cast<std::int64_t>(package.tier_requirements(t).arena_bytes),
                     static_cast<std::int64_t>(format::kArenaAlignment));
  }
  return place_at(package, tiers, out);
}

Status Fleet::place(const Package& package, std::span<const std::span<std::byte>> arenas, Fleet** out) noexcept {
  if (arenas.size() != package.tier_count())
    return failure(StatusCode::kInvalidArgument, "the fleet needs one arena per tier",
                   static_cast<std::int64_t>(arenas.size()), static_cast<std::int64_t>(package.tier_count()));
  std::byte* tiers[format::kMaxTiers] = {};
  for (std::uint32_t t = 0; t < package.tier_count(); ++t) {
    BANTAM_RETURN_IF_ERROR(
        check_arena(arenas[t], package.tier_requirements(t), "the fleet does not fit the arena of a tier")
            .at(static_cast<std::int32_t>(t)));
    tiers[t] = arenas[t].data();
  }
  return place_at(package, tiers, out);
}

Status Fleet::place_at(const Package& package, std::byte* const* tiers, Fleet** out) noexcept {
  const format::Package& meta = *package.meta();
  ArenaLayout layout(SharedNeeds::of(meta), sizeof(void*));
  std::byte* const base = tiers[0];
  auto* fleet = new (base + layout.fleet) Fleet();
  fleet->sessions_ = reinterpret_cast<Session**>(base + layout.session_table);
  fleet->count_ = package.session_count();

  auto* kernels = reinterpret_cast<Session::Kernel*>(base + layout.kernel_table);
  for (std::uint32_t k = 0; k < meta.kernels()->size(); ++k) {
    format::ResolvedKernel kernel;
    BANTAM_RETURN_IF_ERROR(format::resolve_kernel(*meta.kernels()->Get(k), package.ops(), &kernel));
    new (&kernels[k]) Session::Kernel{kernel.variant->run};
  }

  for (std::uint32_t i = 0; i < meta.fleet()->size(); ++i) {
    const format::FleetEntry& entry = *meta.fleet()->Get(i);
    const format::Model& model = *meta.models()->Get(entry.model());
    const ArenaLayout::SessionPlace place = layout.add(model, entry.state_tier());
    auto* session = new (base + place.session) Session();
    fleet->sessions_[i] = session;
    session->model_ = &model;
    session->package_ = &meta;
    session->name_ = entry.name()->c_str();
    session->name_length_ = entry.name()->size();
    session->kernels_ = kernels;
    session->steps_ = model.steps()->data();
    session->values_ = model.values()->data();
    session->operands_ = model.operands()->data();
    session->params_ = model.params()->data();
    if (format::dimension_count(model) != 0) {
      BANTAM_RETURN_IF_ERROR(fill_size_tables(model, package, base + place.sizes));
      session->values_ = base + place.sizes;
      session->params_ = SizeTables::of(session->values_, model).params;
    }
    session->weights_ = package.weights();
    session->step_count_ = model.steps()->size();
    session->input_count_ = model.inputs()->size();
    session->output_count_ = model.outputs()->size();
    session->bases_ = reinterpret_cast<std::byte**>(base + place.bases);
    // Weights are only ever read: the verifier refused steps that write to their slot.
    session->bases_[format::kWeights] = const_cast<std::byte*>(package.weights());
    std::byte* const states = tiers[place.state_tier];
    session->bases_[format::kState] = states + place.state;
    session->bases_[format::kSwapRead] = states + place.swap[0];
    session->bases_[format::kSwapWrite] = states + place.swap[1];
    for (std::uint32_t t = 0; t < format::tier_count(model); ++t)
      session->bases_[format::tier_slot(model, t)] =
          tiers[t] + layout.activations[t] + format::area_offset(meta, entry.group(), t);
    for (std::uint32_t p = 0; p < format::port_count(model); ++p) {
      // Ports that nothing placed have no memory until something binds them.
      const format::Port& port = format::port_at(model, p);
      const bool placed = port.default_slot() != format::kUnplaced;
      session->bases_[format::kFirstPort + p] =
          placed ? session->bases_[port.default_slot()] + port.default_offset() : nullptr;
    }
    session->reset();
  }
  for (const format::Link* link : *meta.links()) {
    std::byte* memory = tiers[meta.link_tier()] + layout.links + link->offset();
    Session& producer = *fleet->sessions_[link->producer()];
    producer.bases_[format::kFirstPort + producer.input_count_ + link->output()] = memory;
    fleet->sessions_[link->consumer()]->bases_[format::kFirstPort + link->input()] = memory;
  }
  *out = fleet;
  return ok_status();
}

Session* Fleet::find(std::string_view name) noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (sessions_[i]->name() == name) return sessions_[i];
  return nullptr;
}

}  // namespace bantam
