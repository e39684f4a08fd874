#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/quantize/quantize_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/divisor_simd-inl.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/step_bytes_simd-inl.h"
#include "ops/common/strides.h"
#include "ops/elementwise/quantize/kernels.h"
#include "ops/elementwise/quantize/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// x / scale as StepUnits, for x within kMostSteps steps of 0. Errors are at most 0.24 u of the rounded inverse and 0.5
/// u of the sum, and without a fused multiply-add 0.24 u of the product; the rounded quotient is off by at most 0.24 u.
class QuotientSteps {
 public:
  /// Is it faster than a division? With AVX2 that takes as long as a few instructions.
  static constexpr bool kIsFaster = HWY_ARCH_ARM || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3);

  using V = StepUnits::V;
  using VF = hn::Vec<StepUnits::DF>;

  HWY_INLINE explicit QuotientSteps(float scale)
      : applies_(scale > 0x1p-60F && scale < 0x1p60F),
        inverse_(hn::Set(StepUnits::DF(), 1.0F / scale)),
        most_(hn::Set(StepUnits::DF(), static_cast<float>(kSteps) * scale)) {}

  bool applies() const { return applies_; }

  /// Of numbers that are none what means nothing.
  HWY_INLINE V operator()(VF x) const {
    const StepUnits::DF d;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    constexpr int kLesserMagnitude = 0b0010;  // with the sign of x
    const VF limited{_mm512_range_ps(x.raw, most_.raw, kLesserMagnitude)};
#else
    const VF limited = hn::Min(hn::Max(x, hn::Neg(most_)), most_);
#endif
    return StepUnits::of(hn::MulAdd(limited, inverse_, hn::Set(d, static_cast<float>(StepUnits::kConstant))));
  }

 private:
  static constexpr double kSteps = 400;  ///< beyond 255, from which on all results are the same
  static_assert(kSteps < StepUnits::kMostSteps);

  bool applies_;
  VF inverse_;
  VF most_;
};

/// Rows of numbers as steps of `scale` from the zero point. Rounds halves away from zero, or to even.
template <typename T, bool kAway>
class Quantizer {
 public:
  HWY_INLINE Quantizer(float scale, std::int32_t zero_point)
      : scale_(scale),
        zero_point_(hn::Set(Halves(), static_cast<std::int16_t>(zero_point))),
        guess_(scale),
        bytes_({zero_point, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}),
        guesses_(guess_.applies()) {}

  HWY_INLINE void row(std::size_t n, const float* x, T* y) {
    // In registers: stores of bytes might change what is in memory.
    Quantizer own = *this;
    own.quantize_row(n, x, y);
    guesses_ = own.guesses_;
  }

 private:
  using Halves = hn::ScalableTag<std::int16_t>;
  using Bytes = hn::Rebind<T, Halves>;
  using Reals = hn::Repartition<float, Halves>;
  using Words = hn::RebindToSigned<Reals>;

  HWY_INLINE void quantize_row(std::size_t n, const float* x, T* y) {
    const std::size_t lanes = hn::Lanes(Halves());
    std::size_t i = 0;
    if constexpr (QuotientSteps::kIsFaster) {
      for (; i + 2 * lanes <= n; i += 2 * lanes) four_vectors(x + i, y + i);
    } else {
      for (; i + lanes <= n; i += lanes) hn::StoreU(quantized(x + i), Bytes(), y + i);
    }
    if (i < n) quantize_end(n - i, x + i, y + i);
  }

  /// The last numbers of a row, fewer than are taken at once: through memory that so many fit in.
  HWY_INLINE void quantize_end(std::size_t n, const float* x, T* y) {
    constexpr std::size_t kMost = (QuotientSteps::kIsFaster ? 2 : 1) * hn::MaxLanes(Halves());
    HWY_ALIGN float in[kMost];
    HWY_ALIGN T result[kMost];
    const Reals d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < kMost; i += lanes) {
      const std::size_t left = n > i ? std::min(n - i, lanes) : 0;
      hn::Store(load_partial(d, x + (left > 0 ? i : 0), left), d, in + i);
    }
    if constexpr (QuotientSteps::kIsFaster) {
      four_vectors(in, result);
    } else {
      hn::StoreU(quantized(in), Bytes(), result);
    }
    store_end(result, n, y);
  }

  HWY_INLINE void four_vectors(const float* x, T* y) {
    hn::Vec<Reals> in[4];
    hn::Vec<Words> v[4];
    unroll<4>([&](auto i) HWY_ATTR { in[i] = hn::LoadU(Reals(), x + i * hn::Lanes(Reals())); });
    if (guesses_.worth_it()) {
      unroll<4>([&](auto i) HWY_ATTR { v[i] = guess_(in[i]); });
      // Infinities of both signs may look like no number.
      const auto sum = hn::Add(hn::Add(in[0], in[1]), hn::Add(in[2], in[3]));
      if (HWY_LIKELY(hn::AllTrue(Reals(), hn::Eq(sum, sum))) && bytes_.template store_sure<StepUnits>(v, y)) return;
      guesses_.failed();
    }
    unroll<4>([&](auto i) HWY_ATTR { v[i] = steps(in[i]); });
    bytes_.store(v, y);
  }

  /// Two vectors of numbers: steps that fit into 16 bits with the zero point added, hence saturated once.
  HWY_INLINE hn::Vec<Bytes> quantized(const float* x) const {
    const hn::Half<Halves> half;
    const auto low = hn::DemoteTo(half, steps(hn::LoadU(Reals(), x)));
    const auto high = hn::DemoteTo(half, steps(hn::LoadU(Reals(), x + hn::Lanes(Reals()))));
    return hn::DemoteTo(Bytes(), hn::Add(hn::Combine(Halves(), high, low), zero_point_));
  }

  /// round(x / scale); NaN counts as 0. Beyond +-1000 everything saturates, and rounding there cannot matter.
  HWY_INLINE hn::Vec<Words> steps(hn::Vec<Reals> x) const {
    const Reals d;
    const auto real = scale_.quotient(d, x);
    const auto number = hn::IfThenElseZero(hn::Eq(real, real), real);
    const auto bounded = hn::Min(hn::Max(number, hn::Set(d, -1000.0F)), hn::Set(d, 1000.0F));
    if constexpr (!kAway) return nearest_in_range(bounded);
    // Adding the number before a half rounds to the next whole number exactly where the rest is at least a half.
    const auto almost_half = hn::Set(d, 0x0.FFFFFFp-1F);
    return nearest_in_range(hn::Trunc(hn::Add(bounded, hn::CopySign(almost_half, bounded))));
  }

  Divisor scale_;
  hn::Vec<Halves> zero_point_;
  QuotientSteps guess_;
  StepBytes<T> bytes_;
  Guesses guesses_;
};

template <typename T, bool kAway>
void quantize_rows(const Invocation& invocation, const StridedRows<2>& rows) {
  const float scale = *invocation.input<float>(1);
  const std::int32_t zero_point = invocation.has(2) ? *invocation.input<T>(2) : 0;
  auto* y = invocation.output<T>();
  const auto* x = invocation.input<float>(0);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain,
                  [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                    Quantizer<T, kAway> quantizer(scale, zero_point);
                    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
                      quantizer.row(static_cast<std::size_t>(n), x + offsets[1], y + offsets[0]);
                    });
                  });
}

void run_quantize(const Invocation& invocation, const StridedRows<2>& rows) {
  dispatch_type<std::int8_t, std::uint8_t>(invocation.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (invocation.as<QuantizeParams>().round_half_away != 0) {
      quantize_rows<T, true>(invocation, rows);
    } else {
      quantize_rows<T, false>(invocation, rows);
    }
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(run_quantize);

bool supports_quantize_i8_simd(const OpCall& call) {
  return is_one_of<std::int8_t, std::uint8_t>(call.out().type) && call.in(1).elements() == 1 &&
         make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_quantize_i8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  HWY_DYNAMIC_DISPATCH(run_quantize)(invocation, rows);
  return ok_status();
}

}  // namespace bantam::ops
#endif
