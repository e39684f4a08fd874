#include "compiler/toml_reader.h"

#include <algorithm>

#include "io/file.h"

namespace bantam {
namespace {

constexpr std::int64_t kMaxFileBytes = 1 << 20;

std::string joined(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

void TomlReader::note(const toml::node& node, const std::string& message) {
  findings_ += fmt::format("{}{}:{}: {}", findings_.empty() ? "" : "\n", name_, node.source().begin.line, message);
}

void TomlReader::check_keys(const toml::table& table, std::string_view where,
                            std::initializer_list<std::string_view> allowed) {
  for (const auto& [key, value] : table)
    if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end())
      note(value, fmt::format("unknown key '{}' in {}; allowed are: {}", key.str(), where, joined(allowed)));
}

std::string TomlReader::text(const toml::table& table, const char* key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return {};
  if (const auto value = node->value_exact<std::string>()) return *value;
  note(*node, fmt::format("'{}' must be a text", key));
  return {};
}

std::vector<std::string> TomlReader::texts(const toml::table& table, const char* key) {
  std::vector<std::string> result;
  const toml::node* node = table.get(key);
  if (node == nullptr) return result;
  const toml::array* array = node->as_array();
  bool good = array != nullptr;
  for (std::size_t i = 0; good && i < array->size(); ++i) {
    const auto value = array->get(i)->value_exact<std::string>();
    good = value.has_value();
    if (good) result.push_back(*value);
  }
  if (!good) note(*node, fmt::format("'{}' must be a list of texts", key));
  return result;
}

Result<std::string> read_toml(const std::filesystem::path& path) {
  auto bytes = io::read_file(path.string(), kMaxFileBytes);
  if (!bytes) return fail(std::move(bytes.error()));
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace bantam
