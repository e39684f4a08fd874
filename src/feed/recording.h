// Records what goes into and comes out of a fleet's invokes, for replay on a device. Host only; grows in memory, is
// written at the end. Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bantam/runtime.h"
#include "feed/recording_format.h"

namespace bantam::feed {

class Recording {
 public:
  explicit Recording(std::size_t sessions);

  /// Right before the invoke of session number `session`. `linked`: inputs that another session fills, not recorded.
  void add_inputs(std::size_t session, const Session& state, const std::vector<bool>& linked);
  /// Right after it.
  void add_outputs(std::size_t session, const Session& state);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  void add(RecordKind kind, std::size_t session, std::size_t port, const Tensor* tensor);

  std::vector<std::byte> bytes_;
  std::vector<std::size_t> invokes_;  ///< by session
};

}  // namespace bantam::feed
