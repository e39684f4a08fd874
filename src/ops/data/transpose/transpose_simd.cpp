// Transposition through registers: blocks of 16 bytes of as many rows as an element has places in them become columns
// by interleaving, those of a cache line of the result together. Where the innermost dimension stays, its rows are
// copied whole.
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
    unroll<N / 2>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
      dealt[2 * i] = hn::InterleaveLower(d, v[i], v[i + N / 2]);
      dealt[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + N / 2]);
    });
    unroll<N>([&](auto i) __attribute__((always_inline)) HWY_ATTR { v[i] = dealt[i]; });
    transpose_vectors<2 * kStage, N>(d, v);
  }
}

/// kBlocks blocks, of rows so far apart, in one vector.
template <int kBlocks, class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* from, std::int64_t apart) {
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks<kBlocks / 2>(half, from + kBlocks / 2 * apart, apart),
                       load_blocks<kBlocks / 2>(half, from, apart));
  }
}

/// kRows rows of N columns, in vectors of several blocks of N rows.
template <int kRows, int N, typename T>
HWY_INLINE void transpose_tile(Matrix m, const T* from, T* to) {
  constexpr int kLanes = hn::MaxLanes(hn::CappedTag<T, kRows>());
  static_assert(kLanes % N == 0);
  const hn::CappedTag<T, kRows> d;
  for (int row = 0; row < kRows; row += kLanes, from += kLanes * m.from_row, to += kLanes) {
    hn::Vec<decltype(d)> v[N];
    unroll<N>([&](auto i) __attribute__((always_inline))
              HWY_ATTR { v[i] = load_blocks<kLanes / N>(d, from + i * m.from_row, N * m.from_row); });
    transpose_vectors<1>(d, v);
    unroll<N>([&](auto i) __attribute__((always_inline)) HWY_ATTR { hn::StoreU(v[i], d, to + i * m.to_column); });
  }
}

/// Elements of a cache line.
template <typename T>
constexpr std::int64_t kLine = 64 / sizeof(T);

/// kRows rows, by tiles of N columns, the last of which reaches back over the one before. Where rows fill lines of the
/// result, these are written at once, and those of the operand are used up while the first-level cache has them. What
/// comes next is fetched two lines ahead: there are more rows than streams that a processor follows by itself.
template <int kRows, int N, typename T>
HWY_INLINE void transpose_rows(Matrix m, const T* from, T* to) {
  constexpr std::int64_t kAhead = 2 * kLine<T>;
  for (std::int64_t column = 0; column < m.columns; column += N) {
    if (kRows >= kLine<T> && column % kLine<T> == 0 && column + kAhead < m.columns)
      unroll<kRows>([&](auto i) HWY_ATTR { __builtin_prefetch(from + i * m.from_row + column + kAhead); });
    const std::int64_t c = std::min(column, m.columns - N);
    transpose_tile<kRows, N>(m, from + c, to + c * m.to_column);
  }
}

/// Strips of kRows rows, what is left in narrower ones; the last of N may reach back over those before. Requires N rows
/// at least, and N columns.
template <int kRows, int N, typename T>
HWY_INLINE void cover_rows(Matrix m, const T* from, T* to) {
  const std::int64_t end = kRows > N ? m.rows / kRows * kRows : m.rows;
  for (std::int64_t row = 0; row < end; row += kRows) {
    const std::int64_t r = std::min(row, m.rows - kRows);
    transpose_rows<kRows, N>(m, from + r * m.from_row, to + r);
  }
  if constexpr (kRows > N) {
    if (end == m.rows) return;
    const std::int64_t first = std::min(end, m.rows - N);
    cover_rows<kRows / 2, N>({m.rows - first, m.columns, m.from_row, m.to_column}, from + first * m.from_row,
                             to + first);
  }
}

/// Are lines that lie so far apart in one of so many sets of the first-level cache? With 64 sets, as most have.
template <typename T>
bool meet_in_sets(std::int64_t apart, std::int64_t sets) {
  return apart * static_cast<std::int64_t>(sizeof(T)) % (4096 / sets) == 0;
}

/// How a matrix is cut: parts of all columns of some rows, which are cut along the columns.
struct Parts {
  std::int64_t rows;
  std::int64_t columns;
  bool halves;  ///< half a line of the result is written each time
};

/// Columns so few that the lines of the result are in the caches when the next rows add to them. Where these meet, one
/// of few columns is written for several lines; where the operand's do, fewer rows share the cache.
template <typename T>
Parts parts_of(const Matrix& m) {
  constexpr std::int64_t kMostRows = kLine<T>;
  if (meet_in_sets<T>(m.to_column, 2)) {
    if (meet_in_sets<T>(m.from_row, 4)) return {m.rows, kLine<T>, false};
    return {4 * kLine<T>, 1, false};
  }
  if (meet_in_sets<T>(m.from_row, std::max<std::int64_t>(kMostRows / 16, 1))) return {m.rows, 4 * kLine<T>, true};
  return {m.rows, 16 * kLine<T>, false};
}

/// Calls f(begin, size) for parts of `step`, the last of which is the longest.
template <typename F>
HWY_INLINE void for_parts(std::int64_t size, std::int64_t step, F f) {
  for (std::int64_t at = 0; at < size;) {
    const std::int64_t part = size - at < 2 * step ? size - at : step;
    f(at, part);
    at += part;
  }
}

template <int N, typename T>
HWY_INLINE void cover_with_tiles(const Matrix& m, const T* from, T* to) {
  constexpr int kRows = N * sizeof(T) == 16 ? kLine<T> : N;
  const Parts parts = parts_of<T>(m);
  for_parts(m.rows, std::max<std::int64_t>(parts.rows, kRows), [&](std::int64_t row, std::int64_t rows) HWY_ATTR {
    for_parts(m.columns, std::max<std::int64_t>(parts.columns, N),
              [&](std::int64_t column, std::int64_t columns) HWY_ATTR {
                const Matrix part{rows, columns, m.from_row, m.to_column};
                const T* source = from + row * m.from_row + column;
                T* destination = to + column * m.to_column + row;
                if constexpr (kRows > N) {
                  if (parts.halves) return cover_rows<kRows / 2, N>(part, source, destination);
                }
                cover_rows<kRows, N>(part, source, destination);
              });
  });
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
    cover_with_tiles<N>(m, from, to);
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

/// Threads share a matrix by parts of a side of so many elements, which fill lines of the operand or the result.
template <typename T>
constexpr std::int64_t kSide = std::max<std::int64_t>(64 / sizeof(T), 16);

/// Columns [begin, end) or rows [begin, end) of the matrix.
template <typename T>
void transpose_strip(Matrix m, bool by_columns, std::int64_t begin, std::int64_t end, const T* from, T* to) {
  (by_columns ? m.columns : m.rows) = end - begin;
  transpose_part(m, Box::Level{}, from + (by_columns ? begin : begin * m.from_row),
                 to + (by_columns ? begin * m.to_column : begin));
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
  // Strips of several cache lines; those of a narrow matrix are longer.
  const std::int64_t step = across < kSide<T> ? kSide<T> * kSide<T> / across : 4 * kSide<T>;
  const std::int64_t strips = std::max<std::int64_t>(length / step, 1);
  if (strips == 1 && across < 2 * kSide<T>) return transpose_parts<T>(threads, outer, m, from, to);
  const std::int64_t grain = std::max<std::int64_t>(kElementwiseGrain / (std::min(step, length) * across), 1);
  parallel_ranges(threads, iterations(outer) * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t strip = begin;
    for_iterations(outer, kBytes, begin / strips, (end + strips - 1) / strips,
                   [&](std::int64_t source, std::int64_t destination) {
                     const std::int64_t first = strip / strips * strips;
                     const std::int64_t last = std::min(end, first + strips);
                     // The last strip is the longest, so that none is much shorter than the others.
                     transpose_strip(m, by_columns, (strip - first) * step,
                                     last == first + strips ? length : (last - first) * step,
                                     reinterpret_cast<const T*>(from + source), reinterpret_cast<T*>(to + destination));
                     strip = last;
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
