#include "accounts.h"

#include <fmt/format.h>

#include <utility>

#include "cli.h"

namespace bantam::cli {
namespace {

std::vector<std::pair<const char*, double>> stages(const Accounts& a) {
  return {{"open", a.open_us}, {"place", a.place_us},
          {"read", a.read_us}, {"preprocess", a.preprocess_us},
          {"run", a.run_us},   {"postprocess", a.postprocess_us}};
}

nlohmann::json memory_json(const std::optional<diagnose::ProcessMemory>& memory) {
  if (!memory) return nullptr;
  return {{"resident_bytes", memory->resident_bytes},
          {"proportional_bytes", memory->proportional_bytes},
          {"heap_bytes", memory->heap_bytes}};
}

std::string bytes_or_unknown(const std::optional<std::uint64_t>& bytes) {
  return bytes ? std::to_string(*bytes) : "unknown";
}

}  // namespace

void print_accounts(const Accounts& a, const OpenFleet& fleet) {
  std::string line;
  for (const auto& [name, us] : stages(a))
    line += fmt::format("{}{} {:.2f}", line.empty() ? "" : ", ", name, us / 1000);
  fmt::print("\nmilliseconds by stage: {}\n", line);
  for (const std::string& input : a.direct_inputs)
    fmt::print("decoded straight into the tensor: {}\n", printable(input));
  const Requirements need = fleet.requirements();
  const std::uint64_t package = fleet.package_bytes();
  std::vector<std::vector<std::string>> rows = {{"memory", "bytes", ""}};
  rows.push_back(
      {"model file", std::to_string(package - need.weights_bytes),
       fmt::format("tables of the package, {}", fleet.compiled() != nullptr ? "compiled in memory" : "mapped")});
  rows.push_back({"static", std::to_string(need.weights_bytes), "weights, in the package, used where they lie"});
  rows.push_back(
      {"dynamic", std::to_string(need.arena_bytes), "the arena: activations, scratch, states, links, tables"});
  rows.push_back({"stack", bytes_or_unknown(a.stack_bytes), "deepest of an invoke, by painting; the calling thread"});
  rows.push_back({"sum", std::to_string(package + need.arena_bytes + a.stack_bytes.value_or(0)), ""});
  fmt::print("{}", format_table(rows, {false, true, false}));
  if (!a.at_start || !a.opened || !a.ran) {
    fmt::print("what the process uses: this system does not tell\n");
    return;
  }
  rows = {{"process", "resident", "proportional", "heap in use"}};
  for (const auto& [when, memory] :
       {std::pair("at start", &a.at_start), std::pair("opened", &a.opened), std::pair("after the run", &a.ran)})
    rows.push_back({when, std::to_string((*memory)->resident_bytes), std::to_string((*memory)->proportional_bytes),
                    std::to_string((*memory)->heap_bytes)});
  fmt::print("{}", format_table(rows, {false, true, true, true}));
  if (fleet.compiled() != nullptr)
    fmt::print("(the compiler ran in this process; `bantam pack` leaves it out of what runs)\n");
}

nlohmann::json accounts_json(const Accounts& a, const OpenFleet& fleet) {
  const Requirements need = fleet.requirements();
  nlohmann::json j;
  for (const auto& [name, us] : stages(a)) j["stages_us"][name] = us;
  j["memory"] = {{"model_file_bytes", fleet.package_bytes() - need.weights_bytes},
                 {"static_bytes", need.weights_bytes},
                 {"dynamic_bytes", need.arena_bytes},
                 {"stack_bytes", nullptr}};
  if (a.stack_bytes) j["memory"]["stack_bytes"] = *a.stack_bytes;
  j["process"] = {
      {"at_start", memory_json(a.at_start)}, {"opened", memory_json(a.opened)}, {"ran", memory_json(a.ran)}};
  j["direct_inputs"] = a.direct_inputs;
  return j;
}

}  // namespace bantam::cli
