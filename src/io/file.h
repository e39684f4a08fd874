// Whole files: read, map read-only, replace atomically. Used by every host layer that touches the file system.
//
// Errors name the path and the reason the system gave. No shared state; distinct objects may be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bantam/error.h"

namespace bantam::io {

/// Largest file that read_file takes unless told otherwise.
inline constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 31;

/// The bytes of a file or of a stream such as /dev/stdin, which is read to its end. Fails when there are more than
/// `max_bytes`; memory grows with what is really read, never with a claimed size.
Result<std::vector<std::byte>> read_file(const std::string& path, std::int64_t max_bytes = kMaxFileBytes);

/// Replaces `path` by `bytes`, all or nothing: they go to a temporary name in the same folder, are flushed to the disk
/// and renamed. On failure the old file is untouched and the temporary is gone. A symbolic link keeps pointing to its
/// (replaced) target; a device or pipe such as /dev/stdout is written to directly.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);
Result<void> write_file(const std::string& path, std::string_view text);

/// A regular file mapped read-only. The bytes stay valid, at the same address, as long as the object (or the one it was
/// moved to) lives. Whoever shortens the file meanwhile makes later reads of it fault: replace files, do not truncate.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

/// The result, with "path: " before the message of an error.
template <typename T>
Result<T> in_file(const std::string& path, Result<T> result) {
  return std::move(result).map_error([&](Error&& error) { return std::move(error).in(path); });
}

/// The bytes of a text or of any contiguous trivially copyable elements.
inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace bantam::io
