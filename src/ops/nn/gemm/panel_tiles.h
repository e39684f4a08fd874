// How the panels of a right matrix are cut into tiles of columns, of which some may be wider than others.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bantam::ops::gemm {

/// Wide tiles come first, then those of three panels, then the others.
class PanelTiles {
 public:
  /// Tiles of `width` panels.
  PanelTiles(std::int64_t panels, std::int64_t width) : PanelTiles(panels, width, width, 0, 0) {}

  /// As many as possible of `wide` panels.
  static PanelTiles of_wide(std::int64_t panels, std::int64_t width, std::int64_t wide) {
    return {panels, width, wide, panels / wide, 0};
  }

  /// Tiles of three and four panels where there are so many, of three as far as possible.
  static PanelTiles of_threes(std::int64_t panels, std::int64_t width) {
    if (panels < 3 || panels == 5) return {panels, width, kFour, 0, panels / 3};
    const std::int64_t fours = panels % 3;
    return {panels, width, kFour, fours, (panels - fours * kFour) / 3};
  }

  /// The same, of four as far as possible.
  static PanelTiles of_fours(std::int64_t panels, std::int64_t width) {
    if (panels < 3 || panels == 5) return {panels, width, kFour, 0, panels / 3};
    const std::int64_t threes = (kFour - panels % kFour) % kFour;
    return {panels, width, kFour, (panels - threes * 3) / kFour, threes};
  }

  std::int64_t count() const { return count_; }
  bool is_wide(std::int64_t tile) const { return tile < wide_tiles_; }

  /// The first panel of a tile, or what is behind the last tile.
  std::int64_t first(std::int64_t tile) const {
    const std::int64_t wide = std::min(tile, wide_tiles_);
    const std::int64_t threes = std::min(tile - wide, threes_);
    return std::min(wide * wide_ + threes * 3 + (tile - wide - threes) * width_, panels_);
  }

 private:
  static constexpr std::int64_t kFour = 4;

  PanelTiles(std::int64_t panels, std::int64_t width, std::int64_t wide, std::int64_t wide_tiles, std::int64_t threes)
      : panels_(panels),
        width_(width),
        wide_(wide),
        wide_tiles_(wide_tiles),
        threes_(threes),
        count_(wide_tiles + threes + (panels - wide_tiles * wide - threes * 3 + width - 1) / width) {}

  std::int64_t panels_;
  std::int64_t width_;
  std::int64_t wide_;
  std::int64_t wide_tiles_;
  std::int64_t threes_;
  std::int64_t count_;
};

}  // namespace bantam::ops::gemm
