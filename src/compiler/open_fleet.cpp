#include "bantam/open_fleet.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "io/file.h"
#include "package/writer/package_data.h"
#include "schedule/threads/thread_pool.h"

namespace bantam {

struct OpenFleet::Parts {
  std::optional<Compiled> compiled;
  std::optional<io::MappedFile> file;
  Package package;
  std::optional<ThreadPool> threads;
  format::PackageBytes arena;                // the same alignment serves arena and package
  std::vector<format::PackageBytes> inputs;  // that have no place in the arena
  Fleet* fleet = nullptr;
  Times times;
};

namespace {

class Stopwatch {
 public:
  double microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Inputs that the application was to give memory of its own (ModelSpec::external_inputs): here it is.
Result<void> bind_inputs(Session& session, std::vector<format::PackageBytes>& memory) {
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    const Tensor input = session.input(i);
    if (input.data != nullptr) continue;
    const auto bytes = static_cast<std::size_t>(input.desc->bytes());
    memory.emplace_back(bytes);
    if (memory.back().data() == nullptr)
      return fail(StatusCode::kArenaTooSmall, fmt::format("the host has no {} bytes left for an input", bytes),
                  "free memory or use a smaller fleet");
    if (const Status bound = session.bind_input(i, memory.back().data(), bytes); !bound.ok())
      return fail(error_from(bound));
  }
  return {};
}

}  // namespace

OpenFleet::OpenFleet(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OpenFleet::OpenFleet(OpenFleet&&) noexcept = default;
OpenFleet& OpenFleet::operator=(OpenFleet&&) noexcept = default;
OpenFleet::~OpenFleet() = default;

Result<OpenFleet> OpenFleet::compile(const FleetSpec& spec, const CompileOptions& options) {
  const Stopwatch stopwatch;
  auto compiled = bantam::compile(spec, options);
  if (!compiled) return fail(std::move(compiled.error()));
  auto parts = std::make_unique<Parts>();
  parts->compiled = std::move(*compiled);
  // The compiler has verified its package; opening it again gives the view.
  if (const Status s = Package::open(parts->compiled->package(), &parts->package); !s.ok()) return fail(error_from(s));
  parts->times.open_us = stopwatch.microseconds();
  return place(std::move(parts), options.threads, options.cpus);
}

Result<OpenFleet> OpenFleet::load(const std::filesystem::path& package, int threads, std::span<const int> cpus) {
  const Stopwatch stopwatch;
  auto file = io::MappedFile::open(package);
  if (!file) return fail(std::move(file.error()));
  auto parts = std::make_unique<Parts>();
  parts->file = std::move(*file);
  if (const Status s = Package::open(parts->file->bytes(), &parts->package); !s.ok())
    return fail(error_from(s, "make the package again with `bantam pack`").in(package.string()));
  parts->times.open_us = stopwatch.microseconds();
  return place(std::move(parts), threads, cpus);
}

Result<OpenFleet> OpenFleet::place(std::unique_ptr<Parts> parts, int threads, std::span<const int> cpus) {
  const Stopwatch stopwatch;
  auto pool = ThreadPool::create(threads, cpus);
  if (!pool) return fail(std::move(pool.error()));
  parts->threads = std::move(*pool);
  const Requirements need = parts->package.requirements();
  parts->arena = format::PackageBytes(static_cast<std::size_t>(need.arena_bytes));
  if (parts->arena.data() == nullptr)
    return fail(StatusCode::kArenaTooSmall,
                fmt::format("the host has no {} bytes left for the arena", need.arena_bytes),
                "free memory or use a smaller fleet");
  const Status placed =
      Fleet::place(parts->package, {parts->arena.data(), static_cast<std::size_t>(need.arena_bytes)}, &parts->fleet);
  if (!placed.ok()) return fail(error_from(placed));
  for (std::size_t i = 0; i < parts->fleet->size(); ++i) {
    const Status set = parts->fleet->session(i)->set_threads(parts->threads->threads());
    if (!set.ok()) return fail(error_from(set, "pack the fleet again with --threads"));
    if (auto bound = bind_inputs(*parts->fleet->session(i), parts->inputs); !bound)
      return fail(std::move(bound.error()));
  }
  parts->times.place_us = stopwatch.microseconds();
  return OpenFleet(std::move(parts));
}

std::size_t OpenFleet::size() const noexcept { return parts_->fleet->size(); }
Session& OpenFleet::session(std::size_t i) noexcept { return *parts_->fleet->session(i); }
Session* OpenFleet::find(std::string_view name) noexcept { return parts_->fleet->find(name); }
const Package& OpenFleet::package() const noexcept { return parts_->package; }
Requirements OpenFleet::requirements() const noexcept { return parts_->package.requirements(); }
std::span<std::byte> OpenFleet::arena() noexcept {
  return {parts_->arena.data(), static_cast<std::size_t>(requirements().arena_bytes)};
}
std::size_t OpenFleet::package_bytes() const noexcept {
  return parts_->compiled ? parts_->compiled->package().size() : parts_->file->bytes().size();
}
const OpenFleet::Times& OpenFleet::times() const noexcept { return parts_->times; }
const Compiled* OpenFleet::compiled() const noexcept { return parts_->compiled ? &*parts_->compiled : nullptr; }

}  // namespace bantam
