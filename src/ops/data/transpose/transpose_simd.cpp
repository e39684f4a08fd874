// Transposition through registers: blocks of 16 bytes of as many rows as an element has places in them become columns
// by interleaving. Where the innermost dimension stays, its rows are copied whole.
#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/data/transpose/transpose_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/data/transpose/kernels.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// A matrix: its rows are contiguous in the operand, its columns in the result.
struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t from_row;   ///< elements between rows of the operand
  std::int64_t to_column;  ///< elements between columns of the result
};

/// The transposed blocks of v[0 ... N-1], N elements each: every stage deals the vectors like a deck of cards.
template <int kStage, int N, class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_vectors(D d, V (&v)[N]) {
  if constexpr (kStage < N) {
    V dealt[N];
    unroll<N / 2>([&](auto i) HWY_ATTR {
      dealt[2 * i] = hn::InterleaveLower(d, v[i], v[i + N / 2]);
      dealt[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + N / 2]);
    });
    unroll<N>([&](auto i) HWY_ATTR { v[i] = dealt[i]; });
    transpose_vectors<2 * kStage, N>(d, v);
  }
}

/// Two blocks, of rows so far apart, in one vector.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* from, std::int64_t apart) {
  const hn::Half<D> half;
  return hn::Combine(d, hn::LoadU(half, from + apart), hn::LoadU(half, from));
}

/// kBlocks * N rows of N columns.
template <int kBlocks, int N, typename T>
HWY_INLINE void transpose_tile(const Matrix& m, const T* from, T* to) {
  const hn::CappedTag<T, kBlocks * N> d;
  hn::Vec<decltype(d)> v[N];
  unroll<N>([&](auto i) HWY_ATTR {
    if constexpr (kBlocks == 1) {
      v[i] = hn::LoadU(d, from + i * m.from_row);
    } else {
      v[i] = load_blocks(d, from + i * m.from_row, N * m.from_row);
    }
  });
  transpose_vectors<1>(d, v);
  unroll<N>([&](auto i) HWY_ATTR { hn::StoreU(v[i], d, to + i * m.to_column); });
}

/// How tiles follow each other: along the operand's rows, along its columns, or along columns of the height of one
/// cache line of the result.
enum class Order { kAlongRows, kAlongColumns, kBlocks };

/// Along the operand's rows as long as the first-level cache keeps the lines of the result that a strip crosses until
/// they are used up: a multiple of 1 KiB apart they lie in few of its sets. Then along its columns, if those of the
/// operand are kept.
template <typename T>
Order order_of(const Matrix& m) {
  const auto stays = [](std::int64_t apart) { return apart * static_cast<std::int64_t>(sizeof(T)) % 1024 != 0; };
  if (stays(m.to_column)) return Order::kAlongRows;
  return stays(m.from_row) ? Order::kAlongColumns : Order::kBlocks;
}

/// Tiles that cover the matrix, which is no smaller than one; the last ones reach back over those before them.
template <int kBlocks, int N, typename T>
HWY_INLINE void cover_with_tiles(const Matrix& m, const T* from, T* to) {
  constexpr std::int64_t kRows = kBlocks * N;
  constexpr std::int64_t kLine = std::max<std::int64_t>(64 / static_cast<std::int64_t>(sizeof(T)), kRows);
  const auto tile = [&](std::int64_t row, std::int64_t column) HWY_ATTR {
    const std::int64_t r = std::min(row, m.rows - kRows);
    const std::int64_t c = std::min(column, m.columns - N);
    transpose_tile<kBlocks, N>(m, from + r * m.from_row + c, to + c * m.to_column + r);
  };
  const auto along_columns = [&](std::int64_t first, std::int64_t end) HWY_ATTR {
    for (std::int64_t column = 0; column < m.columns; column += N)
      for (std::int64_t row = first; row < end; row += kRows) tile(row, column);
  };
  switch (order_of<T>(m)) {
    case Order::kAlongRows:
      for (std::int64_t row = 0; row < m.rows; row += kRows)
        for (std::int64_t column = 0; column < m.columns; column += N) tile(row, column);
      return;
    case Order::kAlongColumns: return along_columns(0, m.rows);
    case Order::kBlocks:
      for (std::int64_t row = 0; row < m.rows; row += kLine) along_columns(row, std::min(row + kLine, m.rows));
  }
}

/// Columns of one row, or rows of one column.
template <typename T>
void transpose_line(const Matrix& m, const T* from, T* to) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t c = 0; c < m.columns; ++c)
      std::memcpy(to + c * m.to_column + r, from + r * m.from_row + c, sizeof(T));
}

/// By tiles of at most N elements a side, as large as the matrix allows.
template <int N, typename T>
HWY_INLINE void transpose_small(const Matrix& m, const T* from, T* to) {
  if constexpr (N < 2) {
    transpose_line(m, from, to);
  } else if (m.rows >= N && m.columns >= N) {
    if constexpr (hn::MaxLanes(hn::CappedTag<T, 2 * N>()) == 2 * N && N * sizeof(T) == 16) {
      if (m.rows >= 2 * N) return cover_with_tiles<2, N>(m, from, to);
    }
    cover_with_tiles<1, N>(m, from, to);
  } else {
    transpose_small<N / 2>(m, from, to);
  }
}

/// Few rows, such as the channels of a picture, to one sequence of their elements in turn.
template <int kRows, class D, typename T>
HWY_INLINE void interleave(D d, const Matrix& m, const T* from, T* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < m.columns; column += lanes) {
    const std::int64_t c = std::min(column, m.columns - lanes);
    const auto row = [&](int i) HWY_ATTR { return hn::LoadU(d, from + i * m.from_row + c); };
    if constexpr (kRows == 2) hn::StoreInterleaved2(row(0), row(1), d, to + c * kRows);
    if constexpr (kRows == 3) hn::StoreInterleaved3(row(0), row(1), row(2), d, to + c * kRows);
    if constexpr (kRows == 4) hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, to + c * kRows);
  }
}

/// And back: few columns.
template <int kColumns, class D, typename T>
HWY_INLINE void deinterleave(D d, const Matrix& m, const T* from, T* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < m.rows; row += lanes) {
    const std::int64_t r = std::min(row, m.rows - lanes);
    hn::Vec<decltype(d)> v[4];
    if constexpr (kColumns == 2) hn::LoadInterleaved2(d, from + r * kColumns, v[0], v[1]);
    if constexpr (kColumns == 3) hn::LoadInterleaved3(d, from + r * kColumns, v[0], v[1], v[2]);
    if constexpr (kColumns == 4) hn::LoadInterleaved4(d, from + r * kColumns, v[0], v[1], v[2], v[3]);
    unroll<kColumns>([&](auto i) HWY_ATTR { hn::StoreU(v[i], d, to + i * m.to_column + r); });
  }
}

/// Calls f(d) for the widest vectors of at least 16 bytes that have no more than `count` lanes. False when none has.
template <class D, class F>
HWY_INLINE bool with_lanes_up_to(D d, std::int64_t count, F f) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) {
    f(d);
    return true;
  }
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) > 16) return with_lanes_up_to(hn::Half<D>(), count, f);
  return false;
}

/// True when the narrow side is dense and so short that whole vectors run along the other one.
template <int kNarrow, typename T>
HWY_INLINE bool transposed_narrow(const Matrix& m, const Box::Level& repeat, const T* from, T* to) {
  const bool rows = m.rows == kNarrow && m.to_column == kNarrow;
  if (!rows && (m.columns != kNarrow || m.from_row != kNarrow)) return false;
  return with_lanes_up_to(hn::ScalableTag<T>(), rows ? m.columns : m.rows, [&](auto d) HWY_ATTR {
    for (std::int64_t i = 0; i < repeat.size; ++i, from += repeat.source, to += repeat.destination)
      rows ? interleave<kNarrow>(d, m, from, to) : deinterleave<kNarrow>(d, m, from, to);
  });
}

/// `repeat`: so many such matrices, each so far behind the one before.
template <typename T>
void transpose_part(const Matrix& m, const Box::Level& repeat, const T* from, T* to) {
  if (transposed_narrow<2>(m, repeat, from, to) || transposed_narrow<3>(m, repeat, from, to) ||
      transposed_narrow<4>(m, repeat, from, to))
    return;
  for (std::int64_t i = 0; i < repeat.size; ++i)
    transpose_small<16 / sizeof(T)>(m, from + i * repeat.source, to + i * repeat.destination);
}

/// Parts of a matrix have sides of at least so many elements, if it has: cache lines on both sides are used up while
/// they are in the first-level cache.
template <typename T>
constexpr std::int64_t kSide = std::max<std::int64_t>(64 / sizeof(T), 16);

/// Columns [begin, end) or rows [begin, end) of the matrix.
template <typename T>
void transpose_strip(Matrix m, bool by_columns, std::int64_t begin, std::int64_t end, const T* from, T* to) {
  constexpr Box::Level kOnce{};
  const std::int64_t across = by_columns ? m.rows : m.columns;
  from += by_columns ? begin : begin * m.from_row;
  to += by_columns ? begin * m.to_column : begin;
  (by_columns ? m.columns : m.rows) = end - begin;
  std::int64_t& size = by_columns ? m.rows : m.columns;
  for (std::int64_t at = 0; at < across; at += size) {
    size = across - at < 2 * kSide<T> ? across - at : kSide<T>;
    transpose_part(m, kOnce, from + (by_columns ? at * m.from_row : at), to + (by_columns ? at : at * m.to_column));
  }
}

/// Matrices so small that each is one part: those that the innermost level repeats go one after the other.
template <typename T>
void transpose_parts(const Threads& threads, Box outer, const Matrix& m, const std::byte* from, std::byte* to) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t grain = std::max<std::int64_t>(kElementwiseGrain / (m.rows * m.columns), 1);
  const Box::Level level = outer.rank > 0 ? take_level(&outer, outer.rank - 1) : Box::Level{};
  parallel_ranges(threads, iterations(outer) * level.size, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = (end + level.size - 1) / level.size;
    for_iterations(outer, kBytes, begin / level.size, last, [&](std::int64_t source, std::int64_t destination) {
      const std::int64_t first = begin % level.size;
      const Box::Level repeat{std::min(end - begin, level.size - first), level.source, level.destination};
      transpose_part(m, repeat, reinterpret_cast<const T*>(from + source) + first * level.source,
                     reinterpret_cast<T*>(to + destination) + first * level.destination);
      begin += repeat.size;
    });
  });
}

/// The matrices that the levels around them repeat.
template <typename T>
void transpose_matrices(const Threads& threads, const Box& outer, const Matrix& m, const std::byte* from,
                        std::byte* to) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const bool by_columns = m.columns >= m.rows;
  const std::int64_t length = by_columns ? m.columns : m.rows;
  const std::int64_t across = by_columns ? m.rows : m.columns;
  // A strip takes several cache lines of each row, since the next ones are fetched ahead; that of a narrow matrix is
  // longer. The last strip is the longest, so that none is much shorter than the others.
  const std::int64_t step = across < kSide<T> ? kSide<T> * kSide<T> / across : 4 * kSide<T>;
  const std::int64_t strips = std::max<std::int64_t>(length / step, 1);
  if (strips == 1 && across < 2 * kSide<T>) return transpose_parts<T>(threads, outer, m, from, to);
  const std::int64_t grain = std::max<std::int64_t>(kElementwiseGrain / (std::min(step, length) * across), 1);
  parallel_ranges(threads, iterations(outer) * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t strip = begin;
    for_iterations(
        outer, kBytes, begin / strips, (end + strips - 1) / strips, [&](std::int64_t source, std::int64_t destination) {
          const std::int64_t first = strip / strips * strips;
          for (; strip < std::min(end, first + strips); ++strip) {
            const std::int64_t i = strip - first;
            transpose_strip(m, by_columns, i * step, i + 1 == strips ? length : (i + 1) * step,
                            reinterpret_cast<const T*>(from + source), reinterpret_cast<T*>(to + destination));
          }
        });
  });
}

/// Without a call where rows are short.
HWY_INLINE void copy_row(std::size_t n, const std::byte* from, std::byte* to) {
  const hn::CappedTag<std::uint8_t, 16> d;
  constexpr std::size_t kShort = 256;
  const std::size_t lanes = hn::Lanes(d);
  if (n < lanes || n > kShort) {
    std::memcpy(to, from, n);
    return;
  }
  const auto* in = reinterpret_cast<const std::uint8_t*>(from);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  for (std::size_t i = 0; i + lanes < n; i += lanes) hn::StoreU(hn::LoadU(d, in + i), d, out + i);
  hn::StoreU(hn::LoadU(d, in + n - lanes), d, out + n - lanes);
}

void copy_rows(const Threads& threads, const Box& outer, std::int64_t length, std::int64_t bytes, const std::byte* from,
               std::byte* to) {
  const auto n = static_cast<std::size_t>(length * bytes);
  const std::int64_t grain = std::max<std::int64_t>(kElementwiseGrain / length, 1);
  parallel_ranges(threads, iterations(outer), grain, [&](std::int64_t begin, std::int64_t end) {
    for_iterations(outer, bytes, begin, end, [&](std::int64_t source, std::int64_t destination) HWY_ATTR {
      copy_row(n, from + source, to + destination);
    });
  });
}

/// Rows that stay together and are as long as an element of another size are such elements.
std::int64_t widen_elements(Box* box, std::int64_t bytes) {
  const Box::Level row = box->levels[box->rank - 1];
  const std::int64_t wide = row.size * bytes;
  if (row.source != 1 || (wide != 2 && wide != 4 && wide != 8)) return bytes;
  for (int i = 0; i + 1 < box->rank; ++i)
    if (box->levels[i].source % row.size != 0 || box->levels[i].destination % row.size != 0) return bytes;
  take_level(box, box->rank - 1);
  for (int i = 0; i < box->rank; ++i) {
    box->levels[i].source /= row.size;
    box->levels[i].destination /= row.size;
  }
  return wide;
}

void run_transpose(const Invocation& call, Box box) {
  std::int64_t bytes = element_size(call.out().type);
  const auto* from = call.input<std::byte>(0);
  auto* to = call.output<std::byte>();
  const Box narrow = box;
  const std::int64_t wide = widen_elements(&box, bytes);
  if (find_contiguous_source(box) >= 0 && box.levels[box.rank - 1].destination == 1) {
    bytes = wide;
  } else {
    box = narrow;
  }
  const int contiguous = find_contiguous_source(box);
  const Box::Level row = take_level(&box, box.rank - 1);
  if (row.source == 1) {
    copy_rows(*call.threads, box, row.size, bytes, from, to);
    return;
  }
  const Box::Level along = take_level(&box, contiguous);
  const Matrix m{row.size, along.size, row.source, along.destination};
  dispatch_size(bytes,
                [&](auto tag) { transpose_matrices<typename decltype(tag)::type>(*call.threads, box, m, from, to); });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::transpose {

HWY_EXPORT(run_transpose);

bool supports_tiles(const OpCall& call) {
  Box box = make_moves(call.as<TransposeParams>(), call.in(0), call.out());
  if (!simplify(&box) || box.rank == 0) return false;
  const Box::Level& row = box.levels[box.rank - 1];
  return row.destination == 1 && (row.source == 1 || find_contiguous_source(box) >= 0);
}

Status run_tiles(const Invocation& call) {
  Box box = make_moves(call.as<TransposeParams>(), call.in(0), call.out());
  simplify(&box);
  HWY_DYNAMIC_DISPATCH(run_transpose)(call, box);
  return ok_status();
}

}  // namespace bantam::ops::transpose
#endif
