#include "partition/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace bantam::partition {
namespace {

constexpr const char* kWhole = "the image";
constexpr const char* kPackAgain = "make the image again with `bantam partition pack`";
constexpr const char* kFlashAgain = "make or read the image again; these bytes are damaged or no model partition";

/// A gap between files of at least this many empty bytes is worth a word.
constexpr std::uint64_t kWastedBytes = kSectorBytes;

/// Never written, or written as padding.
bool is_blank(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0} || b == std::byte{0xff}; });
}

/// Where the bytes of a file lie, and whose they are.
struct Range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::string owner;
};

class Inspector {
 public:
  explicit Inspector(std::span<const std::byte> bytes) : bytes_(bytes) { image_.file_bytes = bytes.size(); }

  Inspection run() {
    const bool complete = read_header();
    image_.header_bytes = image_.used_bytes = at_;
    check_duplicates();
    check_payloads();
    if (complete) check_space();
    return {std::move(image_), std::move(findings_)};
  }

 private:
  std::uint32_t read_u32(std::uint64_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= static_cast<std::uint32_t>(bytes_[static_cast<std::size_t>(at) + i]) << (8 * i);
    return value;
  }

  std::uint64_t left() const { return bytes_.size() - at_; }

  /// False when the entries could not all be followed.
  bool read_header() {
    if (bytes_.size() < kCountBytes) {
      findings_.error(kWhole, 0, fmt::format("has {} bytes, the model count alone takes 4", bytes_.size()),
                      kFlashAgain);
      return false;
    }
    const std::uint32_t count = read_u32(0);
    if (count == 0xffffffffU) {
      const bool all = std::ranges::all_of(bytes_, [](std::byte b) { return b == std::byte{0xff}; });
      findings_.error(kWhole, 0,
                      all ? "is erased flash: it holds nothing but 0xff, no models were ever written to it"
                          : "begins like erased flash: the model count is 0xffffffff",
                      "write srmodels.bin to the partition; `bantam partition pack` makes it");
      return false;
    }
    at_ = kCountBytes;
    if (count == 0) {
      findings_.error(kWhole, 0, "has the model count 0: a loader finds no model in it", kPackAgain);
      return false;
    }
    if (const std::uint64_t room = left() / kModelEntryBytes; count > room) {
      findings_.error(kWhole, 0,
                      fmt::format("has the model count {} ({:#x}), but its {} bytes have room for {} at most", count,
                                  count, bytes_.size(), room),
                      kFlashAgain);
      return false;
    }
    for (std::uint32_t m = 0; m < count; ++m) {
      if (read_model(m)) continue;
      if (m + 1 < count)
        findings_.error(kWhole, static_cast<std::int64_t>(at_),
                        fmt::format("the {} models after model {} cannot be found", count - m - 1, m), kFlashAgain);
      return false;
    }
    return true;
  }

  bool read_model(std::uint32_t index) {
    const std::string plain = fmt::format("model {}", index);
    if (!take_entry(plain, kModelEntryBytes)) return false;
    const std::uint64_t begin = at_;
    ImageModel model{read_name(plain, begin), {}, {}};
    const std::string object = plain + " " + quote(model.name);
    const std::uint32_t count = read_u32(begin + kNameBytes);
    at_ += kModelEntryBytes;
    if (count == 0)
      findings_.error(object, static_cast<std::int64_t>(begin + kNameBytes),
                      "has no files: nothing can be created from it", "give it files or leave it out");
    const std::uint64_t room = left() / kFileEntryBytes;
    const bool possible = count <= room;
    if (!possible)
      findings_.error(
          object, static_cast<std::int64_t>(begin + kNameBytes),
          fmt::format("has the file count {} ({:#x}), but the {} bytes that follow have room for {} at most", count,
                      count, left(), room),
          kFlashAgain);
    bool complete = possible;
    for (std::uint32_t f = 0; complete && f < count; ++f) complete = read_file(object, f, model);
    image_.models.push_back(std::move(model));
    return complete;
  }

  bool read_file(const std::string& model, std::uint32_t index, ImageModel& to) {
    const std::string object = fmt::format("{}, file {}", model, index);
    if (!take_entry(object, kFileEntryBytes)) return false;
    ImageFile file{read_name(object, at_), read_u32(at_ + kNameBytes), read_u32(at_ + kNameBytes + 4)};
    to.files.push_back(std::move(file));
    at_ += kFileEntryBytes;
    return true;
  }

  /// Whether another entry of `bytes` bytes is there and may be read.
  bool take_entry(const std::string& object, std::uint64_t bytes) {
    if (left() < bytes) {
      findings_.error(
          object, static_cast<std::int64_t>(at_),
          fmt::format("its entry would end at byte {}, but the image ends at byte {}", at_ + bytes, bytes_.size()),
          kFlashAgain);
      return false;
    }
    if (++entries_ > kMaxEntries) {
      findings_.error(object, static_cast<std::int64_t>(at_),
                      fmt::format("is entry {}, at most {} are read", entries_, kMaxEntries), kFlashAgain);
      return false;
    }
    return true;
  }

  /// The name at `at`, up to its terminator; everything odd about it is reported.
  std::string read_name(const std::string& object, std::uint64_t at) {
    const auto field = bytes_.subspan(static_cast<std::size_t>(at), kNameBytes);
    const auto end = std::ranges::find(field, std::byte{0});
    const auto length = static_cast<std::size_t>(end - field.begin());
    std::string name(reinterpret_cast<const char*>(field.data()), length);
    const auto where = static_cast<std::int64_t>(at);
    const std::string problem = name_problem(name);
    if (!problem.empty())
      findings_.error(object, where, fmt::format("the name {} {}", quote(name), problem), kPackAgain);
    else if (!std::all_of(end, field.end(), [](std::byte b) { return b == std::byte{0}; }))
      findings_.warning(object, where + static_cast<std::int64_t>(length),
                        fmt::format("behind the end of the name {} stand other bytes than zeros", quote(name)),
                        kPackAgain);
    return name;
  }

  void check_duplicates() {
    std::map<std::string_view, std::size_t> models;
    for (std::size_t m = 0; m < image_.models.size(); ++m) {
      const ImageModel& model = image_.models[m];
      if (const auto [first, added] = models.try_emplace(model.name, m); !added)
        findings_.error(label(m), -1,
                        fmt::format("has the name of model {}: a loader finds only the first", first->second),
                        "give every model a name of its own");
      std::map<std::string_view, std::size_t> files;
      for (std::size_t f = 0; f < model.files.size(); ++f)
        if (const auto [first, added] = files.try_emplace(model.files[f].name, f); !added)
          findings_.error(label(m, f), -1,
                          fmt::format("has the name of file {}: a loader finds only the first", first->second),
                          "give every file of a model a name of its own");
    }
  }

  void check_payloads() {
    std::size_t files = 0;
    std::size_t misaligned = 0;
    for (std::size_t m = 0; m < image_.models.size(); ++m) {
      for (std::size_t f = 0; f < image_.models[m].files.size(); ++f) {
        const ImageFile& file = image_.models[m].files[f];
        ++files;
        if (file.start % kPayloadAlignment != 0) ++misaligned;
        if (check_place(label(m, f), file)) read_info(m, f);
      }
      check_info_is_there(m);
    }
    if (misaligned != 0)
      findings_.note(
          kWhole, -1,
          fmt::format("{} of {} files do not begin at a multiple of {} bytes: kernels cannot use vector loads "
                      "on weights where they lie",
                      misaligned, files, kPayloadAlignment),
          "`bantam partition pack` aligns them");
  }

  /// Whether the bytes of the file are within the image.
  bool check_place(const std::string& object, const ImageFile& file) {
    const auto where = static_cast<std::int64_t>(file.start);
    if (file.end() > bytes_.size()) {
      findings_.error(object, where,
                      fmt::format("lies at bytes {} to {}, but the image ends at byte {}: {} bytes are missing",
                                  file.start, file.end(), bytes_.size(), file.end() - bytes_.size()),
                      "the image was cut or a number in its header is damaged; make or read it again");
      return false;
    }
    if (file.start < image_.header_bytes) {
      findings_.error(
          object, where,
          fmt::format("begins at byte {}, within the header, which ends at byte {}", file.start, image_.header_bytes),
          kFlashAgain);
      return false;
    }
    if (file.length == 0) findings_.warning(object, where, "is empty", "leave the file out, or fill it");
    image_.used_bytes = std::max(image_.used_bytes, file.end());
    if (file.length != 0) ranges_.push_back({file.start, file.end(), object});
    return true;
  }

  void read_info(std::size_t m, std::size_t f) {
    ImageModel& model = image_.models[m];
    const ImageFile& file = model.files[f];
    if (file.name != kModelInfoFile || model.info || file.length == 0) return;
    const auto text = bytes_.subspan(file.start, std::min<std::size_t>(file.length, kMaxModelInfoBytes + 1));
    auto info = parse_model_info({reinterpret_cast<const char*>(text.data()), text.size()});
    const auto where = static_cast<std::int64_t>(file.start);
    if (!info) {
      findings_.error(label(m, f), where, info.error().message,
                      "write type_version_word_window_threshold_threshold, as in wakenet9_v1_hi_3_0.61_0.62");
      return;
    }
    for (const ModelLabel& word : info->labels)
      if (!(word.threshold_90 >= 0 && word.threshold_90 <= 1 && word.threshold_95 >= 0 && word.threshold_95 <= 1))
        findings_.warning(label(m, f), where,
                          fmt::format("the thresholds of {} are {} and {}, expected 0 to 1", quote(word.word),
                                      word.threshold_90, word.threshold_95));
    model.info = std::move(*info);
  }

  void check_info_is_there(std::size_t m) {
    const ImageModel& model = image_.models[m];
    const bool there = std::ranges::any_of(model.files, [](const ImageFile& f) { return f.name == kModelInfoFile; });
    // The loader's prefix for wake word models, the only ones that it asks for their words.
    if (!there && model.name.starts_with("wn"))
      findings_.warning(label(m), -1, fmt::format("has no {}: its wake words are unknown", kModelInfoFile),
                        fmt::format("add the file {}", kModelInfoFile));
  }

  /// What overlaps, and what belongs to nobody.
  void check_space() {
    std::ranges::sort(
        ranges_, [](const Range& a, const Range& b) { return std::pair(a.start, a.end) < std::pair(b.start, b.end); });
    std::uint64_t end = image_.header_bytes;
    const std::string* owner = nullptr;
    for (const Range& range : ranges_) {
      if (range.start < end)
        findings_.error(
            range.owner, static_cast<std::int64_t>(range.start),
            fmt::format("begins at byte {}, but {} ends at byte {}: they overlap", range.start, *owner, end),
            kFlashAgain);
      else
        check_content(end, range);
      if (owner == nullptr || range.end > end) owner = &range.owner;
      end = std::max(end, range.end);
    }
    check_tail();
  }

  /// A file behind all before it. Files that overlap are not looked into, lest many entries make the same bytes be read
  /// over and over.
  void check_content(std::uint64_t end, const Range& range) {
    check_gap(end, range.start);
    const auto content =
        bytes_.subspan(static_cast<std::size_t>(range.start), static_cast<std::size_t>(range.end - range.start));
    if (std::ranges::all_of(content, [](std::byte b) { return b == std::byte{0xff}; }))
      findings_.warning(range.owner, static_cast<std::int64_t>(range.start),
                        "holds nothing but 0xff, as erased flash does", "write the whole image again");
  }

  void check_gap(std::uint64_t from, std::uint64_t to) {
    const auto gap = bytes_.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
    const auto where = static_cast<std::int64_t>(from);
    if (!is_blank(gap))
      findings_.error(kWhole, where,
                      fmt::format("bytes {} to {} belong to no file but are not empty: a count or a length before them "
                                  "is too small",
                                  from, to),
                      kFlashAgain);
    else if (gap.size() >= kWastedBytes)
      findings_.warning(kWhole, where, fmt::format("bytes {} to {} belong to no file", from, to), kPackAgain);
  }

  /// Whoever writes an image to flash erases whole sectors: remains of an older one begin with a sector.
  void check_tail() {
    const std::uint64_t tail = image_.file_bytes - image_.used_bytes;
    if (tail == 0) return;
    const auto where = static_cast<std::int64_t>(image_.used_bytes);
    const auto rest = bytes_.subspan(static_cast<std::size_t>(image_.used_bytes));
    const auto sector =
        rest.first(static_cast<std::size_t>(std::min(tail, to_sectors(image_.used_bytes) - image_.used_bytes)));
    if (is_blank(rest))
      findings_.note(kWhole, where, fmt::format("{} empty bytes follow the last file", tail));
    else if (is_blank(sector))
      findings_.warning(
          kWhole, where,
          fmt::format("{} bytes follow the last file; from the next sector on they are not empty: remains "
                      "of something that was there before",
                      tail));
    else
      findings_.error(
          kWhole, where,
          fmt::format("{} bytes follow the last file and are not empty: a count or a length is too small, or "
                      "something was appended",
                      tail),
          kFlashAgain);
  }

  std::string label(std::size_t m) const { return fmt::format("model {} {}", m, quote(image_.models[m].name)); }
  std::string label(std::size_t m, std::size_t f) const {
    return fmt::format("{}, file {} {}", label(m), f, quote(image_.models[m].files[f].name));
  }

  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  std::size_t entries_ = 0;
  Image image_;
  Findings findings_;
  std::vector<Range> ranges_;
};

}  // namespace

std::string name_problem(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() >= kNameBytes)
    return fmt::format("has {} bytes and no room for its terminator, at most {} are possible", name.size(),
                       kNameBytes - 1);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return "holds a control character";
    if (byte > 0x7f) return "holds a character that is not ASCII";
    if (c == '/' || c == '\\') return "holds a path separator";
  }
  if (name == "." || name == "..") return "is a folder's own name";
  return {};
}

Inspection inspect(std::span<const std::byte> bytes) { return Inspector(bytes).run(); }

}  // namespace bantam::partition
