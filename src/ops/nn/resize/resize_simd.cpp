// Resampling of rows: where an output coordinate of the innermost resampled axis is sampled from is computed once, for
// all rows. A row of the result is blended from rows of the operand, then from neighbours in the blended row: elements,
// or, as in channels-last images, runs of them. What is nearest is only moved.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/kernels.h"
#include "ops/nn/resize/sampling.h"

#ifndef BANTAM_RESIZE_TAP_TABLE_
#define BANTAM_RESIZE_TAP_TABLE_
namespace bantam::ops::resize {
namespace {

/// The taps of all output coordinates of one axis: those of tap t from t * size on, as distances in elements.
struct TapTable {
  std::int64_t size = 0;
  int count = 0;  ///< 0: the axis is not resampled
  std::int32_t* offset = nullptr;
  float* weight = nullptr;  ///< null where elements are only moved
};

int tap_count(const ResizeParams& p) {
  if (p.mode == ResizeMode::kNearest) return 1;
  return p.mode == ResizeMode::kLinear ? 2 : 4;
}

/// What the parts of a call have in common: axis `last` is the innermost that is resampled, of runs of `run` elements.
struct Resampling {
  Resampling(const ResizeParams& params, const TensorDesc& from, const TensorDesc& to)
      : p(params), x(from), last(last_resampled(params, from)) {
    run = elements_between(x, last + 1, x.rank);
    in = x.dims[last];
    out = to.dims[last];
    rows = elements_between(to, 0, last);
  }

  bool moves() const { return p.mode == ResizeMode::kNearest; }
  /// Four-byte numbers in the table of an axis.
  std::int64_t table_numbers(int axis) const {
    return is_resampled(p, x, axis) ? std::int64_t{p.sizes[axis]} * tap_count(p) * (moves() ? 1 : 2) : 0;
  }
  std::int64_t table_bytes() const {
    std::int64_t numbers = 0;
    for (int axis = 0; axis <= last; ++axis) numbers += table_numbers(axis);
    return align_up(numbers * static_cast<std::int64_t>(sizeof(float)), kAlignment);
  }
  /// Of a blended row of the operand; one per thread.
  std::int64_t row_bytes() const {
    return moves() ? 0 : align_up(in * run * static_cast<std::int64_t>(sizeof(float)), kAlignment);
  }

  const ResizeParams& p;
  const TensorDesc& x;
  int last;
  std::int64_t run;
  std::int64_t in;
  std::int64_t out;
  std::int64_t rows;  ///< of the result
};

TapTable fill_table(const Resampling& r, int axis, std::byte* memory) {
  if (!is_resampled(r.p, r.x, axis)) return {};
  TapTable table{r.p.sizes[axis], tap_count(r.p), reinterpret_cast<std::int32_t*>(memory), nullptr};
  if (!r.moves()) table.weight = reinterpret_cast<float*>(memory) + table.size * table.count;
  for (std::int64_t i = 0; i < table.size; ++i) {
    const Taps taps = taps_at(r.p, r.x, axis, static_cast<std::int32_t>(i));
    for (int t = 0; t < table.count; ++t) {
      // A tensor has fewer than 2^31 elements.
      table.offset[t * table.size + i] = static_cast<std::int32_t>(taps.index[t] * r.x.strides[axis]);
      if (table.weight != nullptr) table.weight[t * table.size + i] = taps.weight[t];
    }
  }
  return table;
}

/// Of all axes up to the last that is resampled, in the scratch of a call.
struct TapTables {
  TapTables(const Resampling& r, std::byte* memory) {
    for (int axis = 0; axis <= r.last; ++axis) {
      axes[axis] = fill_table(r, axis, memory);
      memory += r.table_numbers(axis) * static_cast<std::int64_t>(sizeof(float));
    }
  }

  TapTable axes[kMaxRank];
};

/// Rows of the operand that make up one row of the result.
struct Samples {
  static constexpr int kMax = 16;

  int count;
  std::int64_t from[kMax];  ///< where they begin, in elements
  float weight[kMax];
};

/// Walks the places of the result along its first `axes` axes in their order: its rows, if these are all but the
/// innermost that is resampled.
class RowCursor {
 public:
  RowCursor(const Resampling& r, const TapTables& tables, int axes, std::int64_t row)
      : r_(r), tables_(tables), axes_(axes) {
    for (int axis = axes - 1; axis >= 0; --axis) {
      at_[axis] = row % r.p.sizes[axis];
      row /= r.p.sizes[axis];
    }
  }

  void next() {
    for (int axis = axes_ - 1; axis >= 0; --axis) {
      if (++at_[axis] < r_.p.sizes[axis]) return;
      at_[axis] = 0;
    }
  }

  /// Where the row begins that the present one is a copy of, if nothing but the innermost axis has weights.
  std::int64_t source() const {
    std::int64_t from = 0;
    for (int axis = 0; axis < axes_; ++axis) {
      const TapTable& table = tables_.axes[axis];
      from += table.count == 0 ? at_[axis] * r_.x.strides[axis] : table.offset[at_[axis]];
    }
    return from;
  }

  void find(Samples* samples) const {
    samples->count = 1;
    samples->from[0] = 0;
    samples->weight[0] = 1.0F;
    for (int axis = 0; axis < axes_; ++axis) {
      if (tables_.axes[axis].count == 0) {
        for (int s = 0; s < samples->count; ++s) samples->from[s] += at_[axis] * r_.x.strides[axis];
      } else {
        split(tables_.axes[axis], at_[axis], samples);
      }
    }
  }

 private:
  /// Every sample into those of the taps of one axis, in place from the last to the first.
  static void split(const TapTable& table, std::int64_t at, Samples* samples) {
    for (int s = samples->count - 1; s >= 0; --s) {
      const std::int64_t from = samples->from[s];
      const float weight = samples->weight[s];
      for (int t = table.count - 1; t >= 0; --t) {
        const std::int64_t tap = t * table.size + at;
        samples->from[s * table.count + t] = from + table.offset[tap];
        samples->weight[s * table.count + t] = weight * table.weight[tap];
      }
    }
    samples->count *= table.count;
  }

  const Resampling& r_;
  const TapTables& tables_;
  int axes_;
  std::int64_t at_[kMaxRank] = {};
};

/// Upsampling by integers, as feature pyramids do it: how often each element, and each row of elements, follows itself.
struct Repetition {
  static constexpr std::int64_t kMostElements = 4;  ///< as vectors interleave

  std::int64_t rows = 0;
  std::int64_t elements = 0;

  bool is_given() const { return rows >= 1 && elements >= 2 && elements <= kMostElements; }
};

/// How often each coordinate of an axis follows itself; 0 if not all do so equally often.
std::int64_t times_along(const Resampling& r, const TapTable& table, int axis) {
  if (table.count == 0) return 1;
  const std::int64_t times = table.size / r.x.dims[axis];
  if (times == 0 || table.size % r.x.dims[axis] != 0) return 0;
  for (std::int64_t i = 0; i < table.size; ++i)
    if (table.offset[i] != i / times * r.x.strides[axis]) return 0;
  return times;
}

Repetition repetition_of(const Resampling& r, const TapTables& tables) {
  if (!r.moves() || r.run != 1) return {};
  return {r.last == 0 ? 1 : times_along(r, tables.axes[r.last - 1], r.last - 1),
          times_along(r, tables.axes[r.last], r.last)};
}

}  // namespace
}  // namespace bantam::ops::resize
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/resize/resize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

/// Their sum, of n elements; offsets count from x.
void blend(const Samples& samples, const float* x, std::size_t n, float* to) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto sum_of = [&](auto load) HWY_ATTR {
    auto sum = hn::Mul(hn::Set(d, samples.weight[0]), load(x + samples.from[0]));
    for (int s = 1; s < samples.count; ++s)
      sum = hn::MulAdd(hn::Set(d, samples.weight[s]), load(x + samples.from[s]), sum);
    return sum;
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(sum_of([&](const float* row) HWY_ATTR { return hn::LoadU(d, row + i); }), d, to + i);
  if (i == n) return;
  store_partial(sum_of([&](const float* row) HWY_ATTR { return load_partial(d, row + i, n - i); }), d, to + i, n - i);
}

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;

/// Where a load finds all that tap t of the coordinates from `i` on, as many as a vector has lanes, reads of a row of
/// `in` elements, if any load does.
HWY_INLINE std::int64_t load_of_tap(const TapTable& table, std::int64_t in, int t, std::int64_t i) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  return std::min<std::int64_t>(table.offset[t * table.size + i], in - lanes);
}

/// Does one load find them, wherever `i` is a multiple of the lanes or the last possible?
bool is_close(const TapTable& table, std::int64_t in) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  if (in < lanes || table.size < lanes) return false;
  for (int t = 0; t < table.count; ++t)
    for (std::int64_t first = 0; first < table.size; first += lanes) {
      const std::int64_t i = std::min(first, table.size - lanes);
      const std::int64_t load = load_of_tap(table, in, t, i);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t place = table.offset[t * table.size + i + lane] - load;
        if (place < 0 || place >= lanes) return false;
      }
    }
  return true;
}

/// A row of the result from one row of `in` elements: neighbouring coordinates in the lanes of a vector. kClose: see
/// is_close; otherwise lanes are gathered.
template <bool kClose>
void sample_elements(const TapTable& table, std::int64_t in, const float* from, float* to) {
  const DF d;
  const DI di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto tap = [&](int t, std::int64_t i) HWY_ATTR {
    const auto offsets = hn::LoadU(di, table.offset + t * table.size + i);
    if constexpr (!kClose) return hn::GatherIndex(d, from, offsets);
    const std::int64_t load = load_of_tap(table, in, t, i);
    const auto places = hn::Sub(offsets, hn::Set(di, static_cast<std::int32_t>(load)));
    return hn::TableLookupLanes(hn::LoadU(d, from + load), hn::IndicesFromVec(d, places));
  };
  const auto sample = [&](std::int64_t i) HWY_ATTR {
    auto sum = hn::Mul(hn::LoadU(d, table.weight + i), tap(0, i));
    for (int t = 1; t < table.count; ++t)
      sum = hn::MulAdd(hn::LoadU(d, table.weight + t * table.size + i), tap(t, i), sum);
    return sum;
  };
  std::int64_t i = 0;
  for (; i + lanes <= table.size; i += lanes) hn::StoreU(sample(i), d, to + i);
  // The last ones once more, with the same result.
  if (i < table.size && table.size >= lanes) {
    hn::StoreU(sample(table.size - lanes), d, to + table.size - lanes);
    return;
  }
  const hn::CappedTag<float, 1> one;
  for (; i < table.size; ++i) {
    auto sum = hn::Mul(hn::Set(one, table.weight[i]), hn::Set(one, from[table.offset[i]]));
    for (int t = 1; t < table.count; ++t) {
      const std::int64_t at = t * table.size + i;
      sum = hn::MulAdd(hn::Set(one, table.weight[at]), hn::Set(one, from[table.offset[at]]), sum);
    }
    hn::StoreU(sum, one, to + i);
  }
}

/// Does a vector hold a row of the operand, and are parts of vectors loaded and stored as fast as whole ones?
bool fits_vector(const Resampling& r) {
  return HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && r.run == 1 && r.in <= static_cast<std::int64_t>(hn::Lanes(DF()));
}

/// A row of the result from rows of the operand that fit a vector: blended and sampled in registers.
HWY_INLINE void sample_vector(const TapTable& table, std::size_t in, const Samples& samples, const float* x,
                              float* to) {
  const DF d;
  const DI di;
  auto row = hn::Mul(hn::Set(d, samples.weight[0]), load_partial(d, x + samples.from[0], in));
  for (int s = 1; s < samples.count; ++s)
    row = hn::MulAdd(hn::Set(d, samples.weight[s]), load_partial(d, x + samples.from[s], in), row);
  const auto size = static_cast<std::size_t>(table.size);
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < size; i += lanes) {
    const std::size_t n = std::min(size - i, lanes);
    const auto tap = [&](int t) HWY_ATTR {
      const std::size_t at = static_cast<std::size_t>(t) * size + i;
      const auto places = hn::IndicesFromVec(d, load_partial(di, table.offset + at, n));
      return std::pair(load_partial(d, table.weight + at, n), hn::TableLookupLanes(row, places));
    };
    const auto [first_weight, first] = tap(0);
    auto sum = hn::Mul(first_weight, first);
    for (int t = 1; t < table.count; ++t) {
      const auto [weight, element] = tap(t);
      sum = hn::MulAdd(weight, element, sum);
    }
    store_partial(sum, d, to + i, n);
  }
}

/// The same of runs of several elements, which are the lanes.
template <int kTaps>
void sample_runs(const TapTable& table, std::int64_t run, const float* from, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < table.size; ++i, to += run) {
    const float* taps[kTaps];
    hn::Vec<decltype(d)> weights[kTaps];
    unroll<kTaps>([&](auto t) HWY_ATTR {
      taps[t] = from + table.offset[t * table.size + i];
      weights[t] = hn::Set(d, table.weight[t * table.size + i]);
    });
    const auto sample = [&](auto load) HWY_ATTR {
      auto sum = hn::Mul(weights[0], load(taps[0]));
      unroll<kTaps - 1>([&](auto t) HWY_ATTR { sum = hn::MulAdd(weights[t + 1], load(taps[t + 1]), sum); });
      return sum;
    };
    std::int64_t c = 0;
    for (; c + lanes <= run; c += lanes)
      hn::StoreU(sample([&](const float* tap) HWY_ATTR { return hn::LoadU(d, tap + c); }), d, to + c);
    if (c == run) continue;
    const auto rest = static_cast<std::size_t>(run - c);
    store_partial(sample([&](const float* tap) HWY_ATTR { return load_partial(d, tap + c, rest); }), d, to + c, rest);
  }
}

template <int kTimes, class D, class V>
HWY_INLINE void store_repeated(D d, V v, hn::TFromD<D>* to) {
  if constexpr (kTimes == 2) hn::StoreInterleaved2(v, v, d, to);
  if constexpr (kTimes == 3) hn::StoreInterleaved3(v, v, v, d, to);
  if constexpr (kTimes == 4) hn::StoreInterleaved4(v, v, v, v, d, to);
}

/// A row of n elements, each kTimes in turn, as so many rows of the result; by shorter vectors if the row is.
template <int kTimes, class D, typename T = hn::TFromD<D>>
void repeat_row(D d, const T* from, std::size_t n, std::int64_t rows, T* to) {
  const std::size_t lanes = hn::Lanes(d);
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    if (n < lanes) return repeat_row<kTimes>(hn::Half<D>(), from, n, rows, to);
  }
  const auto repeat_vector = [=](std::size_t i) HWY_ATTR {
    const auto v = hn::LoadU(d, from + i);
    T* at = to + i * kTimes;
    for (std::int64_t k = 0; k < rows; ++k, at += n * kTimes) store_repeated<kTimes>(d, v, at);
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) repeat_vector(i);
  // The last ones once more, with the same result.
  if (i < n && n >= lanes) return repeat_vector(n - lanes);
  for (; i < n; ++i)
    for (std::int64_t k = 0; k < rows; ++k)
      std::fill_n(to + (static_cast<std::size_t>(k) * n + i) * kTimes, kTimes, from[i]);
}

template <int kTimes, typename T>
void repeat_rows(const std::byte* from, std::int64_t count, std::int64_t n, std::int64_t rows, std::byte* to) {
  const auto* source = reinterpret_cast<const T*>(from);
  auto* result = reinterpret_cast<T*>(to);
  for (std::int64_t row = 0; row < count; ++row, source += n, result += rows * n * kTimes)
    repeat_row<kTimes>(hn::ScalableTag<T>(), source, static_cast<std::size_t>(n), rows, result);
}

template <int kTimes>
void repeat_rows(std::int64_t element, const std::byte* from, std::int64_t count, std::int64_t n, std::int64_t rows,
                 std::byte* to) {
  switch (element) {
    case 1: return repeat_rows<kTimes, std::uint8_t>(from, count, n, rows, to);
    case 2: return repeat_rows<kTimes, std::uint16_t>(from, count, n, rows, to);
    case 4: return repeat_rows<kTimes, std::uint32_t>(from, count, n, rows, to);
    default: return repeat_rows<kTimes, std::uint64_t>(from, count, n, rows, to);
  }
}

/// `count` rows of n elements of 1, 2, 4 or 8 bytes.
void upsample_rows(const Repetition& times, std::int64_t element, const std::byte* from, std::int64_t count,
                   std::int64_t n, std::byte* to) {
  switch (times.elements) {
    case 2: return repeat_rows<2>(element, from, count, n, times.rows, to);
    case 3: return repeat_rows<3>(element, from, count, n, times.rows, to);
    default: return repeat_rows<4>(element, from, count, n, times.rows, to);
  }
}

/// Rows [begin, end) of the result; `row` holds a row of the operand.
void interpolate_rows(const Resampling& r, const TapTables& tables, const float* from, std::int64_t begin,
                      std::int64_t end, float* row, float* to) {
  const TapTable& table = tables.axes[r.last];
  const bool small = fits_vector(r);
  const bool close = !small && r.run == 1 && is_close(table, r.in);
  RowCursor cursor(r, tables, r.last, begin);
  Samples samples{};
  to += begin * r.out * r.run;
  for (std::int64_t i = begin; i < end; ++i, cursor.next(), to += r.out * r.run) {
    cursor.find(&samples);
    if (small) {
      sample_vector(table, static_cast<std::size_t>(r.in), samples, from, to);
      continue;
    }
    const bool as_it_lies = samples.count == 1;
    if (!as_it_lies) blend(samples, from, static_cast<std::size_t>(r.in * r.run), row);
    const float* blended = as_it_lies ? from + samples.from[0] : row;
    if (close) {
      sample_elements<true>(table, r.in, blended, to);
    } else if (r.run == 1) {
      sample_elements<false>(table, r.in, blended, to);
    } else if (table.count == 2) {
      sample_runs<2>(table, r.run, blended, to);
    } else {
      sample_runs<4>(table, r.run, blended, to);
    }
  }
}

}  // namespace
}  // namespace bantam::ops::resize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::resize {
namespace {

HWY_EXPORT(interpolate_rows);
HWY_EXPORT(upsample_rows);

template <typename T>
void move_elements(const TapTable& table, const std::byte* from, std::byte* to) {
  const auto* source = reinterpret_cast<const T*>(from);
  auto* result = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < table.size; ++i) result[i] = source[table.offset[i]];
}

void move_runs(const TapTable& table, std::int64_t element, std::int64_t bytes, const std::byte* from, std::byte* to) {
  switch (bytes) {
    case 1: return move_elements<std::uint8_t>(table, from, to);
    case 2:
      if (element == 2) return move_elements<std::uint16_t>(table, from, to);
      break;
    case 4:
      if (element == 4) return move_elements<std::uint32_t>(table, from, to);
      break;
    case 8:
      if (element == 8) return move_elements<std::uint64_t>(table, from, to);
      break;
    default: break;
  }
  for (std::int64_t i = 0; i < table.size; ++i, to += bytes)
    std::memcpy(to, from + table.offset[i] * element, static_cast<std::size_t>(bytes));
}

/// Rows [begin, end) of the result, whose elements are those of the operand.
void move_rows(const Resampling& r, const TapTables& tables, const std::byte* from, std::int64_t begin,
               std::int64_t end, std::byte* to) {
  const std::int64_t element = element_size(r.x.type);
  const std::int64_t row_bytes = r.out * r.run * element;
  RowCursor cursor(r, tables, r.last, begin);
  std::int64_t before = -1;  // where the row begins that the last one was made of
  to += begin * row_bytes;
  for (std::int64_t i = begin; i < end; ++i, cursor.next(), to += row_bytes) {
    const std::int64_t row = cursor.source();
    if (row == before) {
      std::memcpy(to, to - row_bytes, static_cast<std::size_t>(row_bytes));
    } else {
      move_runs(tables.axes[r.last], element, r.run * element, from + row * element, to);
    }
    before = row;
  }
}

/// The rows of an innermost pair of axes.
std::int64_t rows_of_plane(const Resampling& r) { return r.last == 0 ? 1 : r.x.dims[r.last - 1]; }

/// As move_rows, but [begin, end) are rows that the result repeats, counted in all its planes.
void repeat_planes(const Resampling& r, const TapTables& tables, const Repetition& times, const std::byte* from,
                   std::int64_t begin, std::int64_t end, std::byte* to) {
  const std::int64_t element = element_size(r.x.type);
  const std::int64_t plane = rows_of_plane(r);
  RowCursor cursor(r, tables, std::max(r.last - 1, 0), begin / plane);
  for (std::int64_t row = begin; row < end; cursor.next()) {
    const std::int64_t first = row % plane;
    const std::int64_t count = std::min(plane - first, end - row);
    HWY_DYNAMIC_DISPATCH(upsample_rows)
    (times, element, from + (cursor.source() + first * r.in) * element, count, r.in,
     to + row * times.rows * r.out * element);
    row += count;
  }
}

}  // namespace

bool supports_rows(const OpCall& call) {
  const auto& p = call.as<ResizeParams>();
  const TensorDesc& x = call.in(0);
  if (p.antialias != 0 || p.coordinates == ResizeCoordinates::kCropAndResize || !all_dense(call)) return false;
  if (call.out().elements() == 0) return false;
  int resampled = 0;
  for (int i = 0; i < x.rank; ++i) resampled += is_resampled(p, x, i) ? 1 : 0;
  return resampled >= 1 && (p.mode == ResizeMode::kNearest || resampled <= 3);
}

Footprint rows_footprint(const OpCall& call, int threads) {
  const Resampling r(call.as<ResizeParams>(), call.in(0), call.out());
  return {.scratch_bytes = r.table_bytes() + r.row_bytes() * threads};
}

Status run_rows(const Invocation& call) {
  const Resampling r(call.as<ResizeParams>(), call.in(0), call.out());
  const TapTables tables(r, call.scratch);
  const std::int64_t grain = std::max<std::int64_t>(8192 / (r.out * r.run), 1);
  if (const Repetition times = repetition_of(r, tables); times.is_given()) {
    parallel_ranges(*call.threads, r.rows / times.rows, grain, [&](std::int64_t begin, std::int64_t end) {
      repeat_planes(r, tables, times, call.input<std::byte>(0), begin, end, call.output<std::byte>());
    });
    return ok_status();
  }
  parallel_slots(*call.threads, r.rows, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    if (r.moves()) return move_rows(r, tables, call.input<std::byte>(0), begin, end, call.output<std::byte>());
    auto* row = reinterpret_cast<float*>(call.scratch + r.table_bytes() + slot * r.row_bytes());
    HWY_DYNAMIC_DISPATCH(interpolate_rows)
    (r, tables, call.input<float>(0), begin, end, row, call.output<float>());
  });
  return ok_status();
}

}  // namespace bantam::ops::resize
#endif
