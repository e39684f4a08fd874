// Reading configuration files of tables and keys (TOML) with every finding told at once, each with its line.
//
// A reader of one kind of file derives from TomlReader, reads what it knows and asks for the findings at the end.
// Values, no shared state; nothing throws but toml++'s parser, whose exceptions end in parse_toml.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bantam/error.h"

namespace bantam {

class TomlReader {
 public:
  TomlReader(std::string name, std::filesystem::path directory)
      : name_(std::move(name)), directory_(std::move(directory)) {}

 protected:
  void note(const toml::node& node, const std::string& message);
  void check_keys(const toml::table& table, std::string_view where, std::initializer_list<std::string_view> allowed);
  /// Empty when the key is absent.
  std::string text(const toml::table& table, const char* key);
  std::vector<std::string> texts(const toml::table& table, const char* key);

  /// Leaves `out` alone when the key is absent. Integers count as numbers with a fraction, nothing else is converted.
  template <typename T>
  void read(const toml::table& table, const char* key, const char* what, T& out) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    using Stored = std::conditional_t<std::is_same_v<T, int>, std::int64_t,
                                      std::conditional_t<std::is_floating_point_v<T>, double, T>>;
    std::optional<Stored> value = node->value_exact<Stored>();
    if constexpr (std::is_floating_point_v<T>)
      if (!value) value = node->is_integer() ? node->value<double>() : std::nullopt;
    if constexpr (std::is_same_v<T, int>)
      if (value && *value != static_cast<int>(*value)) value.reset();
    if (!value) return note(*node, fmt::format("'{}' must be {}", key, what));
    out = static_cast<T>(*value);
  }

  template <typename F>
  void for_each_table(const toml::table& root, const char* key, F&& f) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) return note(*node, fmt::format("'{0}' must be an array of tables: write [[{0}]]", key));
    for (const toml::node& element : *array) {
      if (const toml::table* table = element.as_table()) {
        f(*table);
      } else {
        note(element, fmt::format("an entry of '{}' is not a table", key));
      }
    }
  }

  /// Calls f(name, node) for each entry of the inline table `key`.
  template <typename F>
  void for_each_entry(const toml::table& table, const char* key, F&& f) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const toml::table* entries = node->as_table();
    if (entries == nullptr) return note(*node, fmt::format("'{}' must be a table such as {{ name = ... }}", key));
    for (const auto& [name, value] : *entries) f(std::string(name.str()), value);
  }

  template <typename T>
  void read_map(const toml::table& table, const char* key, const char* what, std::map<std::string, T>& out) {
    for_each_entry(table, key, [&](const std::string& name, const toml::node& value) {
      if (const auto v = value.value_exact<T>()) {
        out[name] = *v;
      } else {
        note(value, fmt::format("{}.{} must be {}", key, name, what));
      }
    });
  }

  /// A number or an array of numbers.
  template <typename T>
  std::vector<T> numbers(const toml::node& node, const char* key, const std::string& name) {
    std::vector<T> result;
    const auto add = [&](const toml::node& element) {
      const auto value = element.value<T>();
      if (value) result.push_back(*value);
      return value.has_value();
    };
    bool good = true;
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& element : *array) good = add(element) && good;
    } else {
      good = add(node);
    }
    if (!good) note(node, fmt::format("{}.{} must be a number or a list of numbers", key, name));
    return result;
  }

  const std::string& name() const { return name_; }
  const std::filesystem::path& directory() const { return directory_; }
  /// One line per finding; empty when all is well.
  const std::string& findings() const { return findings_; }

 private:
  std::string name_;
  std::filesystem::path directory_;
  std::string findings_;
};

/// Calls f(table) with the parsed text; f gives a Result. `remedy` goes with syntax errors.
template <typename F>
auto parse_toml(std::string_view text, const std::string& name, const char* remedy, F&& f)
    -> decltype(f(std::declval<const toml::table&>())) {
  // toml++ as Debian builds it reports syntax errors by exception; they end here.
  try {
    const toml::table root = toml::parse(text, name);
    return f(root);
  } catch (const toml::parse_error& error) {
    return fail(StatusCode::kInvalidArgument,
                fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()), remedy);
  }
}

/// The text of a configuration file. Fails for files beyond a megabyte, which are none, whatever they are.
Result<std::string> read_toml(const std::filesystem::path& path);

}  // namespace bantam
