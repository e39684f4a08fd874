#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce/reduce_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <iterator>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kBlock = 256;  // terms added before they go to the total, which bounds the rounding error

/// What most reductions do with an element before, and with the result after.
struct AsItIs {
  template <class V>
  static HWY_INLINE V term(V v) {
    return v;
  }
  template <class V>
  static HWY_INLINE V finish(V v) {
    return v;
  }
};

/// One step of each reduction on vectors and the value it starts from, whose term changes nothing.
struct Sum : AsItIs {
  static constexpr float kStart = 0.0F;
  template <class V>
  static HWY_INLINE V step(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Magnitudes : Sum {
  template <class V>
  static HWY_INLINE V term(V v) {
    return hn::Abs(v);
  }
};
struct Squares : Sum {
  template <class V>
  static HWY_INLINE V term(V v) {
    return hn::Mul(v, v);
  }
};
struct Length : Squares {
  template <class V>
  static HWY_INLINE V finish(V v) {
    return hn::Sqrt(v);
  }
};
struct Maximum : AsItIs {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V step(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
};
struct Minimum : AsItIs {
  static constexpr float kStart = std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V step(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
};

/// Element after element, in their order.
template <class R>
HWY_INLINE float reduce_in_order(const StridedRows<1>& reduced, const float* x) {
  const hn::CappedTag<float, 1> one;
  auto total = hn::Set(one, R::kStart);
  for_each_row(reduced, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    for (std::int64_t i = 0; i < n; ++i) total = R::step(total, R::term(hn::Set(one, x[offsets[0] + i])));
  });
  return hn::GetLane(total);
}

/// The reduction of n contiguous elements to one vector.
template <class R, class D, class V = hn::Vec<D>>
HWY_INLINE V reduce_row(D d, const float* x, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V total = hn::Set(d, R::kStart);
  for (std::int64_t begin = 0; begin < n; begin += kBlock * lanes) {
    const std::int64_t end = std::min(n, begin + kBlock * lanes);
    // Two independent chains hide the latency of the addition.
    V even = hn::Set(d, R::kStart);
    V odd = even;
    std::int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      even = R::step(even, R::term(hn::LoadU(d, x + i)));
      odd = R::step(odd, R::term(hn::LoadU(d, x + i + lanes)));
    }
    for (; i < end; i += lanes) {
      const auto left = static_cast<std::size_t>(std::min(lanes, end - i));
      const V v = hn::IfThenElse(hn::FirstN(d, left), load_partial(d, x + i, left), hn::Set(d, R::kStart));
      even = R::step(even, R::term(v));
    }
    total = R::step(total, R::step(even, odd));
  }
  return total;
}

/// The reduction of the lanes of a vector: of its halves to one, until that is a number.
template <class R, class D, class V>
HWY_INLINE float reduce_lanes(D /*d*/, V v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return reduce_lanes<R>(half, R::step(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// Reduces rows that are contiguous in x to one number.
template <class R>
HWY_INLINE float reduce_contiguous(const StridedRows<1>& reduced, const float* x) {
  const hn::ScalableTag<float> d;
  // Mostly there is one row, and often a short one.
  if (reduced.outer_rank == 0) return reduce_lanes<R>(d, reduce_row<R>(d, x, reduced.row_length));
  auto total = hn::Set(d, R::kStart);
  for_each_row(reduced, [&](const auto& offsets, std::int64_t n)
                            HWY_ATTR { total = R::step(total, reduce_row<R>(d, x + offsets[0], n)); });
  return reduce_lanes<R>(d, total);
}

/// Reduces `count` <= Lanes neighbouring kept elements at once, over all reduced elements; in order when all of them
/// are one block.
template <class R, class D, class V = hn::Vec<D>>
HWY_INLINE V reduce_columns(D d, const StridedRows<1>& reduced, const float* x, std::size_t count, bool in_order) {
  const bool full = count == hn::Lanes(d);
  const std::int64_t stride = reduced.row_strides[0];
  V total = hn::Set(d, R::kStart);
  for_each_row(reduced, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    const std::int64_t block_size = in_order ? n : kBlock;
    for (std::int64_t begin = 0; begin < n; begin += block_size) {
      V block = in_order ? total : hn::Set(d, R::kStart);
      for (std::int64_t i = begin; i < std::min(n, begin + block_size); ++i) {
        const float* from = x + offsets[0] + i * stride;
        block = R::step(block, R::term(full ? hn::LoadU(d, from) : load_partial(d, from, count)));
      }
      total = in_order ? block : R::step(total, block);
    }
  });
  return total;
}

template <class R>
void reduce_range(const ReduceLoops& loops, const float* x, float* y, float scale, bool columns, bool in_order,
                  std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    if (!columns) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float* from = x + offsets[1] + i * loops.kept.row_strides[1];
        const float result =
            in_order ? reduce_in_order<R>(loops.reduced, from) : reduce_contiguous<R>(loops.reduced, from);
        y[offsets[0] + i * loops.kept.row_strides[0]] = hn::GetLane(R::finish(hn::Set(one, result / scale)));
      }
      return;
    }
    for (std::int64_t i = 0; i < n; i += lanes) {
      const auto count = static_cast<std::size_t>(std::min(lanes, n - i));
      const auto v = R::finish(
          hn::Div(reduce_columns<R>(d, loops.reduced, x + offsets[1] + i, count, in_order), hn::Set(d, scale)));
      if (count == hn::Lanes(d)) {
        hn::StoreU(v, d, y + offsets[0] + i);
      } else {
        store_partial(v, d, y + offsets[0] + i, count);
      }
    }
  });
}

void run_reduce(const Invocation& invocation, const ReduceLoops& loops) {
  const auto& params = invocation.as<ReduceParams>();
  const ReduceFunction function = params.function;
  const bool in_order = params.sequential != 0;
  const float scale = function == ReduceFunction::kMean ? static_cast<float>(loops.reduced.elements) : 1.0F;
  const bool columns = loops.by_columns();
  const auto* x = invocation.input<float>(0);
  auto* y = invocation.output<float>();
  const auto reduce = [&](auto reduction) {
    parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                    [&](std::int64_t begin, std::int64_t end) {
                      reduce_range<decltype(reduction)>(loops, x, y, scale, columns, in_order, begin, end);
                    });
  };
  switch (function) {
    case ReduceFunction::kMax: return reduce(Maximum());
    case ReduceFunction::kMin: return reduce(Minimum());
    case ReduceFunction::kL1: return reduce(Magnitudes());
    case ReduceFunction::kL2: return reduce(Length());
    case ReduceFunction::kSumSquare: return reduce(Squares());
    default: return reduce(Sum());
  }
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_reduce);

bool supports_reduce_f32_simd(const OpCall& call) {
  const auto& p = call.as<ReduceParams>();
  if (call.in(0).type != ElementType::kF32) return false;
  constexpr ReduceFunction kFunctions[] = {ReduceFunction::kSum,      ReduceFunction::kMean, ReduceFunction::kMax,
                                           ReduceFunction::kMin,      ReduceFunction::kL1,   ReduceFunction::kL2,
                                           ReduceFunction::kSumSquare};
  if (std::ranges::find(kFunctions, p.function) == std::end(kFunctions)) return false;
  return make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out()).suit_vectors();
}

Status run_reduce_f32_simd(const Invocation& invocation) {
  const auto& p = invocation.as<ReduceParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, invocation.in(0), invocation.out());
  HWY_DYNAMIC_DISPATCH(run_reduce)(invocation, loops);
  return ok_status();
}

}  // namespace bantam::ops
#endif
