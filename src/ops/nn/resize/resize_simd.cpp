// Resampling of rows: where an output coordinate of the innermost resampled axis is sampled from is computed once, for
// all rows. A row of the result is blended from rows of the operand, then from neighbours in the blended row: elements,
// or, as in channels-last images, runs of them. Where planes of elements grow, the rows of the operand are sampled
// first, once for all rows of the result that are blended from them. What is nearest is only moved.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/kernels.h"
#include "ops/nn/resize/rows.h"

#ifndef BANTAM_RESIZE_REPETITION_
#define BANTAM_RESIZE_REPETITION_
namespace bantam::ops::resize {
namespace {

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
#include "ops/nn/resize/sample_rows_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize::HWY_NAMESPACE {
namespace {

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

/// Rows [begin, end) of the result where upsamples_planes holds; `memory` holds two.
void interpolate_planes(const Resampling& r, const TapTables& tables, const float* from, std::int64_t begin,
                        std::int64_t end, float* memory, float* to) {
  const TapTable& table = tables.axes[r.last];
  const bool small = fits_vector(r);
  const bool close = !small && is_close(table, r.in);
  const auto sample = [&](std::int64_t row, float* sampled) HWY_ATTR {
    if (!small) return sample_row<true>(table, r.in, 1, close, from + row, sampled);
    sample_vector(table, static_cast<std::size_t>(r.in), Samples{1, {row}, {1.0F}}, from, sampled);
  };
  SampledRows<decltype(sample)> rows(sample, r, memory);
  rows.for_each(tables, begin, end, [&](std::int64_t i, const RowPair& pair) HWY_ATTR {
    const Samples both{2, {0, pair.lower - pair.upper}, {pair.weights[0], pair.weights[1]}};
    blend(both, pair.upper, static_cast<std::size_t>(r.out), to + i * r.out);
  });
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
    sample_row<true>(table, r.in, r.run, close, blended, to);
  }
}

}  // namespace
}  // namespace bantam::ops::resize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::resize {
namespace {

HWY_EXPORT(interpolate_rows);
HWY_EXPORT(interpolate_planes);
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

namespace {

/// Scratch of a thread.
std::int64_t own_bytes(const Resampling& r) { return upsamples_planes(r) ? 2 * sampled_bytes(r) : r.row_bytes(); }

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
  return {.scratch_bytes = r.table_bytes() + own_bytes(r) * threads};
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
  const bool planes = upsamples_planes(r);
  parallel_slots(*call.threads, r.rows, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    if (r.moves()) return move_rows(r, tables, call.input<std::byte>(0), begin, end, call.output<std::byte>());
    auto* own = reinterpret_cast<float*>(call.scratch + r.table_bytes() + slot * own_bytes(r));
    const auto interpolate = planes ? HWY_DYNAMIC_DISPATCH(interpolate_planes) : HWY_DYNAMIC_DISPATCH(interpolate_rows);
    interpolate(r, tables, call.input<float>(0), begin, end, own, call.output<float>());
  });
  return ok_status();
}

}  // namespace bantam::ops::resize
#endif
