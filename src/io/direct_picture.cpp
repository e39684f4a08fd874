#include "io/direct_picture.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace bantam::io {
namespace {

/// Can the target be read as rows of a picture of that many interleaved channels, a byte each?
bool holds_pixels(const TensorDesc& desc, const ImageInfo& info) {
  if (element_size(desc.type) != 1 || desc.type == ElementType::kBool || !desc.is_dense()) return false;
  if (desc.rank < 2 || desc.rank > 4 || (desc.rank == 4 && desc.dims[0] != 1)) return false;
  const std::int32_t* dims = desc.dims + (desc.rank == 4 ? 1 : 0);
  if (desc.rank == 2) return info.channels == 1 && dims[0] == info.height && dims[1] == info.width && dims[0] > 1;
  // Channels first is the same for one channel.
  const bool first = info.channels == 1 && dims[0] == 1 && dims[1] == info.height && dims[2] == info.width;
  return first || (dims[0] == info.height && dims[1] == info.width && dims[2] == info.channels);
}

/// Does the specification leave the pixels where they are?
bool keeps_pixels(const InputSpec& spec, const ImageInfo& info) {
  if (info.channels != 1 && info.channels != 3) return false;
  if (spec.color && *spec.color != (info.channels == 1 ? Color::kGray : Color::kRgb)) return false;
  if (spec.resize && (spec.resize->width != info.width || spec.resize->height != info.height)) return false;
  if (spec.layout == Layout::kNchw && info.channels != 1) return false;
  return !spec.offset && !spec.samples && !spec.pad && !spec.type;
}

std::vector<float> of_channel(const std::vector<float>& list, std::size_t channel) {
  return list.size() > 1 ? std::vector<float>{list[channel]} : list;
}

/// What preprocessing makes of each of the 256 pixel values of a channel.
Result<Array> preprocess_values(const InputSpec& spec, const InputTarget& target, std::size_t channel) {
  constexpr int kSide = 16;
  Image values{kSide, kSide, 1, std::vector<std::uint8_t>(kSide * kSide)};
  std::iota(values.pixels.begin(), values.pixels.end(), std::uint8_t{0});
  InputTarget square = target;
  square.desc.rank = 2;
  square.desc.dims[0] = square.desc.dims[1] = kSide;
  square.desc.set_dense_strides();
  InputSpec plain;
  plain.mean = of_channel(spec.mean, channel);
  plain.scale = of_channel(spec.scale, channel);
  plain.quantize = spec.quantize;
  return preprocess(plain, Source(std::move(values)), square);
}

}  // namespace

Result<std::optional<DirectPicture>> DirectPicture::open(const InputSpec& spec, const InputTarget& target) {
  if (spec.kind != SourceKind::kFile || !spec.entry.empty()) return std::nullopt;
  auto file = MappedFile::open(spec.path);
  if (!file) return fail(std::move(file.error()));
  if (!looks_like_image(file->bytes())) return std::nullopt;
  const auto info = image_info(file->bytes());
  if (!info) return fail(Error(info.error()).in(spec.path));
  const auto channels = static_cast<std::size_t>(info->channels);
  const auto fits = [&](const std::vector<float>& list) { return list.size() <= 1 || list.size() == channels; };
  if (!holds_pixels(target.desc, *info) || !keeps_pixels(spec, *info) || !fits(spec.mean) || !fits(spec.scale))
    return std::nullopt;
  DirectPicture picture;
  picture.size_ = {info->width, info->height};
  picture.channels_ = info->channels;
  for (std::size_t c = 0; c < (spec.mean.size() > 1 || spec.scale.size() > 1 ? channels : 1); ++c) {
    const auto values = preprocess_values(spec, target, c);
    if (!values) return fail(values.error());
    std::memcpy(picture.tables_.emplace_back().data(), values->data.data(), sizeof(Table));
  }
  Table same;
  std::iota(same.begin(), same.end(), std::uint8_t{0});
  if (std::ranges::all_of(picture.tables_, [&](const Table& table) { return table == same; })) picture.tables_.clear();
  picture.path_ = spec.path;
  picture.file_ = std::move(*file);
  return picture;
}

Result<void> DirectPicture::decode(std::span<std::byte> tensor) const {
  auto* const pixels = reinterpret_cast<std::uint8_t*>(tensor.data());
  const ImageInfo info{size_.width, size_.height, channels_};
  if (auto done = decode_image_into(file_.bytes(), info, {pixels, tensor.size()}); !done)
    return fail(std::move(done.error()).in(path_));
  const std::size_t count = tables_.size();
  for (std::size_t i = 0; count > 0 && i < tensor.size(); ++i) pixels[i] = tables_[i % count][pixels[i]];
  return {};
}

}  // namespace bantam::io
