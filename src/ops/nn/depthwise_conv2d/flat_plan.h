// How a depthwise convolution of bytes is cut so that it goes through flat rows (flat_bytes_simd-inl.h) in buffers of
// fixed sizes: batches of output rows, those that share what is interleaved, blocks of channels and strips of columns.
// Freestanding, pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/shape.h"
#include "ops/nn/conv2d/geometry.h"

namespace bantam::ops::depthwise {

struct FlatPlan {
  static constexpr std::int64_t kRoom = 8192;         ///< numbers of interleaved rows at once, at most
  static constexpr std::int64_t kMostWeights = 4096;  ///< numbers of a block's weights
  static constexpr std::int64_t kMostTaps = 64;       ///< columns times groups of rows of a window
  static constexpr std::int64_t kMostChannels = 256;  ///< of a block, at most
  static constexpr std::int64_t kMostRows = 4;        ///< of a batch
  static constexpr std::int64_t kMostBatches = 4;     ///< that are interleaved at once
  static constexpr std::int64_t kSlack = 64;          ///< numbers behind a row that may be written

  /// What a processor's vectors hold, and how blocks are cut for it.
  struct Vectors {
    std::int64_t group_rows;                     ///< whose bytes are multiplied in one step
    std::int64_t lanes;                          ///< channels
    bool stores_parts;                           ///< else no block of several may have less channels than that
    std::int64_t most_channels = kMostChannels;  ///< of a block, at most that
    std::int64_t room = kRoom;                   ///< numbers of interleaved rows at once, at most that
    bool joins_batches = false;                  ///< are batches interleaved together where they share no rows, too?
  };

  /// What is interleaved at once: rows of a block, or one row of a block, or of all blocks.
  enum class Order { kRows, kRow, kRowOfAll };

  FlatPlan(const ConvGeometry& g, const Vectors& vectors, Order order) {
    const WindowAxis& h = g.horizontal;
    stride = h.stride;
    window = (h.kernel - std::int64_t{1}) * h.dilation + 1;
    set_rows(g, vectors, order);
    if (g.y.w < 1 || window > vectors.room || stride > vectors.room || groups > kMostTaps ||
        h.kernel * groups > kMostTaps)
      return;
    set_block(g, vectors);
    if (block < 1) return;
    while (order == Order::kRows && has_room_for_batch(g, vectors.room)) ++batches;
    set_strip(g, order == Order::kRowOfAll ? vectors.room / blocks : vectors.room);
  }

  bool fits() const { return strip > 0; }
  /// Groups of so many batches.
  std::int64_t groups_of(std::int64_t batch_count) const { return groups + (batch_count - 1) * batch_step; }
  /// Columns of the image that `pixels` neighbours see.
  std::int64_t columns(std::int64_t pixels) const { return (pixels - 1) * stride + window; }
  std::int64_t block_room() const { return groups_of(batches) * pitch; }

  std::int64_t rows = 1;        ///< of a batch: output rows that see no more groups than one of them
  std::int64_t groups = 0;      ///< of image rows that a batch sees
  std::int64_t batches = 1;     ///< that are interleaved at once
  std::int64_t batch_step = 0;  ///< groups from a batch to the next: less than `groups` if some are shared; 0 of one
  std::int64_t stride = 1;      ///< columns from a window to the next
  std::int64_t window = 1;      ///< columns of a window
  std::int64_t blocks = 0;
  std::int64_t block = 0;  ///< channels of all blocks but the last
  std::int64_t pitch = 0;  ///< numbers from a group to the next
  std::int64_t strip = 0;  ///< output columns at once, at most; 0 if there is no room

 private:
  void set_rows(const ConvGeometry& g, const Vectors& vectors, Order order) {
    const WindowAxis& v = g.vertical;
    const std::int64_t per_group = vectors.group_rows;
    groups = (v.kernel + per_group - 1) / per_group;
    if (v.dilation != 1 || order != Order::kRows) return;
    const std::int64_t most = (groups * per_group - v.kernel) / v.stride + 1;
    rows = std::clamp<std::int64_t>(most, 1, std::min<std::int64_t>(kMostRows, std::max(g.y.h, 1)));
    const std::int64_t step = rows * v.stride / per_group;
    if (rows * v.stride % per_group == 0 && step < groups) {
      batch_step = step;
    } else if (vectors.joins_batches) {
      batch_step = groups;
    }
  }

  void set_block(const ConvGeometry& g, const Vectors& vectors) {
    constexpr std::int64_t kLeastPixels = 12;  // fewer would share too few columns
    const std::int64_t least_columns = columns(std::min<std::int64_t>(g.y.w, kLeastPixels));
    std::int64_t most = kMostWeights / (rows * g.horizontal.kernel * groups) - vectors.lanes;
    most = std::min({most, (pitch_within(vectors.room) - kSlack) / least_columns, vectors.most_channels});
    if (g.x.c > most) most -= most % vectors.lanes;
    if (most < 1) return;
    blocks = (g.x.c + most - 1) / most;
    block = blocks == 1 ? g.x.c : align_up((g.x.c + blocks - 1) / blocks, vectors.lanes);
    if (!vectors.stores_parts) {
      const auto last_is_narrow = [&] { return g.x.c > block && (g.x.c - 1) % block + 1 < vectors.lanes; };
      while (block > 0 && last_is_narrow()) block -= vectors.lanes;
      if (block == 0) return;
    }
    blocks = (g.x.c + block - 1) / block;
  }

  /// Is there room for whole rows of another batch?
  bool has_room_for_batch(const ConvGeometry& g, std::int64_t room) const {
    const std::int64_t row = columns(g.y.w) * block + kSlack + kAlignment;
    return batch_step > 0 && batches < kMostBatches && batches * rows < g.y.h && groups_of(batches + 1) * row <= room;
  }

  std::int64_t pitch_within(std::int64_t room) const { return room / groups_of(batches) / kAlignment * kAlignment; }

  void set_strip(const ConvGeometry& g, std::int64_t room) {
    const std::int64_t most = pitch_within(room);
    const std::int64_t most_columns = (most - kSlack) / block;
    if (most <= kSlack || most_columns < window) return;
    strip = std::min<std::int64_t>((most_columns - window) / stride + 1, g.y.w);
    const std::int64_t strips = (g.y.w + strip - 1) / strip;
    strip = (g.y.w + strips - 1) / strips;
    // Groups a power of two apart would take turns in the same places of the first cache.
    pitch = align_up(columns(strip) * block + kSlack, kAlignment) | kAlignment;
    pitch = std::min(pitch, most);
  }

  static constexpr std::int64_t kAlignment = 16;
};

}  // namespace bantam::ops::depthwise
