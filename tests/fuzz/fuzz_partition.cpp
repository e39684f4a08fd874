// Model partitions: what is free of errors lies within the bytes, and is read back when it is packed again.
#include <string>
#include <vector>

#include "partition/pack.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {
namespace {

std::vector<partition::PackedModel> models_of(const partition::Image& image, std::span<const std::byte> bytes) {
  std::vector<partition::PackedModel> models;
  for (const partition::ImageModel& model : image.models) {
    partition::PackedModel& packed = models.emplace_back(partition::PackedModel{model.name, {}});
    for (const partition::ImageFile& file : model.files) {
      require(file.end() <= bytes.size(), "a file of an image without errors lies outside it");
      const auto part = bytes.subspan(file.start, file.length);
      packed.files.push_back({file.name, {part.begin(), part.end()}});
    }
  }
  return models;
}

}  // namespace

void fuzz_partition(std::span<const std::byte> bytes) {
  const partition::Inspection result = partition::inspect(bytes);
  for (const partition::Finding& finding : result.findings.list())
    require(!finding.message.empty() && describe(finding).find('\n') == std::string::npos,
            "a finding is not one line of text");
  if (!result.findings.ok()) {
    require_message(result.findings.to_error(StatusCode::kInvalidModel));
    return;
  }
  const auto models = models_of(result.image, bytes);
  for (const std::uint32_t alignment : {1U, partition::kPayloadAlignment}) {
    const auto packed = partition::build_image(models, alignment);
    require(packed.has_value(), "an image that was read cannot be packed");
    const partition::Inspection again = partition::inspect(*packed);
    require(again.findings.ok(), "a packed image has errors: " +
                                     (again.findings.ok() ? std::string() : describe(again.findings.list().front())));
    const auto copies = models_of(again.image, *packed);
    require(copies.size() == models.size(), "packing loses models");
    for (std::size_t m = 0; m < models.size(); ++m) {
      require(copies[m].name == models[m].name && copies[m].files.size() == models[m].files.size(),
              "packing changes a model");
      for (std::size_t f = 0; f < models[m].files.size(); ++f)
        require(
            copies[m].files[f].name == models[m].files[f].name && copies[m].files[f].bytes == models[m].files[f].bytes,
            "packing changes a file");
    }
  }
}

}  // namespace bantam::fuzz
