// The convenient way to run on a host: files in, sessions out, memory owned for you.
//
//   auto fleet = bantam::OpenFleet::compile({.models = {{.name = "sign", .path = "models/sign.onnx"}}});
//   bantam::Session& sign = *fleet->find("sign");
//   std::ranges::copy(pixels, sign.input(0).as<float>());
//   if (bantam::Status s = sign.invoke(); !s.ok()) return 1;
//   const float* scores = sign.output(0).as<float>();
//
// Owns the package (compiled in memory, or a mapped .bantam file), the arena and the thread pool; all are released by
// the destructor. After `compile` or `load` returned, nothing allocates. Thread rule: as for Fleet (bantam/runtime.h).
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "bantam/compiler.h"
#include "bantam/error.h"
#include "bantam/runtime.h"

namespace bantam {

class OpenFleet {
 public:
  /// Compiles and places a fleet. options.threads > 1 starts that many threads, shared by all sessions.
  static Result<OpenFleet> compile(const FleetSpec& spec, const CompileOptions& options = {});
  /// Maps and places a .bantam package. `threads` must not exceed what it was planned for; `cpus` as CompileOptions
  /// says.
  static Result<OpenFleet> load(const std::filesystem::path& package, int threads = 1, std::span<const int> cpus = {});

  OpenFleet(OpenFleet&&) noexcept;
  OpenFleet& operator=(OpenFleet&&) noexcept;
  ~OpenFleet();

  std::size_t size() const noexcept;
  Session& session(std::size_t i) noexcept;
  /// The session of that name, or null.
  Session* find(std::string_view name) noexcept;

  const Package& package() const noexcept;
  Requirements requirements() const noexcept;
  std::span<std::byte> arena() noexcept;
  /// Of the whole package, weights included: compiled in memory, or mapped from its file.
  std::size_t package_bytes() const noexcept;
  /// The compiler's report; null for a loaded package.
  const Compiled* compiled() const noexcept;

  /// How long opening took, in microseconds: compiling, or mapping and verifying; then memory, threads and placing.
  struct Times {
    double open_us = 0;
    double place_us = 0;
  };
  const Times& times() const noexcept;

 private:
  struct Parts;
  explicit OpenFleet(std::unique_ptr<Parts> parts);
  static Result<OpenFleet> place(std::unique_ptr<Parts> parts, int threads, std::span<const int> cpus);

  std::unique_ptr<Parts> parts_;
};

}  // namespace bantam
