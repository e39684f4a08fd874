// A picture file decoded straight into the tensor that a model reads, without a picture in between.
//
// That is possible where every pixel value becomes one byte of the tensor: 8-bit elements, plain or quantised, the
// picture's own size, its channels interleaved (or one). The decoder writes its rows into the tensor; a table of 256
// values, made by the ordinary preprocessing and therefore equal to it, then turns pixel values into stored ones where
// they differ. Untrusted files: the size is compared before a pixel is written. Re-entrant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "io/file.h"
#include "io/image.h"
#include "io/input_spec.h"
#include "io/preprocess.h"

namespace bantam::io {

class DirectPicture {
 public:
  /// Nothing when the file is no picture, or has to be preprocessed for this target.
  static Result<std::optional<DirectPicture>> open(const InputSpec& spec, const InputTarget& target);

  /// Decodes the file into `tensor`, which has the target's bytes. Equal to what preprocess() gives.
  Result<void> decode(std::span<std::byte> tensor) const;

 private:
  using Table = std::array<std::uint8_t, 256>;

  std::string path_;
  MappedFile file_;
  ImageSize size_;
  int channels_ = 0;
  std::vector<Table> tables_;  ///< pixel value -> stored byte; one per channel or one for all; empty: as they are
};

}  // namespace bantam::io
