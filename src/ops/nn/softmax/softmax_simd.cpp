// Softmax on vectors. Three shapes of the same computation: a long contiguous row is reduced across lanes; where the
// axis is not innermost, neighbouring columns fill the lanes, or several rows of them where they are few; short rows
// are turned in a small tile so that several of them fill the lanes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/softmax/softmax_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/softmax/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

/// Rows up to this long are turned.
constexpr std::int64_t kShortRow = 16;

V minus_infinity(D d) {
  return hn::BitCast(d, hn::Set(hn::RebindToSigned<D>(), static_cast<std::int32_t>(0xff800000U)));
}

/// How vectors go through the rows of some neighbouring columns: from each to the next it is `stride` elements. Where
/// there are few columns, which then follow one another without gaps, a vector holds several rows.
struct Steps {
  std::int64_t whole;   ///< vectors of `lanes` elements
  std::int64_t stride;  ///< elements from one vector to the next
  std::size_t columns;
  std::size_t lanes;  ///< a multiple of `columns`, up to Lanes(d)
  std::size_t rest;   ///< elements of one more vector, fewer than `lanes`
};

/// `columns` <= Lanes(d) of rows that are `stride` elements apart.
Steps steps_of_rows(std::int64_t size, std::int64_t stride, std::size_t columns) {
  return {size, stride, columns, columns, 0};
}

/// All of `columns` <= Lanes(d), in `size` rows.
Steps steps_of_narrow_rows(std::int64_t size, std::size_t columns) {
  constexpr std::int64_t kFewRows = 6;  // are gone through before the lanes of more would be folded
  const std::size_t rows = size < kFewRows ? 1 : hn::Lanes(D()) / columns;
  const auto all = static_cast<std::size_t>(size);
  const auto lanes = rows * columns;
  return {static_cast<std::int64_t>(all / rows), static_cast<std::int64_t>(lanes), columns, lanes,
          all % rows * columns};
}

/// All elements of a vector.
struct Whole {
  HWY_INLINE V load(const float* from) const { return hn::LoadU(D(), from); }
  HWY_INLINE void store(V v, float* to) const { hn::StoreU(v, D(), to); }
  HWY_INLINE V or_else(V v, V /*other*/) const { return v; }
};

/// Its first `count` elements.
struct Part {
  std::size_t count;
  HWY_INLINE V load(const float* from) const { return load_partial(D(), from, count); }
  HWY_INLINE void store(V v, float* to) const { store_partial(v, D(), to, count); }
  /// `other` in the lanes that are left.
  HWY_INLINE V or_else(V v, V other) const { return hn::IfThenElse(hn::FirstN(D(), count), v, other); }
};

constexpr std::size_t kAtOnce = 4;  ///< vectors: each step of their exponentials waits for the one before

/// Calls f(first element, Whole or Part, kAtOnce or 1) for every vector, or for kAtOnce of them.
template <class F>
HWY_INLINE void for_steps(const Steps& steps, F f) {
  constexpr std::integral_constant<int, kAtOnce> some;
  constexpr std::integral_constant<int, 1> one;
  std::int64_t i = 0;
  const auto go = [&](auto elements) HWY_ATTR {
    for (; i + some <= steps.whole; i += some) f(i * steps.stride, elements, some);
    for (; i < steps.whole; ++i) f(i * steps.stride, elements, one);
  };
  if (steps.lanes == hn::Lanes(D())) {
    go(Whole());
  } else {
    go(Part{steps.lanes});
  }
  if (steps.rest != 0) f(i * steps.stride, Part{steps.rest}, one);
}

/// `step` over the lanes of each column, in all of them.
template <class F>
HWY_INLINE V fold_rows(D d, V v, const Steps& steps, F step) {
  if (steps.lanes == steps.columns) return v;
  HWY_ALIGN float lanes[2 * kMaxLanes] = {};
  hn::Store(v, d, lanes);
  for (std::size_t i = steps.columns; i < steps.lanes; i += steps.columns) v = step(hn::LoadU(d, lanes + i), v);
  for (std::size_t i = 0; i < steps.lanes; i += steps.columns) hn::StoreU(v, d, lanes + i);
  return hn::Load(d, lanes);
}

/// Normalizes each column of the vectors. y may be x.
void normalize_columns(const float* x, float* y, const Steps& steps, bool log) {
  const D d;
  V maximum = minus_infinity(d);
  for_steps(steps, [&](std::int64_t at, auto elements, auto count) HWY_ATTR {
    unroll<count>([&](auto k) HWY_ATTR {
      const V v = elements.load(x + at + k * steps.stride);
      maximum = at_least(d, elements.or_else(v, minus_infinity(d)), maximum);
    });
  });
  maximum = fold_rows(d, maximum, steps, [d](V a, V b) HWY_ATTR { return at_least(d, a, b); });
  V sum = hn::Zero(d);
  for_steps(steps, [&](std::int64_t at, auto elements, auto count) HWY_ATTR {
    Lockstep<count, V> shifted;
    shifted.set([&](auto k) HWY_ATTR { return hn::Sub(elements.load(x + at + k * steps.stride), maximum); });
    const Lockstep<count, V> terms = exp_bounded_f32(d, shifted);
    unroll<count>([&](auto k) HWY_ATTR {
      sum = hn::Add(sum, elements.or_else(terms.v[k], hn::Zero(d)));
      elements.store(log ? shifted.v[k] : terms.v[k], y + at + k * steps.stride);
    });
  });
  sum = fold_rows(d, sum, steps, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
  const V scale = log ? log_f32(d, sum) : hn::Div(hn::Set(d, 1.0F), sum);
  for_steps(steps, [&](std::int64_t at, auto elements, auto count) HWY_ATTR {
    // A masked store holds up loads from the rest of its vector, so all loads come first.
    float* from = y + at;
    Lockstep<count, V> terms;
    terms.set([&](auto k) HWY_ATTR { return elements.load(from + k * steps.stride); });
    terms.set([&](auto k) HWY_ATTR { return log ? hn::Sub(terms.v[k], scale) : hn::Mul(terms.v[k], scale); });
    unroll<count>([&](auto k) HWY_ATTR { elements.store(terms.v[k], from + k * steps.stride); });
  });
}

/// Calls f(i, Lockstep of kAtOnce) and f(i, Lockstep of 1) for the whole vectors from x[i] on; gives the number of
/// elements in them.
template <class F>
HWY_INLINE std::size_t for_whole_vectors(const float* x, std::size_t size, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + kAtOnce * lanes <= size; i += kAtOnce * lanes) {
    Lockstep<kAtOnce, V> v;
    v.set([&](auto k) HWY_ATTR { return hn::LoadU(d, x + i + k * lanes); });
    f(i, v);
  }
  for (; i + lanes <= size; i += lanes) f(i, Lockstep<1, V>(hn::LoadU(d, x + i)));
  return i;
}

/// The largest element, in every lane.
V maximum_of_row(const float* x, std::size_t size) {
  const D d;
  Lockstep<kAtOnce, V> maxima;
  maxima.set([&](auto) HWY_ATTR { return minus_infinity(d); });
  const std::size_t whole =
      for_whole_vectors(x, size, [&]<int kCount>(std::size_t, const Lockstep<kCount, V>& v) HWY_ATTR {
        unroll<kCount>([&](auto k) HWY_ATTR { maxima.v[k] = at_least(d, v.v[k], maxima.v[k]); });
      });
  if (whole < size) {
    const V last = load_partial(d, x + whole, size - whole);
    const V rest = hn::IfThenElse(hn::FirstN(d, size - whole), last, minus_infinity(d));
    maxima.v[0] = at_least(d, rest, maxima.v[0]);
  }
  unroll<kAtOnce>([&](auto k) HWY_ATTR { maxima.v[0] = at_least(d, maxima.v[k], maxima.v[0]); });
  return hn::MaxOfLanes(d, maxima.v[0]);
}

/// The sum of e^(x[i] - maximum), in every lane; the terms go to y unless it is null. y may be x.
V sum_of_exponentials(const float* x, float* y, std::size_t size, V maximum) {
  const D d;
  Lockstep<kAtOnce, V> sums;
  sums.set([&](auto) HWY_ATTR { return hn::Zero(d); });
  const auto add = [&]<int kCount>(std::size_t i, Lockstep<kCount, V> v) HWY_ATTR {
    v.set([&](auto k) HWY_ATTR { return hn::Sub(v.v[k], maximum); });
    v = exp_bounded_f32(d, v);
    unroll<kCount>([&](auto k) HWY_ATTR {
      sums.v[k] = hn::Add(sums.v[k], v.v[k]);
      if (y != nullptr) hn::StoreU(v.v[k], d, y + i + k * hn::Lanes(d));
    });
  };
  const std::size_t whole = for_whole_vectors(x, size, add);
  if (whole < size) {
    const std::size_t rest = size - whole;
    const V term = exp_bounded_f32(d, hn::Sub(load_partial(d, x + whole, rest), maximum));
    sums.v[1] = hn::Add(sums.v[1], hn::IfThenElseZero(hn::FirstN(d, rest), term));
    if (y != nullptr) store_partial(term, d, y + whole, rest);
  }
  const V pairs = hn::Add(hn::Add(sums.v[0], sums.v[1]), hn::Add(sums.v[2], sums.v[3]));
  return hn::SumOfLanes(d, pairs);
}

void normalize_long_row(const float* x, float* y, std::size_t size, bool log) {
  const D d;
  const V maximum = maximum_of_row(x, size);
  if (log) {
    const V log_sum = log_f32(d, sum_of_exponentials(x, nullptr, size, maximum));
    map_row(
        size, y, [maximum, log_sum](D, V v) HWY_ATTR { return hn::Sub(hn::Sub(v, maximum), log_sum); }, x);
  } else {
    const V scale = hn::Div(hn::Set(d, 1.0F), sum_of_exponentials(x, y, size, maximum));
    map_row(
        size, y, [scale](D, V v) HWY_ATTR { return hn::Mul(v, scale); }, y);
  }
}

/// Rows of up to so many vectors stay in registers, so that what one row waits for is computed beside what others do.
constexpr int kMostRowVectors = 8;

/// Rows of kVectors vectors, or a part less; y may be x.
template <int kVectors>
HWY_NOINLINE void normalize_rows_of(const float* x, float* y, std::int64_t rows, std::size_t size, bool log) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t rest = size - (kVectors - 1) * lanes;  // elements of the last vector
  const auto last_elements = hn::FirstN(d, rest);
  for (std::int64_t row = 0; row < rows; ++row, x += size, y += size) {
    Lockstep<kVectors, V> v;
    v.set([&](auto k) HWY_ATTR {
      const float* from = x + k * lanes;
      return k + 1 < kVectors || rest == lanes ? hn::LoadU(d, from) : load_partial(d, from, rest);
    });
    V maximum = hn::IfThenElse(last_elements, v.v[kVectors - 1], minus_infinity(d));
    unroll<kVectors - 1>([&](auto k) HWY_ATTR { maximum = at_least(d, v.v[k], maximum); });
    maximum = hn::MaxOfLanes(d, maximum);
    v.set([&](auto k) HWY_ATTR { return hn::Sub(v.v[k], maximum); });
    Lockstep<kVectors, V> terms = exp_bounded_f32(d, v);
    V sum = hn::IfThenElseZero(last_elements, terms.v[kVectors - 1]);
    unroll<kVectors - 1>([&](auto k) HWY_ATTR { sum = hn::Add(sum, terms.v[k]); });
    sum = hn::SumOfLanes(d, sum);
    const V scale = log ? log_f32(d, sum) : hn::Div(hn::Set(d, 1.0F), sum);
    terms.set([&](auto k) HWY_ATTR { return log ? hn::Sub(v.v[k], scale) : hn::Mul(terms.v[k], scale); });
    unroll<kVectors - 1>([&](auto k) HWY_ATTR { hn::StoreU(terms.v[k], d, y + k * lanes); });
    store_few(terms.v[kVectors - 1], d, y + (kVectors - 1) * lanes, rest);
  }
}

/// False for rows that are longer.
HWY_INLINE bool normalize_in_registers(const float* x, float* y, std::int64_t rows, std::size_t size, bool log) {
  const std::size_t vectors = (size + hn::Lanes(D()) - 1) / hn::Lanes(D());
  bool done = false;
  unroll<kMostRowVectors>([&](auto i) HWY_ATTR {
    if (vectors != i + 1) return;
    normalize_rows_of<i + 1>(x, y, rows, size, log);
    done = true;
  });
  return done;
}

void normalize_short_rows(const float* x, float* y, std::int64_t rows, std::int64_t size, bool log) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float tile[kShortRow * kMaxLanes];
  for (std::int64_t r = 0; r < rows; r += lanes, x += lanes * size, y += lanes * size) {
    const std::int64_t n = std::min(lanes, rows - r);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < size; ++c) tile[c * lanes + i] = x[i * size + c];
    for (std::int64_t i = n; i < lanes; ++i)
      for (std::int64_t c = 0; c < size; ++c) tile[c * lanes + i] = 0.0F;
    normalize_columns(tile, tile, steps_of_rows(size, lanes, static_cast<std::size_t>(lanes)), log);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < size; ++c) y[i * size + c] = tile[c * lanes + i];
  }
}

/// About 4096 elements per task keep the cost of handing it out small.
std::int64_t grain_of(std::int64_t elements_per_item) { return std::max<std::int64_t>(4096 / elements_per_item, 1); }

void run_rows(const Invocation& call, const softmax::Extents& e, bool log) {
  // Ranges start at multiples of whole tiles, so that the same rows share a tile with any number of threads.
  const std::int64_t grain = (grain_of(e.size) + 63) / 64 * 64;
  parallel_ranges(*call.threads, e.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    const float* x = call.input<float>(0) + begin * e.size;
    float* y = call.output<float>() + begin * e.size;
    if (e.size <= kShortRow) {
      normalize_short_rows(x, y, end - begin, e.size, log);
      return;
    }
    if (normalize_in_registers(x, y, end - begin, static_cast<std::size_t>(e.size), log)) return;
    for (std::int64_t r = begin; r < end; ++r, x += e.size, y += e.size)
      normalize_long_row(x, y, static_cast<std::size_t>(e.size), log);
  });
}

/// Fewer columns than lanes.
void run_narrow_columns(const Invocation& call, const softmax::Extents& e, bool log) {
  const Steps steps = steps_of_narrow_rows(e.size, static_cast<std::size_t>(e.inner));
  const std::int64_t elements = e.size * e.inner;
  parallel_ranges(*call.threads, e.outer, grain_of(elements), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      normalize_columns(call.input<float>(0) + i * elements, call.output<float>() + i * elements, steps, log);
  });
}

void run_columns(const Invocation& call, const softmax::Extents& e, bool log) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const std::int64_t blocks = (e.inner + lanes - 1) / lanes;
  parallel_ranges(*call.threads, e.outer * blocks, grain_of(e.size * lanes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t column = block % blocks * lanes;
      const std::int64_t first = block / blocks * e.size * e.inner + column;
      const auto columns = static_cast<std::size_t>(std::min(lanes, e.inner - column));
      normalize_columns(call.input<float>(0) + first, call.output<float>() + first,
                        steps_of_rows(e.size, e.inner, columns), log);
    }
  });
}

void run_softmax(const Invocation& call) {
  const softmax::Extents e = softmax::extents_of(call);
  const bool log = call.as<SoftmaxParams>().log != 0;
  if (e.outer * e.size * e.inner == 0) return;
  if (e.inner == 1) {
    run_rows(call, e, log);
  } else if (e.inner < static_cast<std::int64_t>(hn::Lanes(D()))) {
    run_narrow_columns(call, e, log);
  } else {
    run_columns(call, e, log);
  }
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::softmax {

HWY_EXPORT(run_softmax);

Status run_simd(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_softmax)(call);
  return ok_status();
}

}  // namespace bantam::ops::softmax
#endif
