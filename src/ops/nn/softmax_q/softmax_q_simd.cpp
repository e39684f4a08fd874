// Softmax of rows of bytes: their exponentials are looked up in a table that all rows share, and vectors of them
// scaled.
#include <algorithm>
#include <limits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/softmax_q/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/softmax_q/softmax_q_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/fixed_point_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::softmax_q::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_wide;
using ops::HWY_NAMESPACE::rounding_divide_by_pot;
using ops::HWY_NAMESPACE::rounding_doubling_high_mul;

/// Products need the lanes in pairs.
constexpr std::size_t kFewestLanes = 2;

/// Rows of `size` elements in vectors of not more, the last of which overlaps the one before it.
template <class D>
class Rows {
 public:
  HWY_INLINE Rows(const ExpTable& exp, std::int64_t size)
      : exp_(exp), size_(size), last_(size - lanes()), padded_((size + lanes() - 1) / lanes() * lanes()) {}

  /// y may be x. Steps of a row wait for each other, as loads of vectors do for the elements that were stored: so each
  /// step is taken for a block of rows.
  template <typename In, typename Out>
  HWY_INLINE void normalize(std::int64_t rows, const In* x, Out* y) const {
    HWY_ALIGN std::int32_t exponentials[kLongestRow];  // rows one behind the other, each in whole vectors
    Share shares[kMostRows];
    const std::int64_t block = std::min(kLongestRow / padded_, kMostRows);
    for (std::int64_t begin = 0; begin < rows; begin += block) {
      const std::int64_t count = std::min(rows - begin, block);
      for (std::int64_t r = 0; r < count; ++r) look_up(x + (begin + r) * size_, exponentials + r * padded_);
      for (std::int64_t r = 0; r < count; ++r)
        shares[r] = share_of(sum_of(exponentials + r * padded_), 8 * sizeof(Out));
      for (std::int64_t r = 0; r < count; ++r) write(shares[r], exponentials + r * padded_, y + (begin + r) * size_);
    }
  }

 private:
  using V = hn::Vec<D>;

  static constexpr std::int64_t kMostRows = 16;

  static HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

  template <typename In>
  HWY_INLINE std::int32_t maximum_of(const In* x) const {
    V maximum = load_wide(D(), x + last_);
    for (std::int64_t i = 0; i < last_; i += lanes()) maximum = hn::Max(maximum, load_wide(D(), x + i));
    return hn::GetLane(hn::MaxOfLanes(D(), maximum));
  }

  /// A row's exponentials, with zeros behind. One by one: gathers take as long, where there are any.
  template <typename In>
  HWY_INLINE void look_up(const In* x, std::int32_t* exponentials) const {
    const std::int32_t maximum = maximum_of(x);
    hn::Store(hn::Zero(D()), D(), exponentials + padded_ - lanes());
    for (std::int64_t i = 0; i < size_; ++i) exponentials[i] = exp_(maximum - x[i]);
  }

  /// In Q12: a term is 2^19 at most.
  HWY_INLINE std::int32_t sum_of(const std::int32_t* exponentials) const {
    V sum = hn::Zero(D());
    for (std::int64_t i = 0; i < padded_; i += lanes())
      sum = hn::Add(sum, rounding_divide_by_pot(D(), hn::Load(D(), exponentials + i), kSumIntegerBits));
    return hn::GetLane(hn::SumOfLanes(D(), sum));
  }

  template <typename Out>
  HWY_INLINE void write(const Share& share, const std::int32_t* exponentials, Out* y) const {
    for (std::int64_t i = 0; i < last_; i += lanes()) write_vector(share, exponentials + i, y + i);
    write_vector(share, exponentials + last_, y + last_);
  }

  /// Results begin with the least number of their type; what is beyond the greatest becomes it.
  template <typename Out>
  static HWY_INLINE void write_vector(const Share& share, const std::int32_t* exponentials, Out* y) {
    const hn::Rebind<Out, D> narrow;
    const V product = rounding_doubling_high_mul(D(), hn::LoadU(D(), exponentials), hn::Set(D(), share.multiplier));
    const V value = rounding_divide_by_pot(D(), product, share.exponent);
    hn::StoreU(hn::DemoteTo(narrow, hn::Add(value, hn::Set(D(), std::numeric_limits<Out>::min()))), narrow, y);
  }

  const ExpTable& exp_;
  std::int64_t size_;
  std::int64_t last_;    ///< where the last vector begins
  std::int64_t padded_;  ///< lanes of all vectors
};

/// `rows` rows of two or more elements, in vectors of kLanes or, where these are more than a row has elements, fewer.
template <std::size_t kLanes, typename In, typename Out>
void normalize_rows(const ExpTable& exp, std::int64_t rows, std::int64_t size, const In* x, Out* y) {
  using D = hn::CappedTag<std::int32_t, kLanes>;
  if constexpr (kLanes > kFewestLanes)
    if (size < static_cast<std::int64_t>(hn::Lanes(D()))) return normalize_rows<kLanes / 2>(exp, rows, size, x, y);
  Rows<D>(exp, size).normalize(rows, x, y);
}

/// Rows [begin, end).
void normalize_range(const Invocation& call, const ExpTable& exp, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = call.in(0).last(0);
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type, [&](auto tag) {
    constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<std::int32_t>());
    using In = typename decltype(tag)::type;
    const In* x = call.input<In>(0) + begin * size;
    if (call.out().type == ElementType::kI16) {
      normalize_rows<kLanes>(exp, end - begin, size, x, call.output<std::int16_t>() + begin * size);
    } else {
      normalize_rows<kLanes>(exp, end - begin, size, x, call.output<In>() + begin * size);
    }
  });
}

}  // namespace
}  // namespace bantam::ops::softmax_q::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::softmax_q {

HWY_EXPORT(normalize_range);

bool supports_bytes(const OpCall& call) {
  const TensorDesc& x = call.in(0);
  return x.type != ElementType::kI16 && x.last(0) >= 2 && x.last(0) <= kLongestRow && x.elements() > kDifferences &&
         all_dense(call);
}

Status run_bytes(const Invocation& call) {
  const ExpTable exp(call.as<SoftmaxQParams>());
  const std::int64_t size = call.in(0).last(0);
  const std::int64_t grain = 1 + 4096 / size;  // a thread is worth as many elements
  parallel_ranges(*call.threads, call.in(0).elements() / size, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(normalize_range)(call, exp, begin, end);
  });
  return ok_status();
}

}  // namespace bantam::ops::softmax_q
#endif
