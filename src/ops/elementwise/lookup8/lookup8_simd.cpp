// lookup8 with the table in registers: where the processor permutes 128 bytes (VBMI), in two halves, with AVX2 in
// sixteen parts. Other processors look bytes up one by one, which is no slower there.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/lookup8/lookup8_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/lookup8/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
using D8 = hn::CappedTag<std::uint8_t, 64>;

class Table {
 public:
  explicit Table(const std::uint8_t* table) {
    for (int i = 0; i < 4; ++i) part_[i] = hn::LoadU(D8(), table + 64 * i);
  }
  HWY_INLINE hn::Vec<D8> operator()(hn::Vec<D8> x) const {
    const auto low = _mm512_permutex2var_epi8(part_[0].raw, x.raw, part_[1].raw);
    const auto high = _mm512_permutex2var_epi8(part_[2].raw, x.raw, part_[3].raw);
    return hn::Vec<D8>{_mm512_mask_mov_epi8(low, _mm512_movepi8_mask(x.raw), high)};
  }

 private:
  hn::Vec<D8> part_[4];
};
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
using D8 = hn::CappedTag<std::uint8_t, 32>;

class Table {
 public:
  explicit Table(const std::uint8_t* table) {
    for (int i = 0; i < 16; ++i) part_[i] = hn::LoadDup128(D8(), table + 16 * i);
  }
  /// A part's bytes for what has its upper digit, zeros for others.
  HWY_INLINE hn::Vec<D8> operator()(hn::Vec<D8> x) const {
    const D8 d;
    auto y = hn::Zero(d);
    for (int i = 0; i < 16; ++i) {
      const auto digit = hn::Xor(x, hn::Set(d, static_cast<std::uint8_t>(16 * i)));
      y = hn::Or(y, hn::TableLookupBytesOr0(part_[i], hn::SaturatedAdd(digit, hn::Set(d, std::uint8_t{0x70}))));
    }
    return y;
  }

 private:
  hn::Vec<D8> part_[16];
};
#endif

/// y may be x.
void lookup_row(const std::uint8_t* table, const std::uint8_t* x, std::int64_t n, std::uint8_t* y) {
  std::int64_t i = 0;
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2)
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D8()));
  if (n >= lanes) {
    const Table in_registers(table);
    for (; i + lanes <= n; i += lanes) hn::StoreU(in_registers(hn::LoadU(D8(), x + i)), D8(), y + i);
  }
#endif
  for (; i < n; ++i) y[i] = table[x[i]];
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(lookup_row);

bool supports_lookup8_simd(const OpCall& call) {
  return make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

Status run_lookup8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  const auto lookup = HWY_DYNAMIC_DISPATCH(lookup_row);
  const auto* table = invocation.input<std::uint8_t>(1);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      lookup(table, invocation.input<std::uint8_t>(0) + offsets[1], n, invocation.output<std::uint8_t>() + offsets[0]);
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
#endif
