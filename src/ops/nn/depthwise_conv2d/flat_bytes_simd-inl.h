// Depthwise convolution of bytes in flat rows, for the integer kernels of depthwise_conv2d and conv2d_affine; exact.
// The rows that windows see are interleaved (row_groups_simd-inl.h) into numbers that follow each other like the bytes
// of a row, pixel by pixel: a tap lies some pixels further on, and a vector of sums may begin anywhere. So where
// windows are one pixel apart and the results of a row follow each other, too, vectors take them as they come, whatever
// the number of channels; numbers that belong to channels are repeated behind the last (flat_finish_simd-inl.h). Else
// vectors take channels of a pixel. Rows and columns outside the image hold the zero point. Included by *_simd.cpp
// files inside Highway's per-target compilation; buffers of some 55 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_FLAT_BYTES_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_FLAT_BYTES_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_FLAT_BYTES_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_FLAT_BYTES_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "hwy/highway.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/flat_finish_simd-inl.h"
#include "ops/nn/depthwise_conv2d/flat_plan.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/depthwise_conv2d/row_groups_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))

#if HWY_ARCH_ARM_A64
// Vectors of few channels: what all their pixels need is made for several batches, in a part of the first cache.
constexpr FlatPlan::Vectors kFlatVectors{.group_rows = kGroupRows,
                                         .lanes = kSumLanes,
                                         .stores_parts = false,
                                         .most_channels = 64,
                                         .room = 4096,
                                         .joins_batches = true};
#else
constexpr FlatPlan::Vectors kFlatVectors{
    .group_rows = kGroupRows, .lanes = kSumLanes, .stores_parts = HWY_TARGET == HWY_AVX3_DL};
#endif

/// Output pixels of neighbouring rows: `rows` of them from row oy of item n on, `count` columns from column ox on.
struct OutputPart {
  std::int64_t n;
  std::int64_t oy;
  std::int64_t rows;
  std::int64_t ox;
  std::int64_t count;
};

/// A block of channels of the image, interleaved.
class FlatImage {
 public:
  HWY_INLINE FlatImage(const ByteImages& images, const FlatPlan& plan, std::int64_t first)
      : p_(images), plan_(plan), first_(first), count_(std::min(plan.block, p_.g.x.c - first)) {}

  /// What the windows of `part` see: block_room() numbers.
  HWY_NOINLINE void interleave(const OutputPart& part, std::int32_t* to) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t groups = plan_.groups_of((part.rows + plan_.rows - 1) / plan_.rows);
    const std::int64_t top = window_origin(g.vertical, part.oy);
    const std::int64_t left = window_origin(g.horizontal, part.ox);
    // Groups of batches that share none begin with the first row of each batch.
    const std::int64_t apart = plan_.batch_step == plan_.groups ? plan_.groups : groups;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t row =
          group / apart * plan_.rows * g.vertical.stride + group % apart * kGroupRows * g.vertical.dilation;
      interleave_row(part.n, top + row, left, plan_.columns(part.count), to + group * plan_.pitch);
    }
  }

 protected:
  const ByteImages& p_;
  const FlatPlan& plan_;
  std::int64_t first_;  ///< channel
  std::int64_t count_;  ///< channels

 private:
  /// Image columns [first, first + columns) of the group whose first row is `row`.
  HWY_INLINE void interleave_row(std::int64_t n, std::int64_t row, std::int64_t first, std::int64_t columns,
                                 std::int32_t* to) const {
    const ImageShape& x = p_.g.x;
    // Numbers of columns, of which all may lie on one side of the image.
    std::int64_t inside = std::clamp<std::int64_t>(-first, 0, columns);
    std::int64_t inside_end = std::clamp<std::int64_t>(x.w - first, inside, columns);
    const RowGroup group = rows_from(n, row);
    bool any = false;
    for (const bool there : group.there) any = any || there;
    if (!any) inside = inside_end = columns;
    const std::int32_t outside = group_of(static_cast<std::uint8_t>(p_.form.zero));
    fill(to, inside * count_, outside);
    if (inside < inside_end) {
      const Interleaver<Widening::kUnsigned> rows(group);
      if (x.w_stride == count_) {
        rows((first + inside) * count_, (inside_end - inside) * count_, to + inside * count_);
      } else {
        for (std::int64_t i = inside; i < inside_end; ++i) rows((first + i) * x.w_stride, count_, to + i * count_);
      }
    }
    fill(to + inside_end * count_, (columns - inside_end) * count_, outside);
  }

  /// Up to kVectorLanes - 1 more are written.
  static HWY_INLINE void fill(std::int32_t* to, std::int64_t count, std::int32_t number) {
    const DSum d;
    for (std::int64_t i = 0; i < count; i += kVectorLanes) hn::StoreU(hn::Set(d, number), d, to + i);
  }

  RowGroup rows_from(std::int64_t n, std::int64_t row) const {
    const ImageShape& x = p_.g.x;
    RowGroup group;
    group.flip = p_.form.flip;
    group.outside = static_cast<std::uint8_t>(p_.form.zero);
    for (int i = 0; i < kGroupRows; ++i) {
      const std::int64_t iy = row + i * std::int64_t{p_.g.vertical.dilation};
      group.there[i] = iy >= 0 && iy < x.h && x.w > 0;
      group.rows[i] = p_.x + x.offset(n, std::max<std::int64_t>(std::min<std::int64_t>(iy, x.h - 1), 0), 0) + first_;
    }
    return group;
  }
};

/// What is the same for all pixels of a block of channels; Tile: the last stage.
template <class Tile>
class FlatBlock : private FlatImage {
 public:
  template <class Scaler>
  HWY_NOINLINE FlatBlock(const ByteImages& images, const FlatPlan& plan, const Scaler& scaler, std::int64_t first)
      : FlatImage(images, plan, first),
        row_groups_(plan.groups),
        taps_(images.g.horizontal.kernel * plan.groups),
        pitch_(count_ + kWrapped),
        row_step_(taps_ * pitch_),
        wraps_(plan.stride == 1 && images.g.y.w_stride == count_ && fills_badly(count_)),
        channels_(scaler, first, count_, wraps_ || count_ < kSumLanes) {
    set_weights();
    for (std::int64_t row = 1; row < plan.rows; ++row) shift_weights(row);
    set_start();
    set_places();
  }

  using FlatImage::interleave;

  /// The part, whose windows have been interleaved to `numbers`.
  HWY_INLINE void convolve(const OutputPart& part, const std::int32_t* numbers) const {
    const bool flat = wraps_ && part.count * count_ >= kSumLanes;
    Tile::with_way(channels_, flat || count_ >= kSumLanes, [&](auto way) HWY_ATTR {
      std::uint8_t* y = p_.y + p_.g.y.offset(part.n, part.oy, part.ox) + first_;
      for (std::int64_t left = part.rows; left > 0;) {
        const std::int64_t rows = std::min(plan_.rows, left);
        const std::int64_t count = kFlatVectors.joins_batches ? left / rows : 1;
        const Batches batches{count, plan_.batch_step * plan_.pitch, rows * p_.g.y.h_stride};
        convolve_batches(way, numbers, batches, rows, part.count, y);
        numbers += count * batches.step;
        y += count * batches.y_step;
        left -= count * rows;
      }
    });
  }

 private:
  /// Would vectors that take channels of one pixel waste more than a sixteenth of their lanes?
  static bool fills_badly(std::int64_t channels) { return align_up(channels, kSumLanes) * 15 > channels * 16; }

  /// Those of the first output row of a batch.
  HWY_INLINE void set_weights() {
    const WindowAxis& h = p_.g.horizontal;
    for (std::int64_t kx = 0; kx < h.kernel; ++kx)
      for (std::int64_t i = 0; i < row_groups_; ++i) {
        RowGroup group{};
        for (int j = 0; j < kGroupRows; ++j) {
          const std::int64_t ky = i * kGroupRows + j;
          group.there[j] = ky < p_.g.vertical.kernel;
          const std::int64_t tap = group.there[j] ? ky * h.kernel + kx : 0;
          group.rows[j] = reinterpret_cast<const std::uint8_t*>(p_.w) + tap * p_.g.x.c + first_;
        }
        std::int32_t* to = weights_ + (kx * row_groups_ + i) * pitch_;
        Interleaver<Widening::kSigned> weights(group);
        weights(0, count_, to);
        wrap_channels(to, count_);
      }
  }

  /// Those of output row `row`: the first one's, further down by what lies between them.
  HWY_INLINE void shift_weights(std::int64_t row) {
    const std::int64_t down = row * p_.g.vertical.stride;
    const std::int64_t whole = down / kGroupRows;
    const int bits = static_cast<int>(down % kGroupRows) * (32 / kGroupRows);
    for (std::int64_t kx = 0; kx < p_.g.horizontal.kernel; ++kx)
      for (std::int64_t i = 0; i < row_groups_; ++i) {
        const std::int64_t at = (kx * row_groups_ + i) * pitch_;
        const std::int32_t* same = i >= whole ? weights_ + at - whole * pitch_ : nullptr;
        const std::int32_t* above = i > whole && bits > 0 ? same - pitch_ : nullptr;
        shift_group(same, above, bits, weights_ + row * row_step_ + at);
      }
  }

  /// A tap's numbers: those of `same`, shifted, and what is shifted out of `above`, each of which may be null. As many
  /// as fill vectors are written.
  HWY_INLINE void shift_group(const std::int32_t* same, const std::int32_t* above, int bits, std::int32_t* to) const {
    const DSum d;
    const hn::RebindToUnsigned<DSum> du;
    for (std::int64_t c = 0; c < pitch_; c += kVectorLanes) {
      auto shifted = hn::Zero(d);
      if (same != nullptr) shifted = hn::ShiftLeftSame(hn::LoadU(d, same + c), bits);
      if (above != nullptr) {
        const auto rest = hn::ShiftRightSame(hn::BitCast(du, hn::LoadU(d, above + c)), 32 - bits);
        shifted = hn::Or(shifted, hn::BitCast(d, rest));
      }
      hn::StoreU(shifted, d, to + c);
    }
  }

  /// What sums start at: the bias, the zero point of x taken off.
  HWY_INLINE void set_start() {
    const DSum d;
    const auto ones = hn::Set(d, group_of(1));
    const auto zero = hn::Set(d, p_.form.zero);
    // A copy, of which whole vectors can be read.
    const std::int32_t* bias = start_.set(channels_.bias(), count_);
    for (std::int64_t c = 0; c < count_; c += kVectorLanes) {
      auto sums = hn::Zero(d);
      for (std::int64_t tap = 0; tap < taps_; ++tap)
        sums = add_group_products(sums, ones, hn::LoadU(d, weights_ + tap * pitch_ + c));
      const auto begin = bias != nullptr ? hn::LoadU(d, bias + c) : hn::Zero(d);
      hn::StoreU(hn::Sub(begin, hn::Mul(sums, zero)), d, start_.numbers + c);
    }
    wrap_channels(start_.numbers, count_);
  }

  /// Where each tap lies behind a window's first, in what is interleaved.
  HWY_INLINE void set_places() {
    const WindowAxis& h = p_.g.horizontal;
    for (std::int64_t kx = 0; kx < h.kernel; ++kx)
      for (std::int64_t i = 0; i < row_groups_; ++i)
        places_[kx * row_groups_ + i] = i * plan_.pitch + kx * h.dilation * count_;
  }

  /// Vectors of sums of `count` places: `step` numbers apart in what is interleaved, and y_step bytes in results.
  struct Vectors {
    std::int64_t count;
    std::int64_t step;
    std::int64_t y_step;
    std::int64_t channel;  ///< of the first lane
    std::int64_t columns;  ///< lanes that are stored
  };

  /// Batches of rows: `step` numbers apart in what is interleaved, and y_step bytes in results.
  struct Batches {
    std::int64_t count;
    std::int64_t step;
    std::int64_t y_step;
  };

  /// `rows` rows of each batch.
  template <class Way>
  HWY_INLINE void convolve_batches(Way, const std::int32_t* numbers, const Batches& batches, std::int64_t rows,
                                   std::int64_t pixels, std::uint8_t* y) const {
    const std::int64_t y_row = p_.g.y.h_stride;
    std::int64_t row = 0;
    if constexpr (Way::kWhole) {
      if (taps_ == kResidentTaps) {
        if constexpr (!Tile::kFillsRegisters) {
          for (; row + 2 <= rows; row += 2)
            convolve_rows<Way, 2, kResidentTaps>(numbers, batches, row, pixels, y + row * y_row);
        }
        for (; row < rows; ++row) convolve_rows<Way, 1, kResidentTaps>(numbers, batches, row, pixels, y + row * y_row);
      }
      for (; row + 2 <= rows; row += 2) convolve_rows<Way, 2, 0>(numbers, batches, row, pixels, y + row * y_row);
    }
    for (; row < rows; ++row) convolve_rows<Way, 1, 0>(numbers, batches, row, pixels, y + row * y_row);
  }

  /// kRows rows of each batch from the row-th on. kTaps: of windows of so many, whose weights stay in registers; 0 for
  /// others.
  template <class Way, int kRows, int kTaps>
  HWY_NOINLINE void convolve_rows(const std::int32_t* numbers, const Batches& batches, std::int64_t row,
                                  std::int64_t pixels, std::uint8_t* y) const {
    const std::int64_t row_bytes = pixels * count_;
    const std::int32_t* w = weights_ + row * row_step_;
    if (wraps_ && row_bytes >= kSumLanes) {
      const std::int64_t period = std::lcm(count_, kSumLanes);
      const std::int64_t whole = row_bytes / kSumLanes;
      const std::int64_t in_period = period / kSumLanes;
      for (std::int64_t i = 0, channel = 0; i < std::min(whole, in_period); ++i) {
        const Vectors vectors{(whole - i + in_period - 1) / in_period, period, period, channel, kSumLanes};
        convolve_vectors<Way, kRows, kTaps>(numbers + i * kSumLanes, batches, w, vectors, y + i * kSumLanes);
        channel = (channel + kSumLanes) % count_;
      }
      const std::int64_t last = row_bytes - kSumLanes;
      if (row_bytes % kSumLanes != 0)
        convolve_vectors<Way, kRows, kTaps>(numbers + last, batches, w, {1, 0, 0, last % count_, kSumLanes}, y + last);
      return;
    }
    const std::int64_t columns = std::min(count_, kSumLanes);
    for (std::int64_t c = 0; c < count_; c += kSumLanes) {
      const std::int64_t channel = std::min(c, count_ - columns);
      const Vectors vectors{pixels, plan_.stride * count_, p_.g.y.w_stride, channel, columns};
      convolve_vectors<Way, kRows, kTaps>(numbers + channel, batches, w, vectors, y + channel);
    }
  }

  /// What all tiles of some vectors need: copies, since stores of bytes could change what is elsewhere.
  template <int kRows, int kTaps>
  struct TileTaps {
    VSum start;
    VSum resident[std::max(kTaps, 1)][kRows];
    std::int64_t places[std::max(kTaps, 1)];
    const std::int32_t* weights;
    std::int64_t y_row;

    /// `w`: of the first tap and row.
    HWY_INLINE TileTaps(const FlatBlock& block, const std::int32_t* w, std::int64_t channel)
        : start(load_sums(block.start_.numbers + channel)), weights(w + channel), y_row(block.p_.g.y.h_stride) {
      ops::HWY_NAMESPACE::unroll<kTaps>([&](auto tap) __attribute__((always_inline)) HWY_ATTR {
        load_weights(weights + tap * block.pitch_, block.row_step_, resident[tap]);
        places[tap] = block.places_[tap];
      });
    }
  };

  /// The vectors of all batches.
  template <class Way, int kRows, int kTaps>
  HWY_INLINE void convolve_vectors(const std::int32_t* numbers, const Batches& batches, const std::int32_t* w,
                                   const Vectors& v, std::uint8_t* y) const {
    const Tile tile(channels_, v.channel, v.columns);
    const TileTaps<kRows, kTaps> taps(*this, w, v.channel);
    if constexpr (!kFlatVectors.joins_batches) return convolve_tiles<Way>(tile, numbers, v, taps, y);
    for (std::int64_t batch = batches.count; batch > 0; --batch, numbers += batches.step, y += batches.y_step)
      convolve_tiles<Way>(tile, numbers, v, taps, y);
  }

  /// The vectors of one batch.
  template <class Way, int kRows, int kTaps>
  HWY_INLINE void convolve_tiles(const Tile& tile, const std::int32_t* numbers, const Vectors& v,
                                 const TileTaps<kRows, kTaps>& taps, std::uint8_t* y) const {
    const auto convolve = [&](auto vectors, std::int64_t i) __attribute__((always_inline)) HWY_ATTR {
      convolve_tile<Way, kRows, kTaps, vectors>(tile, numbers + i * v.step, v, taps, y + i * v.y_step);
    };
    // Where weights are loaded anew for each tile it should be large.
    constexpr int kMost = kTaps == 0 ? 4 : kTileVectors;
    constexpr std::integral_constant<int, kMost> several;
    std::int64_t i = 0;
    for (; i + kMost <= v.count; i += kMost) convolve(several, i);
    if (kRows * 2 >= kTileVectors && v.count - i == 2) return convolve(std::integral_constant<int, 2>(), i);
    // Two or three are computed with some of those before, which come twice.
    if (v.count - i > 1 && v.count >= kMost) return convolve(several, v.count - kMost);
    for (; i < v.count; ++i) convolve(std::integral_constant<int, 1>(), i);
  }

  template <int kRows>
  static HWY_INLINE void load_weights(const std::int32_t* w, std::int64_t step, VSum (&weights)[kRows]) {
    ops::HWY_NAMESPACE::unroll<kRows>([&](auto row) HWY_ATTR { weights[row] = load_sums(w + row * step); });
  }

  /// The first kVectors of v, of each row.
  template <class Way, int kRows, int kTaps, int kVectors>
  HWY_INLINE void convolve_tile(const Tile& tile, const std::int32_t* x, const Vectors& v,
                                const TileTaps<kRows, kTaps>& taps, std::uint8_t* y) const {
    using ops::HWY_NAMESPACE::unroll;
    VSum sums[kRows][kVectors];
    unroll<kRows>([&](auto row) HWY_ATTR { unroll<kVectors>([&](auto k) HWY_ATTR { sums[row][k] = taps.start; }); });
    if constexpr (kTaps > 0 && Tile::kFillsRegisters) {
      const std::int32_t* w = taps.weights;
      asm volatile("" : "+r"(w));  // so that the compiler does not keep weights, but loads them for each tile
      unroll<kTaps>([&](auto tap) __attribute__((always_inline)) HWY_ATTR {
        VSum weights[kRows];
        load_weights(w + tap * pitch_, row_step_, weights);
        add_tap(x + taps.places[tap], v.step, weights, sums);
      });
    } else {
      unroll<kTaps>([&](auto tap) __attribute__((always_inline))
                    HWY_ATTR { add_tap(x + taps.places[tap], v.step, taps.resident[tap], sums); });
    }
    if constexpr (kTaps == 0) {
      const std::int32_t* w = taps.weights;
      for (std::int64_t tap = 0; tap < taps_; ++tap, w += pitch_) {
        VSum weights[kRows];
        load_weights(w, row_step_, weights);
        add_tap(x + places_[tap], v.step, weights, sums);
      }
    }
    store_tile<Way>(tile, sums, v.y_step, taps.y_row, y);
  }

  /// Stores the sums of a tile. Those of less than kTileVectors of a row go together.
  template <class Way, int kRows, int kVectors>
  static HWY_INLINE void store_tile(const Tile& tile, const VSum (&sums)[kRows][kVectors], std::int64_t y_step,
                                    std::int64_t y_row, std::uint8_t* y) {
    // Instead of sums that are not there some are stored again.
    constexpr int kLastRow = kRows - 1;
    constexpr int kLast = kVectors - 1;
    if constexpr (kVectors == kTileVectors) {
      // In line by request, since a call would put all sums into memory.
      ops::HWY_NAMESPACE::unroll<kRows>([&](auto row) __attribute__((always_inline)) HWY_ATTR {
        std::uint8_t* to = y + row * y_row;
        tile.store(Way(), sums[row], {to, to + 2 * y_step, y_step});
      });
    } else if constexpr (kVectors == 2 * kTileVectors) {
      const Tile* last = &tile;
      asm volatile("" : "+r"(last));  // so that the compiler does not keep in registers what the last stage needs
      ops::HWY_NAMESPACE::unroll<2 * kRows>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
        constexpr int kRow = i / 2;
        constexpr int kFirst = i % 2 * kTileVectors;
        const VSum half[kTileVectors] = {sums[kRow][kFirst], sums[kRow][kFirst + 1]};
        last->store(Way(), half, {y + kRow * y_row + kFirst * y_step, nullptr, y_step});
      });
    } else if constexpr (kTileVectors == 4) {
      static_assert(kRows * kVectors <= kTileVectors);
      const VSum all[kTileVectors] = {sums[0][0], sums[0][kLast], sums[kLastRow][0], sums[kLastRow][kLast]};
      tile.store(Way(), all, {y, y + kLastRow * y_row, kLast * y_step});
    } else {
      static_assert(kVectors == 1 && kRows <= kTileVectors && kTileVectors == 2);
      const VSum all[kTileVectors] = {sums[0][0], sums[kLastRow][0]};
      tile.store(Way(), all, {y, nullptr, kLastRow * y_row});
    }
  }

  /// Adds the products of a tap, which of each vector lies `step` numbers behind that of the one before.
  template <int kRows, int kVectors>
  static HWY_INLINE void add_tap(const std::int32_t* x, std::int64_t step, const VSum (&weights)[kRows],
                                 VSum (&sums)[kRows][kVectors]) {
    using ops::HWY_NAMESPACE::unroll;
    unroll<kVectors>([&](auto k) HWY_ATTR {
#if HWY_ARCH_X86
      // In a register, since operands in memory are slower with whole vectors.
      const VSum number = ops::HWY_NAMESPACE::in_register(load_sums(x + k * step));
#else
      const VSum number = load_sums(x + k * step);
#endif
      unroll<kRows>([&](auto row) HWY_ATTR { sums[row][k] = add_group_products(sums[row][k], number, weights[row]); });
    });
  }

  /// Taps of a window of which all weights fit into registers, besides the sums.
  static constexpr int kResidentTaps = HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_AVX3_DL ? 3 : 0;

  std::int64_t row_groups_;
  std::int64_t taps_;
  std::int64_t pitch_;     ///< from a tap's weights to those of the next
  std::int64_t row_step_;  ///< from those of an output row to those of the next
  bool wraps_;             ///< do vectors take the results of a row as they come?
  typename Tile::Channels channels_;
  ChannelNumbers start_;
  std::int64_t places_[FlatPlan::kMostTaps];
  HWY_ALIGN std::int32_t weights_[FlatPlan::kMostWeights + FlatPlan::kSlack];
};

inline FlatPlan flat_plan(const ConvGeometry& g) { return {g, kFlatVectors, FlatPlan::Order::kRows}; }

/// Is there room for windows of that size, and are vectors stored whole, if they must?
inline bool flat_fits(const ByteImages& p, const FlatPlan& plan) {
  const ConvGeometry& g = p.g;
  if (kFlatVectors.stores_parts || g.x.c >= kSumLanes) return plan.fits();
  // Of a row that is cut, the least strip.
  const std::int64_t pixels = plan.strip == g.y.w ? plan.strip : plan.strip - 1;
  return plan.fits() && g.horizontal.stride == 1 && g.y.w_stride == g.x.c && pixels * g.x.c >= kSumLanes;
}

/// Calls f(first column, columns) for the strips of a row of results, which differ by one column at most.
template <class F>
HWY_INLINE void for_each_strip(const FlatPlan& plan, std::int64_t width, F f) {
  const std::int64_t strips = (width + plan.strip - 1) / plan.strip;
  for (std::int64_t i = 0; i < strips; ++i) f(width * i / strips, width * (i + 1) / strips - width * i / strips);
}

/// Output rows [begin, end): one block of channels after the other, over bands of rows that stay in a cache.
template <class Tile, class Scaler>
HWY_INLINE void convolve_blocks(const ByteImages& p, const FlatPlan& plan, const Scaler& scaler, std::int64_t begin,
                                std::int64_t end) {
  constexpr std::int64_t kBandBytes = 131072;  // a part of the second cache
  const ConvGeometry& g = p.g;
  const std::int64_t row_bytes = std::max<std::int64_t>(static_cast<std::int64_t>(g.x.w) * g.x.c, 1);
  // Where y lies over x the results of rows are written before the last of their columns are read, unless all have
  // been interleaved by then.
  const std::int64_t at_once = p.overlaps && plan.strip < g.y.w ? 1 : plan.rows * plan.batches;
  const std::int64_t band = plan.blocks == 1 ? end - begin : (kBandBytes / row_bytes / at_once + 1) * at_once;
  HWY_ALIGN std::int32_t numbers[FlatPlan::kRoom];
  for (std::int64_t first = begin; first < end; first += band)
    for (std::int64_t c = 0; c < g.x.c; c += plan.block) {
      const FlatBlock<Tile> block(p, plan, scaler, c);
      const std::int64_t last = std::min(first + band, end);
      for (std::int64_t row = first, rows; row < last; row += rows) {
        rows = std::min({at_once, last - row, g.y.h - row % g.y.h});
        for_each_strip(plan, g.y.w, [&](std::int64_t ox, std::int64_t count) HWY_ATTR {
          const OutputPart part{row / g.y.h, row % g.y.h, rows, ox, count};
          block.interleave(part, numbers);
          block.convolve(part, numbers);
        });
      }
    }
}

/// The same where a block's results lie over what others read: all of a strip are interleaved before the first is
/// computed.
template <class Tile, class Scaler>
HWY_INLINE void convolve_strips(const ByteImages& p, const FlatPlan& plan, const Scaler& scaler, std::int64_t begin,
                                std::int64_t end) {
  const ConvGeometry& g = p.g;
  HWY_ALIGN std::int32_t numbers[FlatPlan::kRoom];
  for (std::int64_t row = begin; row < end; ++row)
    for_each_strip(plan, g.y.w, [&](std::int64_t ox, std::int64_t count) HWY_ATTR {
      const OutputPart part{row / g.y.h, row % g.y.h, 1, ox, count};
      std::int32_t* next = numbers;
      for (std::int64_t c = 0; c < g.x.c; c += plan.block, next += plan.block_room())
        FlatImage(p, plan, c).interleave(part, next);
      next = numbers;
      for (std::int64_t c = 0; c < g.x.c; c += plan.block, next += plan.block_room())
        FlatBlock<Tile>(p, plan, scaler, c).convolve(part, next);
    });
}

/// The same where there is no room for that: of kMaxRunPixels, which nothing reads that others write, one block after
/// the other.
template <class Tile, class Scaler>
HWY_INLINE void convolve_runs(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = p.g;
  const FlatPlan plan(g, kFlatVectors, FlatPlan::Order::kRow);
  HWY_ALIGN std::int32_t numbers[FlatPlan::kRoom];
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t run = 0, count; run < g.y.w; run += count) {
      count = std::min<std::int64_t>({kMaxRunPixels, g.y.w - run, plan.strip});
      const OutputPart part{row / g.y.h, row % g.y.h, 1, run, count};
      for (std::int64_t c = 0; c < g.x.c; c += plan.block) {
        const FlatBlock<Tile> block(p, plan, scaler, c);
        block.interleave(part, numbers);
        block.convolve(part, numbers);
      }
    }
}

/// Output rows [begin, end), counted through all items.
template <class Tile, class Scaler>
HWY_NOINLINE void convolve_flat(const ByteImages& p, const FlatPlan& plan, const Scaler& scaler, std::int64_t begin,
                                std::int64_t end) {
  if (!p.overlaps || plan.blocks == 1) return convolve_blocks<Tile>(p, plan, scaler, begin, end);
  const FlatPlan all(p.g, kFlatVectors, FlatPlan::Order::kRowOfAll);
  if (all.strip >= std::min<std::int64_t>(p.g.y.w, kMaxRunPixels))
    return convolve_strips<Tile>(p, all, scaler, begin, end);
  convolve_runs<Tile>(p, scaler, begin, end);
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
