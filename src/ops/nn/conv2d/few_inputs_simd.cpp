// Convolutions of few inputs in f32.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/few_inputs.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/gemm/gemm_f32.h"

#ifndef BANTAM_FEW_INPUTS_LAYOUT_
#define BANTAM_FEW_INPUTS_LAYOUT_
namespace bantam::ops::few_inputs {
namespace {

using gemm::kPanel;

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kMostInputs = 4;
constexpr std::int64_t kMostOutputs = 32 * kPanel;

/// What of a convolution its parts have in common.
struct Operands {
  Problem p;
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  Activation activation;
};

/// Rows [begin, end) of one item of the result, in parts of so many columns.
struct Part {
  std::int64_t item;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns;
};

std::int64_t panel_floats(const Problem& p) {
  return std::int64_t{p.g.vertical.kernel} * p.g.horizontal.kernel * p.g.x.c * kPanel;
}

/// Image rows that are kept: those of a window.
std::int64_t ring_rows(const Problem& p) { return std::clamp(p.g.vertical.kernel, 1, std::max(p.g.x.h, 1)); }

/// Columns of the image that so many columns of results see.
std::int64_t ring_columns(const Problem& p, std::int64_t columns) {
  return (columns - 1) * p.g.horizontal.stride + p.g.horizontal.kernel;
}

/// Scratch of a thread for so many columns of results.
std::int64_t ring_bytes(const Problem& p, std::int64_t columns) {
  return align_up(ring_rows(p) * p.g.x.c * ring_columns(p, columns) * kFloat, static_cast<std::int64_t>(kAlignment));
}

/// The most columns of results, at least one, for which so many bytes suffice.
std::int64_t columns_within(const Problem& p, std::int64_t bytes) {
  const std::int64_t width = bytes / (ring_rows(p) * p.g.x.c * kFloat);
  return std::clamp<std::int64_t>((width - p.g.horizontal.kernel) / p.g.horizontal.stride + 1, 1, p.g.y.w);
}

}  // namespace
}  // namespace bantam::ops::few_inputs
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/few_inputs_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::few_inputs::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::cover;
using ops::HWY_NAMESPACE::in_register;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;
using ops::HWY_NAMESPACE::windows_of_column;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr D kD;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

/// Taps of a kernel row whose weights are in registers together.
constexpr int kTaps = 3;

// Vectors of outputs that are computed together, and neighbouring results of so many: their sums, the weights of kTaps
// taps and an input fill the registers.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kMostVectors = 3;
constexpr int kResults[] = {0, 16, 12, 6};
#elif HWY_ARCH_ARM_A64
constexpr int kMostVectors = 2;
constexpr int kResults[] = {0, 12, 8};
#else
constexpr int kMostVectors = 2;
constexpr int kResults[] = {0, 8, 4};
#endif

/// Vectors of the next group, of `left`: as many as go together, but none is left by itself if it can be helped.
constexpr int group_vectors(int left) {
  if (left <= kMostVectors) return left;
  return kMostVectors > 2 && left % kMostVectors != 0 ? kMostVectors - 1 : kMostVectors;
}

/// Where vector v of the outputs has its first weight.
HWY_INLINE std::int64_t vector_offset(std::int64_t panel, int v) {
  return v / kVectorsPerPanel * panel + v % kVectorsPerPanel * kLanes;
}

/// The rows of a window inside the image: the first tap, how many, and where the first of them is in the ring.
struct WindowRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t slot = 0;
};

/// Copies columns [first, first + count) of an image row, channel after channel, zeros where it has none. copy(x, n,
/// to) copies columns that there are.
template <typename Copy>
HWY_INLINE void copy_padded(const ImageShape& image, const float* row, std::int64_t first, std::int64_t count,
                            float* to, Copy copy) {
  const std::int64_t before = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t inside = std::clamp<std::int64_t>(image.w - first, before, count);
  for (std::int64_t c = 0; c < image.c; ++c) {
    std::fill_n(to + c * count, before, 0.0F);
    std::fill_n(to + c * count + inside, count - inside, 0.0F);
  }
  if (inside > before) copy(row + (first + before) * image.w_stride, inside - before, to + before);
}

/// Takes pixels of kChannels channels apart, which go to rows of `step` floats.
template <int kChannels>
HWY_INLINE void part_channels(const float* x, std::int64_t count, float* to, std::int64_t step) {
  static_assert(kChannels >= 2 && kChannels <= 4);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    V v[4];
    if constexpr (kChannels == 2) hn::LoadInterleaved2(kD, x + i * kChannels, v[0], v[1]);
    if constexpr (kChannels == 3) hn::LoadInterleaved3(kD, x + i * kChannels, v[0], v[1], v[2]);
    if constexpr (kChannels == 4) hn::LoadInterleaved4(kD, x + i * kChannels, v[0], v[1], v[2], v[3]);
    unroll<kChannels>([&](auto c) HWY_ATTR { hn::StoreU(v[c], kD, to + c * step + i); });
  }
  for (; i < count; ++i)
    for (int c = 0; c < kChannels; ++c) to[c * step + i] = x[i * kChannels + c];
}

/// Columns [first, first + count) of all channels of image row `row`, one after the other.
void copy_row(const Problem& p, const float* row, std::int64_t first, std::int64_t count, float* to) {
  const ImageShape& image = p.g.x;
  const auto copy = [&](const float* x, std::int64_t n, float* at) HWY_ATTR {
    if (image.w_stride == 1) {
      for (std::int64_t c = 0; c < image.c; ++c) std::copy_n(x + c * p.channel_stride, n, at + c * count);
    } else if (p.channel_stride == 1 && image.w_stride == image.c) {
      static_assert(kMostInputs == 4);
      if (image.c == 2) part_channels<2>(x, n, at, count);
      if (image.c == 3) part_channels<3>(x, n, at, count);
      if (image.c == 4) part_channels<4>(x, n, at, count);
    } else {
      for (std::int64_t c = 0; c < image.c; ++c)
        for (std::int64_t i = 0; i < n; ++i) at[c * count + i] = x[i * image.w_stride + c * p.channel_stride];
    }
  };
  copy_padded(image, row, first, count, to, copy);
}

/// Computes rows of results from the ring.
class RowConvolver {
 public:
  RowConvolver(const Operands& o, const float* ring, std::int64_t columns)
      : o_(o),
        ring_(ring),
        columns_(columns),
        row_floats_(columns * o.p.g.x.c),
        ring_rows_(ring_rows(o.p)),
        panel_(panel_floats(o.p)),
        store_(o.activation) {
    for (std::int64_t i = 0; i < o.p.g.y.c && o.bias != nullptr; ++i) bias_[i] = o.bias[i];
  }

  /// `count` results from `offset` on, whose windows begin with the ring's first column.
  void row(const WindowRows& rows, std::int64_t count, std::int64_t offset) const {
    const int vectors = static_cast<int>((o_.p.g.y.c + kLanes - 1) / kLanes);
    for (int first = 0, used; first < vectors; first += used) {
      used = group_vectors(vectors - first);
      unroll<kMostVectors>([&](auto v) HWY_ATTR {
        if (used == v + 1) with_stride<v + 1>(rows, first, count, offset);
      });
    }
    if (!store_.complete()) activate_rows(o_.activation, o_.y + offset, count, o_.p.g.y.w_stride, o_.p.g.y.c);
  }

 private:
  template <int kVectors>
  void with_stride(const WindowRows& rows, int first, std::int64_t count, std::int64_t offset) const {
    o_.p.g.horizontal.stride == 1 ? all_results<1, kVectors>(rows, first, count, offset)
                                  : all_results<2, kVectors>(rows, first, count, offset);
  }

  template <int kStride, int kVectors>
  HWY_NOINLINE void all_results(const WindowRows& rows, int first, std::int64_t count, std::int64_t offset) const {
    cover<kResults[kVectors]>(count, [&](auto results, std::int64_t at)
                                         HWY_ATTR { this->tile<results, kStride, kVectors>(rows, first, at, offset); });
  }

  template <int kCount, int kStride, int kVectors>
  HWY_INLINE void tile(const WindowRows& rows, int first, std::int64_t at, std::int64_t offset) const {
    V sums[kCount][kVectors];
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
      const V bias = hn::LoadU(kD, bias_ + (first + v) * kLanes);
      unroll<kCount>([&](auto i) __attribute__((always_inline)) HWY_ATTR { sums[i][v] = bias; });
    });
    const std::int64_t taps = o_.p.g.horizontal.kernel;
    const std::int64_t channels = o_.p.g.x.c;
    const float* w = o_.w + vector_offset(panel_, first) + rows.first * channels * taps * kPanel;
    std::int64_t slot = rows.slot;
    for (std::int64_t ky = 0; ky < rows.count; ++ky) {
      const float* x = ring_ + slot * row_floats_ + at * kStride;
      for (std::int64_t c = 0; c < channels; ++c, x += columns_) {
        std::int64_t kx = 0;
        for (; kx + kTaps <= taps; kx += kTaps, w += kTaps * kPanel) accumulate<kTaps, kStride>(x + kx, w, first, sums);
        if (kx + 2 == taps) accumulate<2, kStride>(x + kx, w, first, sums);
        if (kx + 1 == taps) accumulate<1, kStride>(x + kx, w, first, sums);
        w += (taps - kx) * kPanel;
      }
      slot = slot + 1 == ring_rows_ ? 0 : slot + 1;
    }
    finish(sums, o_.p.g.y.c - first * kLanes, o_.y + offset + at * o_.p.g.y.w_stride + first * kLanes);
  }

  /// Stores neighbouring results of so many outputs.
  template <int kCount, int kVectors>
  HWY_INLINE void finish(V (&sums)[kCount][kVectors], std::int64_t outputs, float* y) const {
    // Copies: floats that are stored might change the members.
    const ClampedStore store = store_;
    const std::int64_t step = o_.p.g.y.w_stride;
    if (store.clamps())
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
        unroll<kCount>([&](auto i) __attribute__((always_inline))
                       HWY_ATTR { sums[i][v] = store.limited(kD, sums[i][v]); });
      });
    unroll<kCount>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      unroll<kVectors - 1>([&](auto v) __attribute__((always_inline))
                           HWY_ATTR { hn::StoreU(sums[i][v], kD, y + i * step + v * kLanes); });
    });
    constexpr int kLast = kVectors - 1;
    const std::int64_t lanes = outputs - kLast * kLanes;
    if (lanes >= kLanes) {
      unroll<kCount>([&](auto i) __attribute__((always_inline))
                     HWY_ATTR { hn::StoreU(sums[i][kLast], kD, y + i * step + kLast * kLanes); });
    } else if (lanes > 0) {
      unroll<kCount>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
        store_partial(sums[i][kLast], kD, y + i * step + kLast * kLanes, static_cast<std::size_t>(lanes));
      });
    }
  }

  /// Adds the products of kNumber taps of one row and channel, whose first weights are at w.
  template <int kNumber, int kStride, int kCount, int kVectors>
  HWY_INLINE void accumulate(const float* x, const float* w, int first, V (&sums)[kCount][kVectors]) const {
    const int lane = first % kVectorsPerPanel;  // of the group's first vector in its panel
#if HWY_COMPILER_GCC
    // A value of its own: gcc would keep what the next taps share in registers, for which there are not enough.
    asm("" : "+r"(x));
#endif
    V weights[kNumber][kVectors];
    unroll<kNumber>([&](auto t) __attribute__((always_inline)) HWY_ATTR {
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
        const std::int64_t at = vector_offset(panel_, lane + v) - lane * kLanes;
        weights[t][v] = hn::LoadU(kD, w + t * kPanel + at);
      });
    });
    unroll<(kCount - 1) * kStride + kNumber>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      constexpr int kFirst = i < kNumber ? 0 : (i - kNumber) / kStride + 1;  // the first result that may see column i
      if constexpr (kFirst * kStride <= i) {
#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_ARCH_ARM_A64
        // No more at a time: gcc would load all columns first, and run out of registers.
        if constexpr (i % 6 == 5) asm volatile("" : "+r"(x));
#endif
        V input = hn::Set(kD, x[i]);
        // With strides, what a single multiply-add uses it reads itself, where it can.
        if constexpr (kStride == 1 || kVectors * windows_of_column<i, kNumber, kStride, kCount>() > 1)
          input = in_register(input);
        unroll<kNumber>([&](auto t) __attribute__((always_inline)) HWY_ATTR {
          constexpr int kResult = (i - t) / kStride;
          if constexpr (i >= t && (i - t) % kStride == 0 && kResult < kCount)
            unroll<kVectors>([&](auto v) __attribute__((always_inline))
                             HWY_ATTR { sums[kResult][v] = hn::MulAdd(input, weights[t][v], sums[kResult][v]); });
        });
      }
    });
  }

  const Operands& o_;
  const float* ring_;
  std::int64_t columns_;
  std::int64_t row_floats_;
  std::int64_t ring_rows_;
  std::int64_t panel_;
  ClampedStore store_;
  HWY_ALIGN float bias_[kMostOutputs] = {};
};

void convolve(const Operands& o, const Part& part, float* ring) {
  const ConvGeometry& g = o.p.g;
  const std::int64_t slots = ring_rows(o.p);
  for (std::int64_t ox = 0; ox < g.y.w; ox += part.columns) {
    const std::int64_t count = std::min(part.columns, g.y.w - ox);
    const std::int64_t columns = ring_columns(o.p, count);
    const std::int64_t left = window_origin(g.horizontal, ox);
    const RowConvolver convolver(o, ring, columns);
    std::int64_t copied = 0;  // image rows before this one are in the ring, as far as they are needed
    for (std::int64_t oy = part.begin; oy < part.end; ++oy) {
      const std::int64_t y0 = window_origin(g.vertical, oy);
      const TapRange taps = taps_inside(g.vertical, y0, 0, g.x.h);
      for (std::int64_t iy = std::max(copied, y0 + taps.first); iy < y0 + taps.last; ++iy)
        copy_row(o.p, o.x + g.x.offset(part.item, iy, 0), left, columns, ring + iy % slots * columns * g.x.c);
      copied = std::max(copied, y0 + taps.last);
      const WindowRows rows{taps.first, taps.size(), taps.size() > 0 ? (y0 + taps.first) % slots : 0};
      convolver.row(rows, count, g.y.offset(part.item, oy, ox));
    }
  }
}

}  // namespace
}  // namespace bantam::ops::few_inputs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::few_inputs {

HWY_EXPORT(convolve);

bool fits(const Problem& p) noexcept {
  constexpr std::int32_t kMostTaps = 16;
  constexpr std::int32_t kLeastWidth = 8;
  // Weights are read again for every row of results: they stay in the caches. With a stride an input meets fewer taps;
  // some machines then take longer for more outputs than a matrix product does.
  constexpr std::int64_t kFewOutputs = 4 * kPanel;
  constexpr std::int64_t kMostWeights = 16384;
  const WindowAxis& down = p.g.vertical;
  const WindowAxis& across = p.g.horizontal;
  const std::int64_t weights = p.g.y.c * (panel_floats(p) / kPanel);
  if (p.g.y.c > kFewOutputs && (across.stride != 1 || weights > kMostWeights)) return false;
  return p.g.groups == 1 && p.g.x.c >= 1 && p.g.x.c <= kMostInputs && p.g.y.c <= kMostOutputs && across.kernel >= 2 &&
         across.kernel <= kMostTaps && down.kernel <= kMostTaps && down.dilation == 1 && across.dilation == 1 &&
         across.stride <= 2 && p.g.y.w >= kLeastWidth;
}

Footprint footprint(const OpCall& call, const Problem& p, int threads) {
  constexpr std::int64_t kLeastColumns = 16;
  constexpr std::int64_t kUsefulBytes = 24 * 1024;  // in the first-level cache, beside weights and results
  constexpr std::int64_t kSmallShare = 64;          // of the result: a plan hardly grows by it
  const std::int64_t floor = ring_bytes(p, std::min<std::int64_t>(kLeastColumns, p.g.y.w));
  const std::int64_t useful = std::max(floor, ring_bytes(p, columns_within(p, kUsefulBytes)));
  const std::int64_t small = ring_bytes(p, columns_within(p, call.out().bytes() / kSmallShare));
  Footprint result{.scratch_bytes = std::clamp(small, floor, useful) * threads,
                   .useful_scratch_bytes = useful * threads};
  if (p.channel_stride != 1 || !can_overlap(call, threads)) return result;
  // Rows of results follow each other where the ring has whole rows, if that is worth them.
  const std::int64_t rows = ring_bytes(p, p.g.y.w);
  const std::int64_t lead = row_lead_bytes(p.g, kFloat, kFloat);
  if (rows >= std::min(call.in(0).bytes(), call.out().bytes() - lead) / 2) return result;
  return {.scratch_bytes = std::max(result.scratch_bytes, rows),
          .useful_scratch_bytes = std::max(result.useful_scratch_bytes, rows),
          .lead_bytes = lead};
}

std::int64_t packed_bytes(const Problem& p) { return gemm::panel_count(p.g.y.c) * panel_floats(p) * kFloat; }

void pack(const Problem& p, const float* weights, float* packed) {
  const std::int64_t inputs = p.g.x.c;
  const std::int64_t columns = p.g.horizontal.kernel;
  const std::int64_t k = p.g.vertical.kernel * columns * inputs;
  for (std::int64_t first = 0; first < p.g.y.c; first += kPanel)
    for (std::int64_t ky = 0; ky < p.g.vertical.kernel; ++ky)
      for (std::int64_t c = 0; c < inputs; ++c)
        for (std::int64_t kx = 0; kx < columns; ++kx)
          for (std::int64_t n = first; n < first + kPanel; ++n)
            *packed++ = n < p.g.y.c ? weights[n * k + (ky * columns + kx) * inputs + c] : 0.0F;
}

void run(const Invocation& call, const Problem& p, const Activation& activation) {
  const Operands operands{
      p, call.input<float>(0), call.input<float>(1), optional_input<float>(call, 2), call.output<float>(), activation};
  const auto convolve = HWY_DYNAMIC_DISPATCH(convolve);
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  const std::int64_t columns = columns_within(p, slot_bytes);
  const std::int64_t height = p.g.y.h;
  // Tasks of at least some ten thousand multiply-adds, and of a few rows, whose first windows are copied for each.
  const std::int64_t row_work = p.g.y.w * gemm::panel_count(p.g.y.c) * panel_floats(p);
  const Grain grain(std::max<std::int64_t>(50'000 / row_work, ring_rows(p)), 1);
  parallel_slots(*call.threads, p.g.y.n * height, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    auto* ring = reinterpret_cast<float*>(call.scratch + slot * slot_bytes);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t row = at % height;
      const std::int64_t count = std::min(height - row, end - at);
      convolve(operands, Part{.item = at / height, .begin = row, .end = row + count, .columns = columns}, ring);
      at += count;
    }
  });
}

}  // namespace bantam::ops::few_inputs
#endif
