#include <cstring>

#include "bantam/runtime.h"
#include "base/hash.h"
#include "package/layout.h"
#include "package/tables.h"
#include "package/verify.h"

namespace bantam {
namespace {

Status bad(const char* message, std::uint64_t found = 0, std::uint64_t expected = 0) {
  return failure(StatusCode::kInvalidPackage, message, static_cast<std::int64_t>(found),
                 static_cast<std::int64_t>(expected));
}

Status verify_header(std::span<const std::byte> bytes, const format::Header& header) {
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0) return bad("not a Bantam package");
  if (header.version != format::kVersion)
    return failure(StatusCode::kUnsupported, "package format version", header.version, format::kVersion);
  if (header.header_hash != hash64(&header, sizeof header - sizeof header.header_hash))
    return bad("the header is damaged");
  if (header.file_bytes != bytes.size())
    return bad("the package is truncated or padded", bytes.size(), header.file_bytes);
  if (header.weights_offset % format::kWeightAlignment != 0 || header.weights_offset < sizeof header ||
      header.weights_offset > bytes.size() || header.meta_bytes > header.weights_offset - sizeof header)
    return bad("the header's sizes contradict each other");
  return ok_status();
}

Status verify_structure(const std::byte* meta, std::uint64_t meta_bytes) {
  // Every table of the format is at most three levels deep; the generous table count is bounded by the bytes anyway.
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(meta), static_cast<std::size_t>(meta_bytes), 8,
                                 1U << 24);
  if (meta_bytes < 8 || meta_bytes >= FLATBUFFERS_MAX_BUFFER_SIZE || !format::VerifyPackageBuffer(verifier))
    return bad("the package's tables are malformed");
  return ok_status();
}

/// Kernels of the package that one model calls.
std::uint64_t kernels_used(const format::Package& package, const format::Model& model) {
  std::uint64_t used = 0;
  for (std::uint32_t k = 0; k < package.kernels()->size(); ++k) {
    for (const format::Step* step : *model.steps()) {
      if (step->kernel() != k) continue;
      ++used;
      break;
    }
  }
  return used;
}

/// Memory of the ports that something outside the model's own plan has to provide.
std::uint64_t unplaced_port_bytes(const format::Model& model) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < format::port_count(model); ++i) {
    const format::Port& port = format::port_at(model, i);
    if (port.default_slot() == format::kUnplaced)
      bytes += static_cast<std::uint64_t>(
          align_up(static_cast<std::int64_t>(port.bytes()), static_cast<std::int64_t>(format::kBufferAlignment)));
  }
  return bytes;
}

ArenaLayout fleet_layout(const format::Package& package, std::size_t pointer_bytes) {
  ArenaLayout layout(SharedNeeds::of(package), pointer_bytes);
  for (const format::FleetEntry* entry : *package.fleet())
    layout.add(*package.models()->Get(entry->model()), entry->state_tier());
  return layout;
}

}  // namespace

Status Package::open(std::span<const std::byte> bytes, const Options& options, Package* out) noexcept {
  format::Header header;
  if (bytes.size() < sizeof header) return bad("too short for a package", bytes.size(), sizeof header);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % format::kWeightAlignment != 0)
    return failure(StatusCode::kMisaligned, "package address",
                   static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes.data()) % format::kWeightAlignment),
                   format::kWeightAlignment);
  std::memcpy(&header, bytes.data(), sizeof header);
  BANTAM_RETURN_IF_ERROR(verify_header(bytes, header));
  const std::byte* meta = bytes.data() + sizeof header;
  if (hash64(meta, static_cast<std::size_t>(header.meta_bytes)) != header.meta_hash)
    return bad("the tables are damaged");
  BANTAM_RETURN_IF_ERROR(verify_structure(meta, header.meta_bytes));
  const std::byte* weights = bytes.data() + header.weights_offset;
  const std::uint64_t weights_bytes = bytes.size() - header.weights_offset;
  if (options.verify_weights && hash64(weights, static_cast<std::size_t>(weights_bytes)) != header.weights_hash)
    return bad("the weights are damaged");

  const format::Package* package = format::GetPackage(meta);
  BANTAM_RETURN_IF_ERROR(format::verify_tables(*package, weights_bytes, weights, options.ops));
  out->meta_ = package;
  out->weights_ = weights;
  out->weights_bytes_ = weights_bytes;
  out->ops_ = options.ops;
  return ok_status();
}

std::size_t Package::model_count() const noexcept { return meta_->models()->size(); }

std::string_view Package::model_metadata(std::size_t model, std::string_view key) const noexcept {
  const auto* entries = meta_->models()->Get(static_cast<std::uint32_t>(model))->metadata();
  if (entries == nullptr) return {};
  for (std::uint32_t i = 0; i + 1 < entries->size(); i += 2)
    if (format::view(entries->Get(i)) == key) return format::view(entries->Get(i + 1));
  return {};
}

std::string_view Package::model_name(std::size_t model) const noexcept {
  return format::view(meta_->models()->Get(static_cast<std::uint32_t>(model))->name());
}

std::size_t Package::model_input_count(std::size_t model) const noexcept {
  return meta_->models()->Get(static_cast<std::uint32_t>(model))->inputs()->size();
}

std::size_t Package::model_output_count(std::size_t model) const noexcept {
  return meta_->models()->Get(static_cast<std::uint32_t>(model))->outputs()->size();
}

PortInfo Package::model_input(std::size_t model, std::size_t i) const noexcept {
  const format::Model& m = *meta_->models()->Get(static_cast<std::uint32_t>(model));
  return format::port_info(m, static_cast<std::uint32_t>(i), m.values()->data());
}

PortInfo Package::model_output(std::size_t model, std::size_t i) const noexcept {
  return model_input(model, model_input_count(model) + i);
}

std::size_t Package::session_count() const noexcept { return meta_->fleet()->size(); }

std::string_view Package::session_name(std::size_t session) const noexcept {
  return format::view(meta_->fleet()->Get(static_cast<std::uint32_t>(session))->name());
}

std::size_t Package::session_model(std::size_t session) const noexcept {
  return meta_->fleet()->Get(static_cast<std::uint32_t>(session))->model();
}

std::string_view Package::session_lane(std::size_t session) const noexcept {
  if (meta_->groups() == nullptr) return {};
  const std::uint32_t group = meta_->fleet()->Get(static_cast<std::uint32_t>(session))->group();
  return format::view(meta_->lanes()->Get(meta_->groups()->Get(group)->lane()));
}

int Package::session_priority(std::size_t session) const noexcept {
  if (meta_->groups() == nullptr) return 0;
  return meta_->groups()->Get(meta_->fleet()->Get(static_cast<std::uint32_t>(session))->group())->priority();
}

std::size_t Package::tier_count() const noexcept { return format::tier_count(*meta_); }

std::string_view Package::tier_name(std::size_t tier) const noexcept {
  return meta_->tiers() == nullptr ? std::string_view()
                                   : format::view(meta_->tiers()->Get(static_cast<std::uint32_t>(tier))->name());
}

Requirements Package::requirements(std::size_t pointer_bytes) const noexcept {
  Requirements r = fleet_layout(*meta_, pointer_bytes).requirements();
  r.weights_bytes = weights_bytes_;
  return r;
}

Requirements Package::tier_requirements(std::size_t tier, std::size_t pointer_bytes) const noexcept {
  return fleet_layout(*meta_, pointer_bytes).requirements(static_cast<std::uint32_t>(tier));
}

Requirements Package::session_requirements(std::size_t session, std::size_t pointer_bytes) const noexcept {
  const format::FleetEntry& entry = *meta_->fleet()->Get(static_cast<std::uint32_t>(session));
  const format::Model& model = *meta_->models()->Get(entry.model());
  SharedNeeds needs;
  needs.tiers = format::tier_count(*meta_);
  for (std::uint32_t tier = 0; tier < format::tier_count(model); ++tier)
    needs.activation_bytes[tier] = format::activation_bytes(model, tier);
  needs.link_bytes = unplaced_port_bytes(model);
  needs.link_tier = meta_->link_tier();
  needs.kernels = kernels_used(*meta_, model);
  ArenaLayout layout(needs, pointer_bytes);
  layout.add(model, entry.state_tier());
  Requirements r = layout.requirements();
  r.weights_bytes = weights_bytes_;
  return r;
}

}  // namespace bantam
