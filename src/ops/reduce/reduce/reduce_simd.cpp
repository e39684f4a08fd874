#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/reduce/reduce_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <limits>

#include "base/shape.h"
#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

#ifndef BANTAM_REDUCE_SHARED_ROWS_
#define BANTAM_REDUCE_SHARED_ROWS_
namespace bantam::ops {
namespace {

constexpr std::int64_t kBlockRows = 32;  // of columns, added before they go to the total

std::int64_t reduce_blocks(const ReduceLoops& loops) {
  return (loops.reduced.row_length + kBlockRows - 1) / kBlockRows;
}

/// Scratch with which threads share rows: the totals of all blocks. 0 where they share columns.
std::int64_t shared_totals_bytes(const ReduceParams& params, const ReduceLoops& loops, int threads) {
  if (params.sequential != 0 || !shares_rows(loops, threads)) return 0;
  const std::int64_t totals = reduce_blocks(loops) * loops.kept.elements;
  return align_up(totals * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

}  // namespace
}  // namespace bantam::ops
#endif

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
struct LogSum : Sum {
  template <class V>
  static HWY_INLINE V finish(V v) {
    return log_f32(hn::DFromV<V>(), v);
  }
};
/// The larger, or smaller, of two numbers; what is not a number stays. x86's Max and Min give their second operand
/// where one of them is none; others' may give the other.
struct Maximum : AsItIs {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V step(V a, V b) {
    if constexpr (HWY_ARCH_X86) return hn::IfThenElse(hn::IsNaN(b), b, hn::Max(b, a));
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
};
struct Minimum : AsItIs {
  static constexpr float kStart = std::numeric_limits<float>::infinity();
  template <class V>
  static HWY_INLINE V step(V a, V b) {
    if constexpr (HWY_ARCH_X86) return hn::IfThenElse(hn::IsNaN(b), b, hn::Min(b, a));
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

/// One step with the first `left` of a vector's elements.
template <class R, class D, class V = hn::Vec<D>>
HWY_INLINE V step_of_some(D d, V total, const float* x, std::size_t left) {
  const V v = hn::IfThenElse(hn::FirstN(d, left), load_partial(d, x, left), hn::Set(d, R::kStart));
  return R::step(total, R::term(v));
}

/// The reduction of n contiguous elements to one vector.
template <class R, class D, class V = hn::Vec<D>>
HWY_INLINE V reduce_row(D d, const float* x, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V total = hn::Set(d, R::kStart);
  // Of short rows nothing else would come to the first of the chains below.
  if (n < 2 * lanes) {
    const std::int64_t whole = n / lanes * lanes;
    if (whole > 0) total = R::step(total, R::term(hn::LoadU(d, x)));
    return whole < n ? step_of_some<R>(d, total, x + whole, static_cast<std::size_t>(n - whole)) : total;
  }
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
    for (; i + lanes <= end; i += lanes) even = R::step(even, R::term(hn::LoadU(d, x + i)));
    if (i < end) even = step_of_some<R>(d, even, x + i, static_cast<std::size_t>(end - i));
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

/// The reductions of as many contiguous rows as a vector has lanes, each in its own: reduce_lanes of all at once, whose
/// pairs of lanes it folds in the same order.
template <class R>
class RowsOfLanes {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static constexpr int kRows = static_cast<int>(hn::MaxLanes(D()));
  static constexpr bool kApplies = kRows == 4 || kRows == 8 || kRows == 16;

  /// Rows of n elements, each `stride` behind the one before.
  HWY_INLINE RowsOfLanes(const float* x, std::int64_t stride, std::int64_t n) {
    for (int row = 0; row < kRows; ++row, x += stride) hn::Store(reduce_row<R>(kD, x, n), kD, vectors_ + row * kRows);
  }

  HWY_INLINE V reduced() const {
    const V first = fold_halves(blocks(0), blocks(1));
    const V second = fold_halves(blocks(2), blocks(3));
    const hn::Repartition<double, D> pairs;
    const auto a = hn::BitCast(pairs, first);
    const auto b = hn::BitCast(pairs, second);
    return R::step(hn::BitCast(kD, hn::InterleaveLower(pairs, a, b)),
                   hn::BitCast(kD, hn::InterleaveUpper(pairs, a, b)));
  }

 private:
  static constexpr D kD{};
  static constexpr int kBlock = 4;  ///< lanes

  HWY_INLINE V vector(int row) const { return hn::Load(kD, vectors_ + row * kRows); }

  /// In block i, row kBlock * i + `row` reduced to a block.
  HWY_INLINE V blocks(int row) const {
    if constexpr (kRows == 16) {
      const V even = fold_upper(vector(row), vector(row + 2 * kBlock));
      const V odd = fold_upper(vector(row + kBlock), vector(row + 3 * kBlock));
      return R::step(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even),
                     hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)));
    } else if constexpr (kRows == 8) {
      return fold_upper(vector(row), vector(row + kBlock));
    } else {
      return vector(row);
    }
  }

  /// The halves of a, and behind them those of b.
  static HWY_INLINE V fold_upper(V a, V b) {
    return R::step(hn::ConcatLowerLower(kD, b, a), hn::ConcatUpperUpper(kD, b, a));
  }

  /// The halves of each block of a and of b, one number of them after the other.
  static HWY_INLINE V fold_halves(V a, V b) {
    return R::step(hn::InterleaveLower(kD, a, b), hn::InterleaveUpper(kD, a, b));
  }

  HWY_ALIGN float vectors_[kRows * kRows];
};

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

/// The totals of neighbouring kept elements in kVectors vectors; of only `count` when there is one vector.
template <class R, int kVectors>
class Columns {
 public:
  explicit HWY_INLINE Columns(std::size_t count) : count_(count) {
    unroll<kVectors>([&](auto v) HWY_ATTR { total_[v] = hn::Set(kD, R::kStart); });
  }

  /// The same columns, of no terms.
  HWY_INLINE Columns begin_anew() const { return Columns(count_); }

  /// Takes the terms of `rows` rows in, one after the other.
  HWY_INLINE void add_terms(const float* x, std::int64_t stride, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i, x += stride)
      unroll<kVectors>([&](auto v) HWY_ATTR { total_[v] = R::step(total_[v], R::term(load(x, v))); });
  }

  /// Takes a total of others in.
  HWY_INLINE void add(const Columns& other) {
    unroll<kVectors>([&](auto v) HWY_ATTR { total_[v] = R::step(total_[v], other.total_[v]); });
  }

  HWY_INLINE void add(const float* totals) {
    unroll<kVectors>([&](auto v) HWY_ATTR { total_[v] = R::step(total_[v], load(totals, v)); });
  }

  HWY_INLINE void store(float* y) const {
    unroll<kVectors>([&](auto v) HWY_ATTR { store_vector(total_[v], y, v); });
  }

  /// The results, of `scale` elements each where that is what a mean divides by, else 1.
  HWY_INLINE void finish(float scale, float* y) const {
    unroll<kVectors>([&](auto v) HWY_ATTR { store_vector(R::finish(hn::Div(total_[v], hn::Set(kD, scale))), y, v); });
  }

 private:
  using D = hn::ScalableTag<float>;
  static constexpr D kD{};

  HWY_INLINE bool is_full() const { return kVectors > 1 || count_ == hn::Lanes(kD); }

  HWY_INLINE hn::Vec<D> load(const float* from, int v) const {
    return is_full() ? hn::LoadU(kD, from + static_cast<std::size_t>(v) * hn::Lanes(kD))
                     : load_partial(kD, from, count_);
  }

  HWY_INLINE void store_vector(hn::Vec<D> value, float* y, int v) const {
    if (is_full()) {
      hn::StoreU(value, kD, y + static_cast<std::size_t>(v) * hn::Lanes(kD));
    } else {
      store_partial(value, kD, y, count_);
    }
  }

  std::size_t count_;
  hn::Vec<D> total_[kVectors];
};

/// Calls f(columns, first) for groups of columns that cover n of them; `columns` begin with the reduction's start.
template <class R, class F>
HWY_INLINE void for_each_columns(std::int64_t n, F f) {
  constexpr int kWide = 4;  // sums that do not wait for each other
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  std::int64_t i = 0;
  for (; i + kWide * lanes <= n; i += kWide * lanes) f(Columns<R, kWide>(hn::Lanes(hn::ScalableTag<float>())), i);
  for (; i < n; i += lanes) f(Columns<R, 1>(static_cast<std::size_t>(std::min(lanes, n - i))), i);
}

/// Reduces n neighbouring kept elements over all reduced elements; in order when all of them are one block.
template <class R>
HWY_INLINE void reduce_columns(const StridedRows<1>& reduced, const float* x, std::int64_t n, float scale,
                               bool in_order, float* y) {
  const std::int64_t stride = reduced.row_strides[0];
  for_each_columns<R>(n, [&](auto total, std::int64_t first) HWY_ATTR {
    for_each_row(reduced, [&](const auto& offsets, std::int64_t rows) HWY_ATTR {
      const float* from = x + first + offsets[0];
      if (in_order) return total.add_terms(from, stride, rows);
      for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
        auto block = total.begin_anew();
        block.add_terms(from + begin * stride, stride, std::min(rows - begin, kBlockRows));
        total.add(block);
      }
    });
    total.finish(scale, y + first);
  });
}

/// Reduces as many of n rows as fill vectors with their results, if each lies in one piece. How many that were.
template <class R>
HWY_INLINE std::int64_t reduce_many_rows(const ReduceLoops& loops, const float* x, std::int64_t n, float scale,
                                         float* y) {
  using Rows = RowsOfLanes<R>;
  std::int64_t done = 0;
  if constexpr (Rows::kApplies) {
    const hn::ScalableTag<float> d;
    const std::int64_t stride = loops.kept.row_strides[1];
    if (loops.reduced.outer_rank != 0 || loops.kept.row_strides[0] != 1) return 0;
    for (; done + Rows::kRows <= n; done += Rows::kRows) {
      const auto totals = Rows(x + done * stride, stride, loops.reduced.row_length).reduced();
      hn::StoreU(R::finish(hn::Div(totals, hn::Set(d, scale))), d, y + done);
    }
  }
  return done;
}

template <class R>
void reduce_range(const ReduceLoops& loops, const float* x, float* y, float scale, bool in_order, std::int64_t begin,
                  std::int64_t end) {
  const hn::CappedTag<float, 1> one;
  for_each_segment(loops.kept, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    if (loops.by_columns()) return reduce_columns<R>(loops.reduced, x + offsets[1], n, scale, in_order, y + offsets[0]);
    std::int64_t i = 0;
    if (!in_order) i = reduce_many_rows<R>(loops, x + offsets[1], n, scale, y + offsets[0]);
    for (; i < n; ++i) {
      const float* from = x + offsets[1] + i * loops.kept.row_strides[1];
      const float result =
          in_order ? reduce_in_order<R>(loops.reduced, from) : reduce_contiguous<R>(loops.reduced, from);
      y[offsets[0] + i * loops.kept.row_strides[0]] = hn::GetLane(R::finish(hn::Set(one, result / scale)));
    }
  });
}

/// Threads share the rows of a matrix: the totals of its blocks meet in `totals`, so that results are those of one
/// thread.
template <class R>
void reduce_shared_rows(const Threads& threads, const ReduceLoops& loops, const float* x, float* y, float scale,
                        float* totals) {
  const std::int64_t n = loops.kept.elements;
  const std::int64_t rows = loops.reduced.row_length;
  const std::int64_t stride = loops.reduced.row_strides[0];
  const std::int64_t blocks = reduce_blocks(loops);
  parallel_ranges(threads, blocks, (row_grain(loops) + kBlockRows - 1) / kBlockRows,
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    for (std::int64_t b = begin; b < end; ++b)
                      for_each_columns<R>(n, [&](auto block, std::int64_t first) HWY_ATTR {
                        const std::int64_t row = b * kBlockRows;
                        block.add_terms(x + row * stride + first, stride, std::min(rows - row, kBlockRows));
                        block.store(totals + b * n + first);
                      });
                  });
  for_each_columns<R>(n, [&](auto total, std::int64_t first) HWY_ATTR {
    for (std::int64_t b = 0; b < blocks; ++b) total.add(totals + b * n + first);
    total.finish(scale, y + first);
  });
}

void run_reduce(const Invocation& invocation, const ReduceLoops& loops) {
  const auto& params = invocation.as<ReduceParams>();
  const ReduceFunction function = params.function;
  const bool in_order = params.sequential != 0;
  const float scale = function == ReduceFunction::kMean ? static_cast<float>(loops.reduced.elements) : 1.0F;
  const auto* x = invocation.input<float>(0);
  auto* y = invocation.output<float>();
  const std::int64_t shared_bytes = shared_totals_bytes(params, loops, invocation.threads->count);
  const bool shared = shared_bytes != 0 && invocation.scratch_bytes >= shared_bytes;
  const auto reduce = [&](auto reduction) {
    if (shared)
      return reduce_shared_rows<decltype(reduction)>(*invocation.threads, loops, x, y, scale,
                                                     reinterpret_cast<float*>(invocation.scratch));
    parallel_ranges(*invocation.threads, loops.kept.elements, reduce_grain(loops),
                    [&](std::int64_t begin, std::int64_t end) {
                      reduce_range<decltype(reduction)>(loops, x, y, scale, in_order, begin, end);
                    });
  };
  switch (function) {
    case ReduceFunction::kMax: return reduce(Maximum());
    case ReduceFunction::kMin: return reduce(Minimum());
    case ReduceFunction::kL1: return reduce(Magnitudes());
    case ReduceFunction::kL2: return reduce(Length());
    case ReduceFunction::kLogSum: return reduce(LogSum());
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

Footprint reduce_footprint(const OpCall& call, int threads) {
  const auto& p = call.as<ReduceParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, call.in(0), call.out());
  return {.useful_scratch_bytes = shared_totals_bytes(p, loops, threads)};
}

bool supports_reduce_f32_simd(const OpCall& call) {
  const auto& p = call.as<ReduceParams>();
  if (call.in(0).type != ElementType::kF32) return false;
  // Products in another order may leave the range of numbers in between: of large numbers and small ones in turn, some
  // lanes would have infinity and others 0.
  if (p.function == ReduceFunction::kProd || p.function == ReduceFunction::kLogSumExp) return false;
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
