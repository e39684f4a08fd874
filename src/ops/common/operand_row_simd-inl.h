// A row of an operand that may be broadcast, for elementwise kernels. Included by *_simd.cpp files inside Highway's
// per-target compilation.
#if defined(BANTAM_OPS_OPERAND_ROW_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_OPERAND_ROW_SIMD_INL_H_
#undef BANTAM_OPS_OPERAND_ROW_SIMD_INL_H_
#else
#define BANTAM_OPS_OPERAND_ROW_SIMD_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/fixed_point_simd-inl.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/common/strides.h"
#include "ops/op.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Contiguous, or one element for all.
template <typename T>
struct OperandRow {
  const T* data;
  bool moves;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::size_t i) const {
    return moves ? hn::LoadU(d, data + i) : hn::Set(d, *data);
  }

  /// int8 or uint8 elements as int32, f32 elements as they are.
  template <class D>
  HWY_INLINE auto load_number(D d, std::size_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      return load(hn::Rebind<float, D>(), i);
    } else {
      return load_wide(d, i);
    }
  }
  /// int8 or uint8 elements as int32.
  template <class D>
  HWY_INLINE hn::Vec<D> load_wide(D d, std::size_t i) const {
    return moves ? HWY_NAMESPACE::load_wide(d, data + i) : hn::Set(d, static_cast<std::int32_t>(*data));
  }
};

/// Calls f(offset of the first result, results, a, b) for rows of operands 0 and 1, of types T and TB, which cover
/// elements [begin, end) of the result. rows: of result, a, b; both operands contiguous or broadcast within them.
template <typename T, typename TB, class F>
HWY_INLINE void for_each_pair_of_rows(const Invocation& call, const StridedRows<3>& rows, std::int64_t begin,
                                      std::int64_t end, F f) {
  const auto* a = call.input<T>(0);
  const auto* b = call.input<TB>(1);
  for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
    f(offsets[0], static_cast<std::size_t>(n), OperandRow<T>{a + offsets[1], rows.contiguous(1)},
      OperandRow<TB>{b + offsets[2], rows.contiguous(2)});
  });
}

/// The elements from i on, of which there are n <= kMost, in `memory`.
template <typename T, std::size_t kMost>
HWY_INLINE OperandRow<T> tail_of(OperandRow<T> row, std::size_t i, std::size_t n, T (&memory)[kMost]) {
  if (row.moves) {
    load_end(row.data + i, n, memory);
  } else {
    *memory = *row.data;
  }
  return {memory, row.moves};
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
