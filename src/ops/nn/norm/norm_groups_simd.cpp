// Normalisation of groups of channels of channels-last images, and of few long rows: what is normalised together lies
// in rows, a part of each. Sums are taken column by column, those of a group are added, and every column gets the
// numbers of its group. Two passes for mean and variance, one to write the result, as in norm_simd.cpp. Threads share
// the rows, the same ones in each pass; parts of them have sums of their own, as many however many threads there are.
#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/norm/norm_groups_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/parallel.h"
#include "ops/nn/norm/geometry.h"
#include "ops/nn/norm/kernels.h"
#include "ops/nn/norm/norm_columns_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::norm::HWY_NAMESPACE {
namespace {

/// Scale or bias: one value for each column, or one for all.
struct ColumnParameter {
  const float* values = nullptr;
  float value = 0.0F;

  template <class Block>
  HWY_INLINE V load(const Block& columns, std::int64_t column, int v) const {
    return values != nullptr ? columns.load(values + column, v) : hn::Set(D(), value);
  }
};

class GroupNorm {
 public:
  explicit GroupNorm(const Invocation& call)
      : call_(call),
        p_(call.as<NormParams>()),
        g_(*group_geometry_of(p_, call.in(0))),
        scale_(parameter(1, 1.0F)),
        bias_(parameter(2, 0.0F)),
        parts_(part_count(g_)),
        part_sums_(reinterpret_cast<float*>(call.scratch)),
        sums_(part_sums_ + parts_ * g_.columns()),
        centers_(sums_ + g_.columns()),
        factors_(centers_ + g_.columns()) {}

  void run() {
    const std::int64_t item = g_.rows * g_.columns();
    for (std::int64_t i = 0; i < g_.outer; ++i)
      normalize(call_.input<float>(0) + i * item, call_.output<float>() + i * item);
  }

 private:
  static constexpr std::int64_t kGrain = 8192;  ///< elements that are worth a thread
  static constexpr std::int64_t kFewRows = 8;   ///< rows that are read along

  ColumnParameter parameter(int i, float absent) const {
    if (!call_.has(i)) return {nullptr, absent};
    const auto* values = call_.input<float>(i);
    return call_.in(i).elements() == 1 ? ColumnParameter{nullptr, values[0]} : ColumnParameter{values, 0.0F};
  }

  void normalize(const float* x, float* y) {
    std::fill_n(centers_, g_.columns(), 0.0F);
    if (p_.rms == 0) {
      sum_columns(x, [](V value, V /*center*/) HWY_ATTR { return value; });
      share_in_groups(centers_, [](double mean) { return static_cast<float>(mean); });
    }
    sum_columns(x, [](V value, V center) HWY_ATTR {
      const V distance = hn::Sub(value, center);
      return hn::Mul(distance, distance);
    });
    share_in_groups(factors_, [this](double variance) {
      return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(p_.epsilon)));
    });
    write(x, y);
  }

  /// sums[c] = the sum of f(element, center) over column c.
  template <class F>
  void sum_columns(const float* x, F f) {
    const std::int64_t width = g_.columns();
    const std::int64_t grain = std::max<std::int64_t>(kGrain * parts_ / (g_.rows * width), 1);
    parallel_ranges(*call_.threads, parts_, grain, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
      for (std::int64_t part = begin; part < end; ++part) {
        const std::int64_t first = g_.rows * part / parts_;
        sum_rows(x + first * width, g_.rows * (part + 1) / parts_ - first, f, part_sums_ + part * width);
      }
    });
    sum_rows(
        part_sums_, parts_, [](V value, V /*center*/) HWY_ATTR { return value; }, sums_);
  }

  /// to[c] = the sum of f(element, center) over column c of so many rows. A few rows at a time, which are read along.
  template <class F>
  HWY_INLINE void sum_rows(const float* x, std::int64_t rows, F f, float* to) const {
    const std::int64_t width = g_.columns();
    std::fill_n(to, width, 0.0F);
    std::int64_t row = 0;
    for (; row + kFewRows <= rows; row += kFewRows) add_rows<kFewRows>(x + row * width, f, to);
    for (; row < rows; ++row) add_rows<1>(x + row * width, f, to);
  }

  template <int kRows, class F>
  HWY_INLINE void add_rows(const float* x, F f, float* to) const {
    const std::int64_t width = g_.columns();
    for_column_blocks(0, width, [&](const auto& columns, std::int64_t column) HWY_ATTR {
      unroll<std::remove_cvref_t<decltype(columns)>::kCount>([&](auto v) HWY_ATTR {
        const V center = columns.load(centers_ + column, v);
        V sum = f(columns.load(x + column, v), center);
        unroll<kRows - 1>(
            [&](auto i) HWY_ATTR { sum = hn::Add(sum, f(columns.load(x + (i + 1) * width + column, v), center)); });
        columns.store(hn::Add(columns.load(to + column, v), sum), to + column, v);
      });
    });
  }

  /// Every column of a group gets f(mean of the group's elements).
  template <class F>
  void share_in_groups(float* to, F f) const {
    const auto elements = static_cast<double>(g_.rows * g_.members);
    for (std::int64_t first = 0; first < g_.columns(); first += g_.members) {
      double total = 0;
      for (std::int64_t c = first; c < first + g_.members; ++c) total += static_cast<double>(sums_[c]);
      std::fill_n(to + first, g_.members, f(total / elements));
    }
  }

  void write(const float* x, float* y) const {
    const std::int64_t width = g_.columns();
    const std::int64_t grain = std::max<std::int64_t>(kGrain / width, 1);
    parallel_ranges(*call_.threads, g_.rows, Grain(grain, kFewRows),
                    [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                      for (std::int64_t row = begin; row < end; row += kFewRows)
                        write_rows(x + row * width, std::min(kFewRows, end - row), y + row * width);
                    });
  }

  /// A few rows, the numbers of whose columns stay in registers.
  HWY_INLINE void write_rows(const float* x, std::int64_t rows, float* y) const {
    const std::int64_t width = g_.columns();
    for_column_blocks(0, width, [&](const auto& columns, std::int64_t column) HWY_ATTR {
      constexpr int kVectors = std::remove_cvref_t<decltype(columns)>::kCount;
      V center[kVectors];
      V factor[kVectors];
      V bias[kVectors];
      unroll<kVectors>([&](auto v) HWY_ATTR {
        center[v] = columns.load(centers_ + column, v);
        factor[v] = hn::Mul(columns.load(factors_ + column, v), scale_.load(columns, column, v));
        bias[v] = bias_.load(columns, column, v);
      });
      for (std::int64_t at = column; at < column + rows * width; at += width)
        unroll<kVectors>([&](auto v) HWY_ATTR {
          columns.store(hn::MulAdd(hn::Sub(columns.load(x + at, v), center[v]), factor[v], bias[v]), y + at, v);
        });
    });
  }

  const Invocation& call_;
  const NormParams& p_;
  GroupGeometry g_;
  ColumnParameter scale_;
  ColumnParameter bias_;
  std::int64_t parts_;
  float* part_sums_;  ///< [part, column]
  float* sums_;       ///< of each column
  float* centers_;    ///< for each column, the mean of its group
  float* factors_;    ///< for each column
};

void run_group_norm(const Invocation& call) { GroupNorm(call).run(); }

}  // namespace
}  // namespace bantam::ops::norm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::norm {

HWY_EXPORT(run_group_norm);

bool supports_groups(const OpCall& call) {
  const TensorDesc& x = call.in(0);
  if (x.type != ElementType::kF32 || !all_dense(call)) return false;
  const auto g = group_geometry_of(call.as<NormParams>(), x);
  if (!g) return false;
  for (int i = 1; i <= 2; ++i)
    if (call.has(i) && !lists_columns(call.in(i), x, *g)) return false;
  return true;
}

bool prefers_groups(const OpCall& call) {
  if (!supports_groups(call)) return false;
  // Contiguous elements are summed faster without columns, unless threads could not share them.
  constexpr std::int64_t kFewItems = 4;
  constexpr std::int64_t kManyRows = 16;
  const auto g = group_geometry_of(call.as<NormParams>(), call.in(0));
  return g->rows > 1 && (g->groups > 1 || (g->outer < kFewItems && g->rows >= kManyRows));
}

Footprint groups_footprint(const OpCall& call, int /*threads*/) {
  const auto g = group_geometry_of(call.as<NormParams>(), call.in(0));
  Footprint footprint;
  footprint.scratch_bytes = (part_count(*g) + 3) * g->columns() * static_cast<std::int64_t>(sizeof(float));
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_groups(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_group_norm)(call);
  return ok_status();
}

}  // namespace bantam::ops::norm
#endif
