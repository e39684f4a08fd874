// Images written field by field, so that tests can forge any of them. Independent of the layer's own packer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bantam::partition::testing {

struct RawFile {
  std::string name;
  std::string content;
  std::optional<std::uint32_t> start{};   ///< instead of where the content lies
  std::optional<std::uint32_t> length{};  ///< instead of the content's
};

struct RawModel {
  std::string name;
  std::vector<RawFile> files;
  std::optional<std::uint32_t> count{};  ///< instead of the number of files
};

struct RawImage {
  std::vector<RawModel> models;
  std::optional<std::uint32_t> count{};  ///< instead of the number of models
  std::string tail{};                    ///< behind the last file

  /// The contents follow the header without gaps, as ESP-SR's packer puts them.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out;
    std::size_t header = 4;
    for (const RawModel& model : models) header += 36 + 40 * model.files.size();
    put(out, count.value_or(static_cast<std::uint32_t>(models.size())));
    std::size_t at = header;
    for (const RawModel& model : models) {
      put_name(out, model.name);
      put(out, model.count.value_or(static_cast<std::uint32_t>(model.files.size())));
      for (const RawFile& file : model.files) {
        put_name(out, file.name);
        put(out, file.start.value_or(static_cast<std::uint32_t>(at)));
        put(out, file.length.value_or(static_cast<std::uint32_t>(file.content.size())));
        at += file.content.size();
      }
    }
    for (const RawModel& model : models)
      for (const RawFile& file : model.files) put_text(out, file.content);
    put_text(out, tail);
    return out;
  }

 private:
  static void put(std::vector<std::byte>& out, std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(value >> shift));
  }
  static void put_text(std::vector<std::byte>& out, const std::string& text) {
    for (const char c : text) out.push_back(static_cast<std::byte>(c));
  }
  /// 32 bytes, of a longer name the first; the rest are zeros.
  static void put_name(std::vector<std::byte>& out, const std::string& name) {
    put_text(out, name.substr(0, 32));
    out.resize(out.size() + 32 - std::min<std::size_t>(name.size(), 32));
  }
};

/// Two models, five files, no byte of content that could be taken for empty flash.
inline RawImage small_image() {
  return {{{"wn9_hilexin",
            {{"wn9_index", "index of hilexin"},
             {"wn9_data", "the weights of the wake word"},
             {"_MODEL_INFO_", "# a comment\nwakenet9_v1h24_hilexin_3_0.608_0.615\n"}}},
           {"nsnet2", {{"nsnet2_data", "weights"}, {"_MODEL_INFO_", "nsnet2_v1_ns_0_0.0_0.0"}}}}};
}

}  // namespace bantam::partition::testing
