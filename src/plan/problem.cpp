#include "plan/problem.h"

#include <fmt/format.h>

namespace bantam::plan {

Result<void> validate_buffer(const Buffer& b) {
  if (b.lower < 0 || b.upper <= b.lower || b.upper > kMaxStep)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("buffer '{}' is alive in [{}, {}), expected 0 <= lower < upper <= {}", b.id, b.lower,
                            b.upper, kMaxStep));
  if (b.size < 0 || b.size > kMaxBytes)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("buffer '{}' has size {}, expected 0 to {} bytes", b.id, b.size, kMaxBytes));
  if (b.alignment < 1 || b.alignment > kMaxAlignment || (b.alignment & (b.alignment - 1)) != 0)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("buffer '{}' has alignment {}, expected a power of two up to {}", b.id, b.alignment,
                            kMaxAlignment));
  if (!b.fixed) return {};
  if (*b.fixed < 0 || *b.fixed > kMaxBytes || *b.fixed % b.alignment != 0)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("buffer '{}' is fixed at offset {}, expected a multiple of its alignment {} from 0 to {}",
                            b.id, *b.fixed, b.alignment, kMaxBytes));
  return {};
}

std::string describe(const Buffer& buffer) {
  return fmt::format("'{}' [{}, {}) of {} bytes", buffer.id, buffer.lower, buffer.upper, buffer.size);
}

Result<void> validate(const Problem& problem) {
  if (static_cast<std::int64_t>(problem.buffers.size()) > kMaxBuffers)
    return fail(StatusCode::kUnsupported,
                fmt::format("the problem has {} buffers, expected at most {}", problem.buffers.size(), kMaxBuffers));
  if (problem.capacity && *problem.capacity < 0)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the capacity is {}, expected 0 or more bytes", *problem.capacity));
  std::int64_t total = 0;
  for (const Buffer& b : problem.buffers) {
    if (auto valid = validate_buffer(b); !valid) return valid;
    total += b.size;
    if (total > kMaxBytes)
      return fail(StatusCode::kUnsupported,
                  fmt::format("all sizes up to buffer '{}' together are {} bytes, expected at most {}", b.id, total,
                              kMaxBytes));
  }
  return {};
}

}  // namespace bantam::plan
