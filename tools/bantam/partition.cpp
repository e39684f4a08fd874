// bantam partition: look into, check, make and unpack the model partition of a speech box, srmodels.bin.
#include <fmt/format.h>

#include <memory>

#include "cli.h"
#include "io/file.h"
#include "partition/fit.h"
#include "partition/flash_table.h"
#include "partition/image.h"
#include "partition/pack.h"

namespace bantam::cli {
namespace {

using partition::Finding;
using partition::Findings;
using partition::Fit;
using partition::Image;
using partition::ImageFile;
using partition::ImageModel;
using partition::Inspection;
using partition::ModelLabel;
using partition::Severity;

struct PartitionArguments {
  std::string file;
  std::vector<std::string> folders;
  std::string output;
  std::string table;
  std::string partition = "model";
  std::uint32_t table_offset = partition::kDefaultTableOffset;
  std::string order;
  std::uint32_t alignment = partition::kPayloadAlignment;
  bool strict = false;
  bool json = false;
};

struct OpenImage {
  std::vector<std::byte> bytes;
  Inspection inspection;
};

Result<OpenImage> open_image(const std::string& file) {
  auto bytes = io::read_file(file, partition::kMaxImageBytes);
  if (!bytes) return fail(std::move(bytes.error()));
  OpenImage image{std::move(*bytes), {}};
  image.inspection = partition::inspect(image.bytes);
  return image;
}

/// For commands that need an image without errors.
Result<OpenImage> open_intact(const std::string& file) {
  auto image = open_image(file);
  if (!image || image->inspection.findings.ok()) return image;
  Error error = image->inspection.findings.to_error(StatusCode::kInvalidModel);
  error.remedy = fmt::format("`bantam partition check {}` says more about every finding", file);
  return fail(std::move(error).in(file));
}

std::string format_label(const ModelLabel& label) {
  return fmt::format("'{}' (window {}, thresholds {} and {})", printable(label.word), label.window, label.threshold_90,
                     label.threshold_95);
}

std::size_t file_count(const Image& image) {
  std::size_t files = 0;
  for (const ImageModel& model : image.models) files += model.files.size();
  return files;
}

nlohmann::json image_json(const std::string& file, const Image& image) {
  nlohmann::json models = nlohmann::json::array();
  for (const ImageModel& model : image.models) {
    nlohmann::json files = nlohmann::json::array();
    for (const ImageFile& f : model.files)
      files.push_back({{"name", f.name}, {"offset", f.start}, {"bytes", f.length}});
    nlohmann::json entry = {{"name", model.name}, {"files", files}, {"info", nullptr}};
    if (model.info) {
      nlohmann::json words = nlohmann::json::array();
      for (const ModelLabel& label : model.info->labels)
        words.push_back({{"word", label.word},
                         {"window", label.window},
                         {"threshold_90", label.threshold_90},
                         {"threshold_95", label.threshold_95}});
      entry["info"] = {{"type", model.info->type}, {"version", model.info->version}, {"words", words}};
    }
    models.push_back(entry);
  }
  return {{"file", file},
          {"file_bytes", image.file_bytes},
          {"header_bytes", image.header_bytes},
          {"needed_bytes", image.used_bytes},
          {"models", models}};
}

nlohmann::json findings_json(const Findings& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& f : findings.list())
    list.push_back({{"severity", severity_name(f.severity)},
                    {"object", f.object},
                    {"message", f.message},
                    {"remedy", f.remedy},
                    {"offset", f.offset < 0 ? nlohmann::json() : nlohmann::json(f.offset)}});
  return list;
}

int list(const PartitionArguments& options) {
  const auto opened = open_intact(options.file);
  if (!opened) return report(opened.error());
  const Image& image = opened->inspection.image;
  if (options.json) {
    print_json(image_json(options.file, image));
    return kExitOk;
  }
  std::vector<std::vector<std::string>> rows = {{"model", "file", "offset", "bytes"}};
  for (const ImageModel& model : image.models)
    for (const ImageFile& f : model.files)
      rows.push_back({model.name, f.name, std::to_string(f.start), std::to_string(f.length)});
  fmt::print("{}", format_table(rows, {false, false, true, true}));
  for (const ImageModel& model : image.models) {
    if (!model.info) continue;
    fmt::print("{}: {} {}", model.name, printable(model.info->type), printable(model.info->version));
    for (const ModelLabel& label : model.info->labels) fmt::print(", {}", format_label(label));
    fmt::print("\n");
  }
  fmt::print("{} models, {} files, {} bytes (header {})\n", image.models.size(), file_count(image), image.used_bytes,
             image.header_bytes);
  return kExitOk;
}

void print_findings(std::FILE* to, const Findings& findings) {
  for (const Finding& f : findings.list()) {
    fmt::print(to, "{}: {}\n", severity_name(f.severity), printable(describe(f)));
    if (!f.remedy.empty()) fmt::print(to, "  to mend it: {}\n", printable(f.remedy));
  }
  if (findings.dropped() != 0) fmt::print(to, "and {} more findings\n", findings.dropped());
}

/// Compares with the table when there is one; its findings join those of the image.
Result<Fit> fit_of(const PartitionArguments& options, const Image& image, Findings& findings) {
  if (options.table.empty()) return need_of(image, options.partition);
  const auto text = io::read_file(options.table, partition::kMaxTableTextBytes);
  if (!text) return fail(text.error());
  Findings of_table;
  const bool intact = findings.ok();
  const auto table = partition::parse_flash_table({reinterpret_cast<const char*>(text->data()), text->size()}, of_table,
                                                  options.table_offset);
  const Fit fit = check_fit(image, intact, table, options.partition, of_table);
  for (Finding f : of_table.list()) {
    f.object = options.table + ", " + f.object;
    findings.add(std::move(f));
  }
  return fit;
}

void print_check(const PartitionArguments& options, const Image& image, const Fit& fit, const Findings& findings,
                 bool intact) {
  if (intact)
    fmt::print("{}: {} models, {} files; needs {} bytes, {} flash sectors of {} bytes = {:#x}\n",
               printable(options.file), image.models.size(), file_count(image), fit.needed_bytes,
               fit.sector_bytes / partition::kSectorBytes, partition::kSectorBytes, fit.sector_bytes);
  else
    fmt::print("{}: {} bytes, damaged\n", printable(options.file), image.file_bytes);
  if (fit.partition_bytes != 0)
    fmt::print("partition '{}' of {}: {} bytes{}\n", printable(options.partition), printable(options.table),
               fit.partition_bytes,
               intact && fit.partition_bytes >= fit.needed_bytes
                   ? fmt::format(", {} to spare", fit.partition_bytes - fit.needed_bytes)
                   : std::string());
  else if (intact)
    fmt::print("line for partitions.csv: {}\n", printable(fit.row));
  print_findings(stdout, findings);
  fmt::print("{} errors, {} warnings\n", findings.count(Severity::kError), findings.count(Severity::kWarning));
}

/// The errors in short, for those who read only stderr.
int fail_check(const std::string& file, const Findings& findings, bool strict) {
  const std::size_t errors = findings.count(Severity::kError);
  const std::size_t warnings = findings.count(Severity::kWarning);
  if (errors == 0 && !(strict && warnings != 0)) return kExitOk;
  const Severity worst = errors != 0 ? Severity::kError : Severity::kWarning;
  const auto first = std::ranges::find(findings.list(), worst, &Finding::severity);
  Error error{StatusCode::kInvalidModel, fmt::format("{}: {} errors, {} warnings", file, errors, warnings),
              "see the findings"};
  if (first != findings.list().end()) {
    error.message += ", first: " + describe(*first);
    if (!first->remedy.empty()) error.remedy = first->remedy;
  }
  return report(error);
}

int check(const PartitionArguments& options) {
  const auto opened = open_image(options.file);
  if (!opened) return report(opened.error());
  const Image& image = opened->inspection.image;
  Findings findings = opened->inspection.findings;
  const bool intact = findings.ok();
  const auto fit = fit_of(options, image, findings);
  if (!fit) return report(fit.error());
  if (options.json) {
    nlohmann::json j = image_json(options.file, image);
    j["ok"] = findings.ok();
    j["needed_sector_bytes"] = fit->sector_bytes;
    j["findings"] = findings_json(findings);
    j["partition"] = nullptr;
    if (!options.table.empty())
      j["partition"] = {{"name", options.partition},
                        {"found", fit->partition_bytes != 0},
                        {"bytes", fit->partition_bytes},
                        {"fits", intact && fit->partition_bytes >= fit->needed_bytes}};
    j["partitions_csv_line"] = fit->row;
    print_json(j);
  } else {
    print_check(options, image, *fit, findings, intact);
  }
  return fail_check(options.file, findings, options.strict);
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    names.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return names;
}

int write_image(const PartitionArguments& options) {
  auto folders = partition::read_model_folders(options.folders);
  if (!folders) return report(folders.error());
  if (auto done = order_models(folders->models, split_names(options.order)); !done) return report(done.error());
  const auto bytes = build_image(folders->models, options.alignment);
  if (!bytes) return report(bytes.error());
  Inspection inspection = partition::inspect(*bytes);
  if (!inspection.findings.ok()) return report(inspection.findings.to_error(StatusCode::kInvalidModel));
  const auto fit = fit_of(options, inspection.image, inspection.findings);
  if (!fit) return report(fit.error());
  if (!inspection.findings.ok()) return report(inspection.findings.to_error(StatusCode::kArenaTooSmall));
  if (auto written = io::write_file(options.output, *bytes); !written) return report(written.error());
  for (const std::string& path : folders->ignored)
    fmt::print(stderr, "note: {} lies beside the models and was left out\n", printable(path));
  if (options.json) {
    nlohmann::json j = image_json(options.output, inspection.image);
    j["needed_sector_bytes"] = fit->sector_bytes;
    j["partitions_csv_line"] = fit->row;
    j["findings"] = findings_json(inspection.findings);
    print_json(j);
    return kExitOk;
  }
  print_findings(stderr, inspection.findings);
  fmt::print("{}: {} models, {} files, {} bytes\n", printable(options.output), inspection.image.models.size(),
             file_count(inspection.image), bytes->size());
  fmt::print("line for partitions.csv: {}\n", printable(fit->row));
  return kExitOk;
}

int extract(const PartitionArguments& options) {
  const auto opened = open_intact(options.file);
  if (!opened) return report(opened.error());
  const auto written = partition::extract(opened->inspection.image, opened->bytes, options.output);
  if (!written) return report(written.error());
  if (options.json) {
    print_json({{"folder", options.output}, {"files", *written}});
  } else {
    for (const std::string& path : *written) fmt::print("{}\n", printable(path));
  }
  return kExitOk;
}

using Shared = std::shared_ptr<PartitionArguments>;

void add_image(CLI::App& command, const Shared& options) {
  command.add_option("image", options->file, "the model partition, for example srmodels.bin")
      ->required()
      ->type_name("FILE.bin");
  command.add_flag("--json", options->json, "print JSON");
}

void add_table(CLI::App& command, const Shared& options) {
  command.add_option("--partitions", options->table, "compare with this partition table")->type_name("partitions.csv");
  command.add_option("--name", options->partition, "name of the partition")->capture_default_str();
  command.add_option("--table-offset", options->table_offset, "where flash keeps the partition table")
      ->capture_default_str();
}

void add_list(CLI::App& app, const Shared& options, int* exit_code) {
  CLI::App* command = app.add_subcommand("list", "models, files, wake words and thresholds of a partition");
  add_image(*command, options);
  command->footer("Example:\n  bantam partition list srmodels.bin --json");
  command->callback([=] { *exit_code = list(*options); });
}

void add_check(CLI::App& app, const Shared& options, int* exit_code) {
  CLI::App* command = app.add_subcommand("check", "every offset, length, count and name; the size the models need");
  add_image(*command, options);
  add_table(*command, options);
  command->add_flag("--strict", options->strict, "fail on warnings too");
  command->footer(
      "Reports everything it finds in one go; the exit code is 0 only if a loader would read what was meant and the\n"
      "partition is there and large enough.\n"
      "Examples:\n"
      "  bantam partition check srmodels.bin\n"
      "  bantam partition check srmodels.bin --partitions partitions.csv --name model");
  command->callback([=] { *exit_code = check(*options); });
}

void add_pack_image(CLI::App& app, const Shared& options, int* exit_code) {
  CLI::App* command = app.add_subcommand("pack", "make a partition from folders of models");
  command->add_option("folders", options->folders, "folders of model files, or folders of such folders")
      ->required()
      ->type_name("DIR");
  command->add_option("-o,--output", options->output, "the image to write")->required()->type_name("FILE.bin");
  add_table(*command, options);
  command->add_option("--order", options->order, "these models first, the others sorted behind them")
      ->type_name("NAME,...");
  command
      ->add_option("--align", options->alignment,
                   "bytes that every file's start is a multiple of; 1 as ESP-SR's own packer")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "The same names and contents give the same image. Names have at most 31 bytes.\n"
      "Example:\n"
      "  bantam partition pack models/ -o srmodels.bin --partitions partitions.csv --order wn9_hilexin");
  command->callback([=] { *exit_code = write_image(*options); });
}

void add_extract(CLI::App& app, const Shared& options, int* exit_code) {
  CLI::App* command = app.add_subcommand("extract", "write a partition's files to a folder per model");
  add_image(*command, options);
  command->add_option("-o,--output", options->output, "the folder to write to")->required()->type_name("DIR");
  command->footer("Example:\n  bantam partition extract srmodels.bin -o models/");
  command->callback([=] { *exit_code = extract(*options); });
}

}  // namespace

void add_partition(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("partition", "list, check, pack or extract a model partition, srmodels.bin");
  command->require_subcommand(1);
  const auto options = std::make_shared<PartitionArguments>();
  add_list(*command, options, exit_code);
  add_check(*command, options, exit_code);
  add_pack_image(*command, options, exit_code);
  add_extract(*command, options, exit_code);
  command->footer(
      "Examples:\n"
      "  bantam partition check srmodels.bin --partitions partitions.csv\n"
      "  bantam partition pack models/ -o srmodels.bin");
}

}  // namespace bantam::cli
