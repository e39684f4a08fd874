#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fmt/format.h"

namespace bantam::io {
namespace {

/// Closes on every way out; close() reports the write errors that some file systems deliver only then.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

const char* remedy_for(int code) {
  switch (code) {
    case ENOENT: return "check the path; relative paths count from the current folder";
    case EACCES:
    case EPERM: return "check the permissions of the file and of its folders";
    case ENOSPC:
    case EDQUOT: return "free space on the disk";
    default: return "";
  }
}

tl::unexpected<Error> system_failure(const char* action, const std::string& path, int code) {
  return fail(code == ENOENT ? StatusCode::kNotFound : StatusCode::kIo,
              fmt::format("cannot {} '{}': {}", action, path, std::generic_category().message(code)), remedy_for(code));
}

tl::unexpected<Error> is_a_folder(const std::string& path) {
  return fail(StatusCode::kIo, fmt::format("'{}' is a folder, expected a file", path), "name a file");
}

/// Number of bytes read, 0 at the end, -1 with errno on failure.
ssize_t read_some(int fd, std::byte* to, std::size_t size) {
  ssize_t n = 0;
  do n = ::read(fd, to, size);
  while (n < 0 && errno == EINTR);
  return n;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

/// Makes a rename durable. Some file systems cannot flush folders; the rename itself stays atomic there.
void flush_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) ::fsync(fd.get());
}

Result<void> write_directly(const std::string& path, std::span<const std::byte> bytes) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return system_failure("open", path, errno);
  if (!write_all(fd.get(), bytes) || !fd.close()) return system_failure("write", path, errno);
  return {};
}

/// Opens a new file beside `path`, with the permissions that a plain creation would give, and stores its name.
int create_beside(const std::string& path, std::string* name) {
  static std::atomic<unsigned> counter{0};
  constexpr int kAttempts = 100;  // names can only be taken by leftovers of a killed process with the same id
  for (int i = 0; i < kAttempts; ++i) {
    *name = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
    const int fd = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  errno = EEXIST;
  return -1;
}

Result<void> write_and_rename(const std::string& path, std::span<const std::byte> bytes) {
  std::string temporary;
  Descriptor fd(create_beside(path, &temporary));
  if (!fd.valid()) return system_failure("create", path, errno);
  if (write_all(fd.get(), bytes) && ::fsync(fd.get()) == 0 && fd.close() &&
      ::rename(temporary.c_str(), path.c_str()) == 0) {
    flush_folder(path);
    return {};
  }
  const int code = errno;
  ::unlink(temporary.c_str());
  return system_failure("write", path, code);
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path, std::int64_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return system_failure("open", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_failure("read", path, errno);
  if (S_ISDIR(info.st_mode)) return is_a_folder(path);

  // The size is only a hint for the first reservation: the file may grow, and streams have none.
  constexpr std::int64_t kFirstStep = std::int64_t{1} << 16;
  const auto limit = static_cast<std::size_t>(max_bytes);
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  std::size_t step = static_cast<std::size_t>(std::clamp<std::int64_t>(info.st_size, 0, max_bytes)) + 1;
  while (true) {
    if (used == bytes.size()) bytes.resize(std::min(used + step, limit + 1));
    const ssize_t n = read_some(fd.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0) return system_failure("read", path, errno);
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
    if (used > limit)
      return fail(StatusCode::kIo,
                  fmt::format("'{}' has more than {} bytes, the most that is accepted here", path, max_bytes),
                  "check that this is the right file");
    step = std::max(used, static_cast<std::size_t>(kFirstStep));
  }
  bytes.resize(used);
  return bytes;
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return is_a_folder(path);
    if (!S_ISREG(info.st_mode)) return write_directly(path, bytes);
  }
  std::error_code code;
  const auto target = std::filesystem::canonical(path, code);
  return write_and_rename(code ? path : target.string(), bytes);
}

Result<void> write_file(const std::string& path, std::string_view text) { return write_file(path, bytes_of(text)); }

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it has no meaning for regular files.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return system_failure("open", path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_failure("read", path, errno);
  if (S_ISDIR(info.st_mode)) return is_a_folder(path);
  if (!S_ISREG(info.st_mode))
    return fail(StatusCode::kIo, fmt::format("'{}' is a device or pipe, expected a regular file", path),
                "copy its content into a file first");
  if (info.st_size == 0) return MappedFile();
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return system_failure("map", path, errno);
  return MappedFile(std::span(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace bantam::io
