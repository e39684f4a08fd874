// Making a model partition from folders, and the way back.
//
// A model is a folder of files; a collection is a folder of such folders. The image depends on nothing but names and
// contents: models and files are sorted by name, payloads aligned, gaps filled with zeros. Names that the format cannot
// hold are refused, all in one Error. Host files only; no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "partition/image.h"

namespace bantam::partition {

struct PackedFile {
  std::string name;
  std::vector<std::byte> bytes;
};

struct PackedModel {
  std::string name;
  std::vector<PackedFile> files;
};

struct ModelFolders {
  std::vector<PackedModel> models;   ///< sorted by name
  std::vector<std::string> ignored;  ///< paths of files that lie beside the models of a collection
};

/// Reads models and collections. A folder with folders in it is a collection.
Result<ModelFolders> read_model_folders(const std::vector<std::string>& folders);

/// Puts the models named in `order` first, in that order: a loader that searches takes the first that fits.
Result<void> order_models(std::vector<PackedModel>& models, const std::vector<std::string>& order);

/// The image. `alignment` of every payload is a power of two; 1 gives the layout of ESP-SR's own packer.
Result<std::vector<std::byte>> build_image(const std::vector<PackedModel>& models,
                                           std::uint32_t alignment = kPayloadAlignment);

/// Writes every file of an image to FOLDER/MODEL/FILE and returns the paths. The image must be free of errors. Nothing
/// is written outside `folder` or over anything that is there: a model's folder must not exist yet.
Result<std::vector<std::string>> extract(const Image& image, std::span<const std::byte> bytes,
                                         const std::string& folder);

}  // namespace bantam::partition
