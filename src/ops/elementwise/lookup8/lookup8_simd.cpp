// lookup8 with vectors: where the processor permutes 128 bytes (VBMI), the table is in registers in two halves, and
// vectors need not be whole; on 64-bit Arm it is in four parts of 64 bytes; with AVX2 in sixteen parts of sixteen
// bytes, but for those that have nothing but the first byte: a rectifier's table is half as much work; lines need no
// table (line_avx2-inl.h). Other processors look bytes up one by one, which is no slower there. Tables are packed with
// the line that they are, if any.
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/lookup8/lookup8_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/short_copy.h"
#include "ops/common/strides.h"
#include "ops/elementwise/lookup8/kernels.h"
#include "ops/elementwise/lookup8/line_avx2-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

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
  template <int kVectors>
  HWY_INLINE void look_up(const std::uint8_t* x, std::uint8_t* y) const {
    unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(bytes(hn::LoadU(D8(), x + 64 * v)), D8(), y + 64 * v); });
  }
  /// Of n < 64 bytes.
  HWY_INLINE void look_up_part(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const {
    const __mmask64 mask = (__mmask64{1} << n) - 1;
    look_up_some(_mm512_maskz_loadu_epi8(mask, x), mask, y);
  }
  /// Those of x whose bits are set, to their places in y.
  HWY_INLINE void look_up_some(__m512i x, __mmask64 bits, std::uint8_t* y) const {
    _mm512_mask_storeu_epi8(y, bits, bytes(hn::Vec<D8>{x}).raw);
  }

 private:
  HWY_INLINE hn::Vec<D8> bytes(hn::Vec<D8> x) const {
    const auto low = _mm512_permutex2var_epi8(part_[0].raw, x.raw, part_[1].raw);
    const auto high = _mm512_permutex2var_epi8(part_[2].raw, x.raw, part_[3].raw);
    return hn::Vec<D8>{_mm512_mask_mov_epi8(low, _mm512_movepi8_mask(x.raw), high)};
  }

  hn::Vec<D8> part_[4];
};
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
using D8 = hn::CappedTag<std::uint8_t, 32>;

class Table {
 public:
  explicit Table(const std::uint8_t* table) : first_(hn::Set(D8(), table[0])) {
    const D8 d;
    for (int i = 0; i < 16; ++i) {
      part_[parts_] = hn::Xor(hn::LoadDup128(d, table + 16 * i), first_);
      digit_[parts_] = hn::Set(d, static_cast<std::uint8_t>(16 * i));
      if (!hn::AllTrue(d, hn::Eq(part_[parts_], hn::Zero(d)))) ++parts_;
    }
  }

  /// In each part, what has its upper digit is looked up, and zeros for others.
  template <int kVectors>
  HWY_INLINE void look_up(const std::uint8_t* x, std::uint8_t* y) const {
    const D8 d;
    hn::Vec<D8> from[kVectors];
    hn::Vec<D8> to[kVectors];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      from[v] = hn::LoadU(d, x + 32 * v);
      to[v] = first_;
    });
    for (int i = 0; i < parts_; ++i) {
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const auto digit = hn::SaturatedAdd(hn::Xor(from[v], digit_[i]), hn::Set(d, std::uint8_t{0x70}));
        to[v] = hn::Xor(to[v], hn::TableLookupBytesOr0(part_[i], digit));
      });
    }
    unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(to[v], d, y + 32 * v); });
  }

 private:
  hn::Vec<D8> part_[16];   ///< xor the first byte
  hn::Vec<D8> digit_[16];  ///< upper digits of what is in them
  hn::Vec<D8> first_;
  int parts_ = 0;
};
#elif HWY_ARCH_ARM_A64
class Table {
 public:
  static constexpr std::int64_t kBytes = 16;

  explicit Table(const std::uint8_t* table) {
    for (int i = 0; i < 4; ++i) part_[i] = vld1q_u8_x4(table + 64 * i);
  }

  /// A part leaves bytes as they are where the place is not within it.
  HWY_INLINE uint8x16_t operator()(uint8x16_t x) const {
    const uint8x16_t part = vdupq_n_u8(64);
    uint8x16_t y = vqtbl4q_u8(part_[0], x);
    unroll<3>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      x = vsubq_u8(x, part);
      y = vqtbx4q_u8(y, part_[i + 1], x);
    });
    return y;
  }

 private:
  uint8x16x4_t part_[4];
};
#else
class Table {
 public:
  explicit Table(const std::uint8_t* /*table*/) {}
};
#endif

/// Looks rows up in a table.
class TableRows {
 public:
  /// Shorter ones are best looked up together.
  static constexpr std::int64_t kLong = HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3_DL ? 0 : HWY_ARCH_ARM_A64 ? 16 : 128;

  TableRows(const std::uint8_t* table, const Table& in_vectors) : table_(table), in_vectors_(in_vectors) {}

  /// y may be x.
  HWY_INLINE void operator()(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const {
    std::int64_t i = 0;
#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2)
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(D8()));
    constexpr int kAtOnce = 4;
    for (; i + kAtOnce * lanes <= n; i += kAtOnce * lanes) in_vectors_.look_up<kAtOnce>(x + i, y + i);
    for (; i + lanes <= n; i += lanes) in_vectors_.look_up<1>(x + i, y + i);
#if HWY_TARGET == HWY_AVX3_DL
    if (i < n) return in_vectors_.look_up_part(x + i, n - i, y + i);
#endif
#elif HWY_ARCH_ARM_A64
    if (n >= Table::kBytes) {
      // The last bytes are looked up before others are written over them.
      const Table in_vectors = in_vectors_;
      const std::int64_t last_at = n - Table::kBytes;
      const uint8x16_t last = in_vectors(vld1q_u8(x + last_at));
      for (; i < last_at; i += Table::kBytes) vst1q_u8(y + i, in_vectors(vld1q_u8(x + i)));
      vst1q_u8(y + last_at, last);
      return;
    }
#else
    static_cast<void>(in_vectors_);
#endif
    for (; i < n; ++i) y[i] = table_[x[i]];
  }

 private:
  const std::uint8_t* table_;
  const Table& in_vectors_;
};

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
/// Computes rows of a line.
template <int kWhole>
class LineRows {
 public:
  using Vector = LineVector<kWhole>;
  static constexpr std::int64_t kLong = Vector::kBytes;

  LineRows(const std::uint8_t* table, const Line& line) : table_(table), line_(line) {}

  /// y may be x.
  HWY_INLINE void operator()(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) const {
    if (n < kLong) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = table_[x[i]];
      return;
    }
    // The last bytes are computed before others are written over them.
    const Vector line = line_;
    const auto last = line(Vector::load(x + n - kLong));
    for (std::int64_t i = 0; i + kLong <= n; i += kLong) Vector::store(line(Vector::load(x + i)), y + i);
    Vector::store(last, y + n - kLong);
  }

 private:
  const std::uint8_t* table_;
  Vector line_;
};
#endif

/// Rows too short for vectors, several of which are looked up together.
template <class Rows>
class ShortRows {
 public:
  explicit ShortRows(const Rows& look_up) : look_up_(look_up) {}

  void add(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) {
    if (count_ == kMostRows || bytes_ + n > kMostBytes) look_up();
    copy_short(x, n, buffer_ + bytes_);
    rows_[count_++] = {y, n};
    bytes_ += n;
  }

  /// All that were added.
  void look_up() {
    look_up_(buffer_, bytes_, buffer_);
    const std::uint8_t* from = buffer_;
    for (std::int64_t i = 0; i < count_; from += rows_[i++].bytes) copy_short(from, rows_[i].bytes, rows_[i].y);
    count_ = bytes_ = 0;
  }

 private:
  struct Row {
    std::uint8_t* y;
    std::int64_t bytes;
  };
  static constexpr std::int64_t kMostRows = 64;
  static constexpr std::int64_t kMostBytes = 1024;

  const Rows& look_up_;
  std::int64_t count_ = 0;
  std::int64_t bytes_ = 0;
  Row rows_[kMostRows];
  HWY_ALIGN std::uint8_t buffer_[kMostBytes];
};

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
/// Rows shorter than a vector, each `step` bytes behind the one before in y, and in x as well or one behind the other.
struct SpreadRows {
  std::int64_t bytes;
  std::int64_t step;
  bool dense_x;

  /// Are these such rows?
  static bool fit(const StridedRows<2>& rows) {
    const auto& steps = rows.outer_strides[0];
    return rows.outer_rank == 1 && rows.row_length < 64 && steps[0] > rows.row_length &&
           (steps[1] == steps[0] || steps[1] == rows.row_length);
  }

  /// `count` > 0 rows. Several are looked up together: what is between them in y stays as it is. Row by row, each load
  /// would wait for the store before, since either may touch 64 bytes.
  void look_up(const Table& in_vectors, const std::uint8_t* x, std::int64_t count, std::uint8_t* y) const {
    const std::uint64_t row = (std::uint64_t{1} << bytes) - 1;
    std::uint64_t pattern = 0;  // of vectors that begin with a row
    for (std::int64_t at = 0; at < 64; at += step) pattern |= row << at;
    const std::int64_t end = (count - 1) * step + bytes;
    // Whole lines of the cache: a masked store to two of them takes longer.
    const auto head = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(y) % 64);
    std::int64_t phase = (step - head % step) % step;  // places between the begin of a row and that of a vector
    for (std::int64_t i = -head; i < end; i += 64) {
      const std::int64_t next = step - phase;
      std::uint64_t bits = (phase < 64 ? pattern >> phase : 0) | (next < 64 ? pattern << next : 0);
      if (i < 0) bits &= ~std::uint64_t{0} << -i;
      if (end - i < 64) bits &= (std::uint64_t{1} << (end - i)) - 1;
      phase = (phase + 64) % step;
      if (bits == 0) continue;
      if (!dense_x) {
        in_vectors.look_up_some(_mm512_maskz_loadu_epi8(bits, x + i), bits, y + i);
        continue;
      }
      const int loaded = __builtin_popcountll(bits);
      const __m512i some = _mm512_maskz_loadu_epi8(~std::uint64_t{0} >> (64 - loaded), x);
      in_vectors.look_up_some(_mm512_maskz_expand_epi8(bits, some), bits, y + i);
      x += loaded;
    }
  }
};
#endif

/// Elements [begin, end).
template <class Rows>
void look_up_segments(const Rows& look_up, const StridedRows<2>& rows, std::int64_t begin, std::int64_t end,
                      const std::uint8_t* x, std::uint8_t* y) {
  if (rows.row_length < Rows::kLong && rows.outer_rank > 0) {
    ShortRows<Rows> short_rows(look_up);
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) HWY_ATTR {
      short_rows.add(x + offsets[1], n, y + offsets[0]);
    });
    return short_rows.look_up();
  }
  for_each_segment(rows, begin, end,
                   [&](const auto& offsets, std::int64_t n) HWY_ATTR { look_up(x + offsets[1], n, y + offsets[0]); });
}

void look_up_range(const Invocation& invocation, const StridedRows<2>& rows, std::int64_t begin, std::int64_t end) {
  const auto& packed = *invocation.input<PackedTable>(1);
  const std::uint8_t* table = packed.entries;
  const auto* x = invocation.input<std::uint8_t>(0);
  auto* y = invocation.output<std::uint8_t>();
#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
  if (const Line line = packed.line; line.exists()) {
    static_assert(Line::kSlopes == 3);
    if (line.slope < Line::kOne) return look_up_segments(LineRows<0>(table, line), rows, begin, end, x, y);
    if (line.slope < 2 * Line::kOne) return look_up_segments(LineRows<1>(table, line), rows, begin, end, x, y);
    return look_up_segments(LineRows<2>(table, line), rows, begin, end, x, y);
  }
#endif
  const Table in_vectors(table);
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
  if (SpreadRows::fit(rows)) {
    const std::int64_t length = rows.row_length;
    const auto& steps = rows.outer_strides[0];
    const std::int64_t first = (begin + length - 1) / length;
    const std::int64_t last = end / length;
    if (first < last) {
      const SpreadRows spread{length, steps[0], steps[1] == length};
      spread.look_up(in_vectors, x + first * steps[1], last - first, y + first * steps[0]);
      look_up_range(invocation, rows, begin, first * length);
      look_up_range(invocation, rows, last * length, end);
      return;
    }
  }
#endif
  look_up_segments(TableRows(table, in_vectors), rows, begin, end, x, y);
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(look_up_range);

bool supports_lookup8_simd(const OpCall& call) {
  return call.inputs[1].data != nullptr && make_rows<2>(call.out(), {&call.out(), &call.in(0)}).all_contiguous();
}

std::int64_t packed_bytes_lookup8_simd(const OpCall& /*call*/, int input) {
  return input == 1 ? static_cast<std::int64_t>(sizeof(PackedTable)) : 0;
}

void pack_lookup8_simd(const OpCall& call, int /*input*/, std::byte* destination) {
  const auto flip = [](ElementType type) -> std::uint8_t { return type == ElementType::kI8 ? 0x80 : 0; };
  const auto* table = static_cast<const std::uint8_t*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<PackedTable*>(destination);
  std::copy_n(table, 256, packed->entries);
  packed->line = find_line(table, flip(call.in(0).type), flip(call.in(1).type));
}

Status run_lookup8_simd(const Invocation& invocation) {
  const auto rows = make_rows<2>(invocation.out(), {&invocation.out(), &invocation.in(0)});
  const auto look_up = HWY_DYNAMIC_DISPATCH(look_up_range);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain,
                  [&](std::int64_t begin, std::int64_t end) { look_up(invocation, rows, begin, end); });
  return ok_status();
}

}  // namespace bantam::ops
#endif
