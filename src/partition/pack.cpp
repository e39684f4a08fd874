#include "partition/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/file.h"

namespace bantam::partition {
namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& path) {
  // A trailing slash leaves no file name.
  const fs::path normal = fs::absolute(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

/// The entries of a folder, sorted by name.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code))
    return fail(fs::exists(folder, code) ? StatusCode::kInvalidArgument : StatusCode::kNotFound,
                fmt::format("'{}' is no folder", folder.string()), "name folders of models");
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code))
    entries.push_back(entry->path());
  if (code) return fail(StatusCode::kIo, fmt::format("cannot list '{}': {}", folder.string(), code.message()));
  std::ranges::sort(entries, {}, [](const fs::path& p) { return p.filename().string(); });
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

class FolderReader {
 public:
  Result<ModelFolders> run(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders)
      if (auto done = read_folder(folder); !done) return fail(std::move(done.error()));
    if (!findings_.ok()) return fail(findings_.to_error(StatusCode::kInvalidArgument));
    if (result_.models.empty())
      return fail(StatusCode::kInvalidArgument, "there is no model in the folders given",
                  "a model is a folder of files");
    std::ranges::sort(result_.models, {}, &PackedModel::name);
    return std::move(result_);
  }

 private:
  Result<void> read_folder(const fs::path& folder) {
    const auto entries = entries_of(folder);
    if (!entries) return fail(entries.error());
    if (std::ranges::none_of(*entries, is_folder)) return read_model(folder, *entries);
    for (const fs::path& entry : *entries) {
      if (!is_folder(entry)) {
        result_.ignored.push_back(entry.string());
        continue;
      }
      const auto files = entries_of(entry);
      if (!files) return fail(files.error());
      if (auto done = read_model(entry, *files); !done) return done;
    }
    return {};
  }

  Result<void> read_model(const fs::path& folder, const std::vector<fs::path>& entries) {
    PackedModel model{name_of(folder), {}};
    const std::string object = quote(folder.string(), kPathLimit);
    check_name(object, model.name);
    if (entries.empty()) findings_.error(object, -1, "is empty", "put the model's files into it, or remove it");
    for (const fs::path& entry : entries) {
      const std::string file = quote(entry.string(), kPathLimit);
      check_name(file, entry.filename().string());
      if (!is_file(entry)) {
        findings_.error(file, -1, "is no regular file: a model is a folder of files only", "move it elsewhere");
        continue;
      }
      auto bytes = io::read_file(entry.string(), kMaxImageBytes - total_);
      if (!bytes) return fail(std::move(bytes.error()));
      total_ += static_cast<std::int64_t>(bytes->size());
      model.files.push_back({entry.filename().string(), std::move(*bytes)});
    }
    if (const auto same = std::ranges::find(result_.models, model.name, &PackedModel::name);
        same != result_.models.end())
      findings_.error(object, -1, "has the name of another model", "rename one of the two folders");
    result_.models.push_back(std::move(model));
    return {};
  }

  void check_name(const std::string& object, const std::string& name) {
    if (const std::string problem = name_problem(name); !problem.empty())
      findings_.error(object, -1, fmt::format("the name {} {}", quote(name), problem), "rename it");
  }

  static constexpr std::size_t kPathLimit = 4096;

  ModelFolders result_;
  Findings findings_;
  std::int64_t total_ = 0;
};

void put_u32(std::vector<std::byte>& to, std::uint64_t value) {
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

void put_name(std::vector<std::byte>& to, const std::string& name) {
  const auto bytes = io::bytes_of(name);
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.resize(to.size() + kNameBytes - bytes.size());
}

std::uint64_t align(std::uint64_t at, std::uint32_t alignment) { return (at + alignment - 1) & ~(alignment - 1ULL); }

}  // namespace

Result<ModelFolders> read_model_folders(const std::vector<std::string>& folders) { return FolderReader().run(folders); }

Result<void> order_models(std::vector<PackedModel>& models, const std::vector<std::string>& order) {
  auto next = models.begin();
  for (const std::string& name : order) {
    const auto found = std::find_if(next, models.end(), [&](const PackedModel& m) { return m.name == name; });
    if (found == models.end())
      return fail(StatusCode::kNotFound,
                  fmt::format("the order names {}, which is no model or was named before", quote(name)),
                  "name each model of the folders at most once");
    std::rotate(next, found, found + 1);
    ++next;
  }
  return {};
}

Result<std::vector<std::byte>> build_image(const std::vector<PackedModel>& models, std::uint32_t alignment) {
  std::uint64_t header = kCountBytes;
  for (const PackedModel& model : models) header += kModelEntryBytes + model.files.size() * kFileEntryBytes;
  std::uint64_t end = header;
  for (const PackedModel& model : models)
    for (const PackedFile& file : model.files) end = align(end, alignment) + file.bytes.size();
  if (end > static_cast<std::uint64_t>(kMaxImageBytes))
    return fail(StatusCode::kUnsupported,
                fmt::format("the image would have {} bytes, at most {} are possible", end, kMaxImageBytes),
                "leave out models");

  std::vector<std::byte> image;
  image.reserve(static_cast<std::size_t>(end));
  put_u32(image, models.size());
  end = header;
  for (const PackedModel& model : models) {
    put_name(image, model.name);
    put_u32(image, model.files.size());
    for (const PackedFile& file : model.files) {
      end = align(end, alignment);
      put_name(image, file.name);
      put_u32(image, end);
      put_u32(image, file.bytes.size());
      end += file.bytes.size();
    }
  }
  for (const PackedModel& model : models)
    for (const PackedFile& file : model.files) {
      image.resize(static_cast<std::size_t>(align(image.size(), alignment)));
      image.insert(image.end(), file.bytes.begin(), file.bytes.end());
    }
  return image;
}

Result<std::vector<std::string>> extract(const Image& image, std::span<const std::byte> bytes,
                                         const std::string& folder) {
  const fs::path root(folder);
  std::error_code code;
  for (const ImageModel& model : image.models)
    if (const fs::path path = root / model.name; fs::exists(fs::symlink_status(path, code)))
      return fail(StatusCode::kIo, fmt::format("'{}' is there already", path.string()), "name a new or empty folder");
  std::vector<std::string> written;
  for (const ImageModel& model : image.models) {
    const fs::path path = root / model.name;
    if (!fs::create_directories(path, code) && code)
      return fail(StatusCode::kIo, fmt::format("cannot create '{}': {}", path.string(), code.message()));
    for (const ImageFile& file : model.files) {
      const std::string name = (path / file.name).string();
      if (auto done = io::write_file(name, bytes.subspan(file.start, file.length)); !done)
        return fail(std::move(done.error()));
      written.push_back(name);
    }
  }
  return written;
}

}  // namespace bantam::partition
