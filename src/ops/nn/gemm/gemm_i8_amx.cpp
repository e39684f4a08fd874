#include "ops/nn/gemm/gemm_i8_amx.h"

#if BANTAM_SIMD && defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "ops/common/unrolled.h"

namespace bantam::ops::gemm {
namespace {

constexpr std::int64_t kQuadBytes = 4 * kPanel;  ///< of a panel
constexpr std::int64_t kSumsStrideBytes = kAmxSumsStride * static_cast<std::int64_t>(sizeof(std::int32_t));

/// Tile registers: first the sums, panel after panel of each tile of rows.
constexpr int kLeft = 4;
constexpr int kRight = 6;

/// What LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::int64_t tile_rows, std::int64_t bytes) noexcept {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// For the assembler alone, so that no function must be compiled for AMX. What memory they read and write is not named
// to the compiler: it may be any.
template <int kTile>
[[gnu::always_inline]] inline void load_tile(const void* from, std::int64_t stride) noexcept {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
[[gnu::always_inline]] inline void store_tile(void* to, std::int64_t stride) noexcept {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}

template <bool kSigned, int kSum, int kA, int kB>
[[gnu::always_inline]] inline void add_products() noexcept {
  if constexpr (kSigned) {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  } else {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
}

}  // namespace

AmxTiles::~AmxTiles() {
  if (in_use_) asm volatile("tilerelease");
}

void AmxTiles::set_rows(const AmxRows& rows) noexcept {
  static_assert(kQuadBytes == kTileBytes);
  a_ = rows;
  tiles_ = (rows.rows + kTileRows - 1) / kTileRows;
  height_ = even_rows(rows.rows, kTileRows);
  // Into equal parts if that takes no more products.
  steps_ = (rows.quads + kTileQuads - 1) / kTileQuads;
  width_ = rows.quads % steps_ == 0 ? rows.quads / steps_ : kTileQuads;
  steps_ = rows.quads / width_;
  last_ = rows.quads % width_;
  for (auto& panel : last_quads_) std::fill_n(panel, last_ != 0 ? (width_ - last_) * kQuadBytes : 0, std::int8_t{0});
  TileShapes shapes;
  for (int tile = 0; tile < kLeft; ++tile) shapes.set(tile, height_, kTileBytes);
  for (int tile = kLeft; tile < kRight; ++tile) shapes.set(tile, height_, 4 * width_);
  for (int tile = kRight; tile < kRight + kAmxPanels; ++tile) shapes.set(tile, width_, kQuadBytes);
  asm volatile("ldtilecfg %0" : : "m"(shapes));
  in_use_ = true;
}

void AmxTiles::set_panels(const AmxPanels& panels) noexcept {
  b_ = panels;
  if (last_ == 0) return;
  for (std::int64_t p = 0; p < panels.count; ++p)
    std::memcpy(last_quads_[p] + (width_ - last_) * kQuadBytes,
                panels.data + p * panels.stride + steps_ * width_ * kQuadBytes,
                static_cast<std::size_t>(last_ * kQuadBytes));
}

template <bool kSigned, int kTiles, int kPanels>
[[gnu::always_inline]] inline void AmxTiles::multiply_tiles(const std::uint8_t* const (&rows)[kTiles]) const noexcept {
  const std::int64_t row_stride = a_.stride;
  const auto add = [&](std::int64_t at, const std::int8_t* panel, std::int64_t panel_stride) {
    unrolled<kPanels>([&](auto p) {
      load_tile<kRight + p>(panel + p * panel_stride, kQuadBytes);
      unrolled<kTiles>([&](auto t) {
        if constexpr (p == 0) load_tile<kLeft + t % 2>(rows[t] + at, row_stride);
        add_products<kSigned, t * kPanels + p, kLeft + t % 2, kRight + p>();
      });
    });
  };
  const std::int8_t* panel = b_.data;
  const std::int64_t panel_stride = b_.stride;
  const std::int64_t step_bytes = 4 * width_;
  const std::int64_t end = steps_ * step_bytes;
  for (std::int64_t at = 0; at < end; at += step_bytes) add(at, panel + at * kPanel, panel_stride);
  // There is a whole step before it.
  if (last_ != 0) add(4 * a_.quads - step_bytes, last_quads_[0], sizeof last_quads_[0]);
}

template <int kTiles, int kPanels>
void AmxTiles::sum_tiles(std::int64_t tile, std::int32_t* sums) const noexcept {
  static_assert(kTiles * kPanels <= kLeft && (kPanels == 1 || kTiles <= 2));
  const std::uint8_t* rows[kTiles];
  unrolled<kTiles>([&](auto t) { rows[t] = a_.data + first_row(tile + t) * a_.stride; });
  unrolled<kTiles>(
      [&](auto t) { unrolled<kPanels>([&](auto p) { load_tile<t * kPanels + p>(b_.start + p * kPanel, 0); }); });
  a_.is_signed ? multiply_tiles<true, kTiles, kPanels>(rows) : multiply_tiles<false, kTiles, kPanels>(rows);
  unrolled<kTiles>([&](auto t) {
    std::int32_t* row = sums + (first_row(tile + t) - first_row(tile)) * kAmxSumsStride;
    unrolled<kPanels>([&](auto p) { store_tile<t * kPanels + p>(row + p * kPanel, kSumsStrideBytes); });
  });
}

AmxTiles::Rows AmxTiles::sum(std::int64_t group, std::int32_t* sums) const noexcept {
  const std::int64_t begin = group * kTilesOfGroup;
  const std::int64_t end = std::min(begin + kTilesOfGroup, tiles_);
  const std::int64_t first = first_row(begin);
  if (b_.count == 1) {
    using Function = void (AmxTiles::*)(std::int64_t, std::int32_t*) const noexcept;
    static constexpr Function kFunctions[] = {&AmxTiles::sum_tiles<1, 1>, &AmxTiles::sum_tiles<2, 1>,
                                              &AmxTiles::sum_tiles<3, 1>, &AmxTiles::sum_tiles<4, 1>};
    (this->*kFunctions[end - begin - 1])(begin, sums);
  } else {
    std::int64_t tile = begin;
    for (; tile + 2 <= end; tile += 2) sum_tiles<2, 2>(tile, sums + (first_row(tile) - first) * kAmxSumsStride);
    if (tile < end) sum_tiles<1, 2>(tile, sums + (first_row(tile) - first) * kAmxSumsStride);
  }
  return {first, first_row(end - 1) + height_ - first};
}

}  // namespace bantam::ops::gemm

#endif
