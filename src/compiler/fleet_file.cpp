#include "compiler/fleet_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "compiler/backends.h"
#include "compiler/fleet_tables.h"
#include "compiler/narrow_weights.h"
#include "compiler/size_family.h"
#include "compiler/toml_reader.h"

namespace bantam {
namespace {

class FleetFileReader : public TomlReader {
 public:
  using TomlReader::TomlReader;

  Result<FleetFile> run(const toml::table& root) {
    check_keys(root, "the file", {"budget", "memory", "weights", "resident", "model", "session", "link"});
    return read_fleet(root, 1);
  }

  /// As `run`, but other keys beside the fleet's are somebody else's, and there may be fewer models.
  Result<FleetFile> read_fleet(const toml::table& root, std::size_t least_models) {
    if (const toml::node* budget = root.get("budget")) file_.spec.budget = read_bytes(*budget, "budget");
    for_each_table(root, "memory", [&](const toml::table& table) { read_memory(table); });
    file_.spec.weights = text(root, "weights");
    read(root, "resident", "true or false", file_.spec.resident);
    for_each_table(root, "model", [&](const toml::table& table) { read_model(table); });
    for_each_table(root, "session", [&](const toml::table& table) { read_session(table); });
    for_each_table(root, "link", [&](const toml::table& table) { read_link(table); });
    if (file_.spec.models.size() < least_models) note(root, "the file names no model; add a [[model]] with a path");
    add_default_feeds();
    if (findings().empty()) return std::move(file_);
    return fail(StatusCode::kInvalidArgument, findings(),
                "correct the lines named; `bantam plan --help` shows a fleet file");
  }

 private:
  std::optional<std::uint64_t> read_bytes(const toml::node& node, const char* key) {
    if (const auto bytes = node.value_exact<std::int64_t>(); bytes && *bytes > 0)
      return static_cast<std::uint64_t>(*bytes);
    if (const auto text = node.value_exact<std::string>()) {
      auto bytes = parse_bytes(*text);
      if (bytes) return *bytes;
      note(node, bytes.error().message);
      return std::nullopt;
    }
    note(node, fmt::format("{} must be a positive number of bytes, or a text such as \"512 KiB\"", key));
    return std::nullopt;
  }

  void read_memory(const toml::table& table) {
    check_keys(table, "[[memory]]", {"name", "size", "cost"});
    MemorySpec memory;
    memory.name = text(table, "name");
    if (memory.name.empty()) return note(table, "a [[memory]] needs a name");
    if (const toml::node* size = table.get("size")) memory.bytes = read_bytes(*size, "size").value_or(0);
    read(table, "cost", "a number", memory.cost);
    file_.spec.memories.push_back(std::move(memory));
  }

  std::optional<Backend> backend(const toml::table& table, const std::string& name) {
    const auto id = compiler::backend_from_name(name);
    if (!id) note(table, fmt::format("there is no backend '{}'; there are: {}", name, compiler::backend_names()));
    return id;
  }

  void read_model(const toml::table& table) {
    check_keys(table, "[[model]]",
               {"name",       "path",   "dims",    "bounds",   "formulas", "shapes",   "values",  "counts",
                "iterations", "states", "outputs", "keep",     "backend",  "backends", "kernels", "inputs",
                "step",       "labels", "lane",    "priority", "sizes",    "store"});
    ModelSpec model;
    const std::string path = text(table, "path");
    if (path.empty()) return note(table, "a [[model]] needs a path");
    model.path = directory() / path;
    model.name = text(table, "name");
    if (model.name.empty()) model.name = model.path.stem().string();
    read_map<std::int64_t>(table, "dims", "an integer", model.dims);
    read_map<std::int64_t>(table, "bounds", "an integer", model.bounds);
    for_each_entry(table, "sizes", [&](const std::string& name, const toml::node& value) {
      model.sizes[name] = numbers<std::int64_t>(value, "sizes", name);
    });
    read_map<std::string>(table, "formulas", "a text such as \"(T - 3) / 4\"", model.formulas);
    for_each_entry(table, "shapes", [&](const std::string& name, const toml::node& value) {
      model.shapes[name] = numbers<std::int64_t>(value, "shapes", name);
    });
    for_each_entry(table, "values", [&](const std::string& name, const toml::node& value) {
      model.values[name] = numbers<double>(value, "values", name);
    });
    read_map<std::string>(table, "counts", "a text: a number or a dimension's name", model.counts);
    read_map<std::int64_t>(table, "iterations", "an integer", model.iterations);
    std::map<std::string, std::string> states;
    read_map<std::string>(table, "states", "the name of an output", states);
    model.states.assign(states.begin(), states.end());
    model.outputs = texts(table, "outputs");
    model.keep = texts(table, "keep");
    if (const std::string name = text(table, "backend"); !name.empty()) model.backend = backend(table, name);
    std::map<std::string, std::string> backends;
    read_map<std::string>(table, "backends", "the name of a backend", backends);
    for (const auto& [pattern, name] : backends)
      if (const auto id = backend(table, name)) model.backends.push_back({pattern, *id});
    std::map<std::string, std::string> kernels;
    read_map<std::string>(table, "kernels", "the name of a kernel", kernels);
    for (const auto& [pattern, name] : kernels) model.kernels.push_back({pattern, name});
    std::map<std::string, std::string> stores;
    read_map<std::string>(table, "store", "a type such as \"f16\"", stores);
    for (const auto& [pattern, name] : stores) {
      const auto rule = compiler::store_rule(pattern, name);
      if (!rule) note(table, fmt::format("store.{}: {}; {}", pattern, rule.error().message, rule.error().remedy));
      if (rule) model.stores.push_back(*rule);
    }
    model.lane = text(table, "lane");
    read(table, "priority", "an integer", model.priority);
    model_feeds_[model.name] = read_feed(table);
    file_.spec.models.push_back(std::move(model));
  }

  SessionFeed read_feed(const toml::table& table) {
    SessionFeed feed;
    std::map<std::string, std::string> inputs;
    read_map<std::string>(table, "inputs", "a text; see `bantam run --help`", inputs);
    for (const auto& [name, spec] : inputs) feed.inputs[name] = resolve(spec);
    read_map<std::int64_t>(table, "step", "a positive integer", feed.steps);
    for (const auto& [name, step] : feed.steps)
      if (step < 1) note(table, fmt::format("step.{} must be positive, found {}", name, step));
    std::map<std::string, std::string> labels;
    read_map<std::string>(table, "labels", "the name of a file", labels);
    for (const auto& [name, path] : labels) feed.labels[name] = directory() / path;
    return feed;
  }

  /// Paths in input specifications are relative to the fleet file; generators have no path.
  std::string resolve(const std::string& spec) const {
    const bool generator = spec == "zeros" || spec.starts_with("fill:") || spec.starts_with("random:");
    return generator || std::filesystem::path(spec).is_absolute() ? spec : (directory() / spec).string();
  }

  void read_session(const toml::table& table) {
    check_keys(table, "[[session]]", {"name", "model", "inputs", "step", "labels", "lane", "priority"});
    SessionSpec session{text(table, "name"), text(table, "model")};
    if (table.contains("lane")) session.lane = text(table, "lane");
    if (table.contains("priority")) read(table, "priority", "an integer", session.priority.emplace(0));
    if (session.name.empty() || session.model.empty()) return note(table, "a [[session]] needs a name and a model");
    SessionFeed feed = read_feed(table);
    // A member of a family, "model@T:160", is fed as the model.
    const std::string model = session.model.substr(0, session.model.find('@'));
    const bool has_size = model_feeds_.contains(model) && !model_feeds_.contains(session.model);
    if (const auto inherited = model_feeds_.find(has_size ? model : session.model); inherited != model_feeds_.end()) {
      feed.inputs.insert(inherited->second.inputs.begin(), inherited->second.inputs.end());
      feed.steps.insert(inherited->second.steps.begin(), inherited->second.steps.end());
      feed.labels.insert(inherited->second.labels.begin(), inherited->second.labels.end());
    } else {
      note(table,
           fmt::format("session '{}' uses model '{}', which the file does not have", session.name, session.model));
    }
    feed.session = session.name;
    file_.feeds.push_back(std::move(feed));
    file_.spec.sessions.push_back(std::move(session));
  }

  void read_link(const toml::table& table) {
    check_keys(table, "[[link]]", {"from", "to"});
    LinkSpec link;
    split(table, "from", link.from_session, link.output);
    split(table, "to", link.to_session, link.input);
    file_.spec.links.push_back(std::move(link));
  }

  /// "session.port"; ports may hold dots, sessions that are linked may not.
  void split(const toml::table& table, const char* key, std::string& session, std::string& port) {
    const std::string value = text(table, key);
    const std::size_t dot = value.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == value.size())
      return note(table, fmt::format("a [[link]] needs {} = \"session.port\", found \"{}\"", key, value));
    session = value.substr(0, dot);
    port = value.substr(dot + 1);
  }

  void add_default_feeds() {
    if (!file_.spec.sessions.empty()) return;
    for (const ModelSpec& model : file_.spec.models) {
      SessionFeed feed = model_feeds_[model.name];
      feed.session = model.name;
      file_.feeds.push_back(std::move(feed));
    }
  }

  FleetFile file_;
  std::map<std::string, SessionFeed> model_feeds_;
};

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t factor;
  };
  static constexpr Unit kUnits[] = {{"", 1},           {"B", 1},     {"KiB", 1U << 10}, {"MiB", 1U << 20},
                                    {"GiB", 1U << 30}, {"kB", 1000}, {"MB", 1000000},   {"GB", 1000000000}};
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto* known = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return u.name == unit; });
  const bool good = code == std::errc() && known != std::end(kUnits) && number >= 1 && number <= 1e15;
  if (good && number * static_cast<double>(known->factor) <= 1e18)
    return static_cast<std::uint64_t>(std::floor(number * static_cast<double>(known->factor)));
  return fail(StatusCode::kInvalidArgument, fmt::format("'{}' is not a size", text),
              "write bytes, or a number with B, KiB, MiB, GiB, kB, MB or GB");
}

Result<FleetFile> parse_fleet_file(std::string_view text, const std::string& name,
                                   const std::filesystem::path& directory) {
  return parse_toml(text, name, "a fleet file is TOML; `bantam plan --help` shows one",
                    [&](const toml::table& root) { return FleetFileReader(name, directory).run(root); });
}

Result<FleetFile> expand_families(FleetFile file) {
  auto expanded = compiler::expand_sizes(file.spec);
  if (!expanded) return fail(std::move(expanded.error()));
  if (file.spec.sessions.empty()) {
    std::vector<SessionFeed> feeds;
    for (std::size_t m = 0; m < expanded->origins.size(); ++m) {
      feeds.push_back(file.feeds[expanded->origins[m]]);
      feeds.back().session = expanded->spec.models[m].name;
    }
    file.feeds = std::move(feeds);
  }
  file.spec = std::move(expanded->spec);
  return file;
}

Result<FleetFile> read_fleet_file(const std::filesystem::path& path) {
  const auto text = read_toml(path);
  if (!text) return fail(text.error());
  return parse_fleet_file(*text, path.string(), path.parent_path());
}

Result<FleetFile> read_fleet(const toml::table& root, const std::string& name, const std::filesystem::path& directory) {
  return FleetFileReader(name, directory).read_fleet(root, 0);
}

}  // namespace bantam
