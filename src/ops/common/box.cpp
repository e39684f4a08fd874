#include "ops/common/box.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/short_copy.h"

namespace bantam::ops {
namespace {

using Level = Box::Level;

/// Element access that neither aliasing nor alignment rules can break; compiles to plain moves.
template <typename T>
T load(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* p, T value) noexcept {
  std::memcpy(p, &value, sizeof value);
}

/// Two-dimensional transposition: source runs along `along`, destination along `across`. Works through square tiles
/// of a cache line's width, so that every line fetched or written is used up while it is in the first-level cache.
template <typename T>
void copy_transposed(const Level& along, const Level& across, const std::byte* source,
                     std::byte* destination) noexcept {
  constexpr std::int64_t kTile = std::max<std::int64_t>(64 / static_cast<std::int64_t>(sizeof(T)) / 2, 8);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t row_in = across.source * kBytes;
  const std::int64_t row_out = along.destination * kBytes;
  for (std::int64_t a0 = 0; a0 < across.size; a0 += kTile) {
    const std::int64_t a1 = std::min(a0 + kTile, across.size);
    for (std::int64_t b0 = 0; b0 < along.size; b0 += kTile) {
      const std::int64_t b1 = std::min(b0 + kTile, along.size);
      for (std::int64_t b = b0; b < b1; ++b) {
        const std::byte* from = source + a0 * row_in + b * kBytes;
        std::byte* to = destination + b * row_out + a0 * kBytes;
        for (std::int64_t a = a0; a < a1; ++a, from += row_in, to += kBytes) store(to, load<T>(from));
      }
    }
  }
}

/// The same where one side is so narrow that tiles would be all overhead, such as the channels of a picture: kNarrow
/// runs are read, or written, side by side. With strides known to be those of dense memory the compiler finds vectors.
template <typename T, int kNarrow>
void copy_narrow(std::int64_t n, std::int64_t in, std::int64_t in_next, std::int64_t out, std::int64_t out_next,
                 const std::byte* __restrict source, std::byte* __restrict destination) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const auto move = [&](std::int64_t from, std::int64_t to) {
    store(destination + to * kBytes, load<T>(source + from * kBytes));
  };
  if (in == 1 && out == kNarrow && out_next == 1) {
    for (std::int64_t i = 0; i < n; ++i)
      for (int k = 0; k < kNarrow; ++k) move(i + k * in_next, i * kNarrow + k);
  } else if (in == kNarrow && in_next == 1 && out == 1) {
    for (std::int64_t i = 0; i < n; ++i)
      for (int k = 0; k < kNarrow; ++k) move(i * kNarrow + k, i + k * out_next);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      for (int k = 0; k < kNarrow; ++k) move(i * in + k * in_next, i * out + k * out_next);
  }
}

/// True when a side was narrow and everything is copied.
template <typename T>
bool copied_narrow(const Level& along, const Level& across, const std::byte* source, std::byte* destination) noexcept {
  const bool interleaves = across.size <= along.size;
  const Level& narrow = interleaves ? across : along;
  const Level& wide = interleaves ? along : across;
  const auto copy = [&](auto width) {
    copy_narrow<T, decltype(width)::value>(wide.size, wide.source, narrow.source, wide.destination, narrow.destination,
                                           source, destination);
    return true;
  };
  switch (narrow.size) {
    case 2: return copy(std::integral_constant<int, 2>());
    case 3: return copy(std::integral_constant<int, 3>());
    case 4: return copy(std::integral_constant<int, 4>());
    default: return false;
  }
}

/// A row of elements with the strides of `row`, or those given, which are the same and known while compiling.
template <typename T, std::int64_t kIn = 0, std::int64_t kOut = 0>
void copy_strided(const Level& row, const std::byte* __restrict source, std::byte* __restrict destination) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t in = (kIn != 0 ? kIn : row.source) * kBytes;
  const std::int64_t out = (kOut != 0 ? kOut : row.destination) * kBytes;
  for (std::int64_t i = 0; i < row.size; ++i) store(destination + i * out, load<T>(source + i * in));
}

/// The same, with vectors for what is interleaved in pairs, such as complex numbers.
template <typename T>
void copy_row(const Level& row, const std::byte* source, std::byte* destination) noexcept {
  if (row.source == 2 && row.destination == 1) return copy_strided<T, 2, 1>(row, source, destination);
  if (row.source == 1 && row.destination == 2) return copy_strided<T, 1, 2>(row, source, destination);
  copy_strided<T>(row, source, destination);
}

/// The first elements one by one, the others by copies of them, which come from the first-level cache.
template <typename T>
void fill_run(std::int64_t n, T value, std::byte* to) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t first = std::min<std::int64_t>(n, 2048 / kBytes);
  for (std::int64_t i = 0; i < first; ++i) store(to + i * kBytes, value);
  for (std::int64_t i = first; i < n; i += first)
    std::memcpy(to + i * kBytes, to, static_cast<std::size_t>(std::min(first, n - i) * kBytes));
}

template <typename T>
void copy_elements(Box box, const std::byte* source, std::byte* destination) noexcept {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  if (box.rank == 0) {
    store(destination, load<T>(source));
    return;
  }
  const int contiguous = find_contiguous_source(box);
  const Level row = take_level(&box, box.rank - 1);
  if (row.source == 1 && row.destination == 1) {
    const Level runs = box.rank > 0 ? take_level(&box, box.rank - 1) : Level{};
    const auto* first = reinterpret_cast<const std::uint8_t*>(source);
    auto* result = reinterpret_cast<std::uint8_t*>(destination);
    for_each_iteration(box, kBytes, [&](std::int64_t from, std::int64_t to) {
      copy_pieces(runs.size, row.size * kBytes, first + from, runs.source * kBytes, result + to,
                  runs.destination * kBytes);
    });
  } else if (row.source == 0 && row.destination == 1) {
    for_each_iteration(box, kBytes, [&](std::int64_t from, std::int64_t to) {
      fill_run(row.size, load<T>(source + from), destination + to);
    });
  } else if (contiguous >= 0 && row.destination == 1) {
    const Level along = take_level(&box, contiguous);
    for_each_iteration(box, kBytes, [&](std::int64_t from, std::int64_t to) {
      if (!copied_narrow<T>(along, row, source + from, destination + to))
        copy_transposed<T>(along, row, source + from, destination + to);
    });
  } else {
    for_each_iteration(box, kBytes,
                       [&](std::int64_t from, std::int64_t to) { copy_row<T>(row, source + from, destination + to); });
  }
}

/// Copies a box that is not empty and of which no levels can be merged.
void copy_simple(const Box& box, std::int64_t element_bytes, const void* source, void* destination) noexcept {
  dispatch_size(element_bytes, [&](auto tag) {
    using T = typename decltype(tag)::type;
    copy_elements<T>(box, static_cast<const std::byte*>(source), static_cast<std::byte*>(destination));
  });
}

/// Fills runs of a few bytes, such as a pixel's new channels, with copies of one: true where these are such runs.
bool filled_short_runs(Box box, std::int64_t element_bytes, const void* value, void* destination) noexcept {
  constexpr std::int64_t kLongest = 64;  // bytes
  if (box.rank < 2) return false;
  const Level run = take_level(&box, box.rank - 1);
  const std::int64_t bytes = run.size * element_bytes;
  if (run.destination != 1 || bytes > kLongest) return false;
  std::uint8_t filled[kLongest];
  for (std::int64_t i = 0; i < bytes; i += element_bytes)
    std::memcpy(filled + i, value, static_cast<std::size_t>(element_bytes));
  const Level runs = take_level(&box, box.rank - 1);
  auto* first = static_cast<std::uint8_t*>(destination);
  for_each_iteration(box, element_bytes, [&](std::int64_t, std::int64_t to) {
    copy_pieces(runs.size, bytes, filled, 0, first + to, runs.destination * element_bytes);
  });
  return true;
}

/// Calls f(part, its first source element, its first destination element) for parts that make up a simplified box, on
/// all threads.
template <typename F>
void for_each_part(const Threads& threads, const Box& box, F f) noexcept {
  constexpr std::int64_t kEnough = 4;  // iterations for each thread, so that all get about as many
  if (threads.count <= 1 || box.rank == 0) return f(box, 0, 0);
  int shared = 0;
  while (shared < box.rank && box.levels[shared].size < kEnough * threads.count) ++shared;
  if (shared == box.rank) shared = 0;
  const Level level = box.levels[shared];
  const std::int64_t elements = iterations(box) / level.size;
  parallel_ranges(threads, level.size, (kElementwiseGrain + elements - 1) / elements,
                  [&](std::int64_t begin, std::int64_t end) {
                    Box part = box;
                    part.levels[shared].size = end - begin;
                    f(part, begin * level.source, begin * level.destination);
                  });
}

}  // namespace

bool simplify(Box* box) noexcept {
  Box out;
  for (int i = 0; i < box->rank; ++i) {
    const Level& level = box->levels[i];
    if (level.size <= 0) return false;
    if (level.size == 1) continue;
    Level* outer = out.rank > 0 ? &out.levels[out.rank - 1] : nullptr;
    if (outer != nullptr && outer->source == level.source * level.size &&
        outer->destination == level.destination * level.size) {
      *outer = {outer->size * level.size, level.source, level.destination};
    } else {
      out.add(level.size, level.source, level.destination);
    }
  }
  *box = out;
  return true;
}

Level take_level(Box* box, int i) noexcept {
  const Level taken = box->levels[i];
  for (int k = i; k + 1 < box->rank; ++k) box->levels[k] = box->levels[k + 1];
  --box->rank;
  return taken;
}

int find_contiguous_source(const Box& box) noexcept {
  for (int i = box.rank - 2; i >= 0; --i)
    if (box.levels[i].source == 1) return i;
  return -1;
}

Box make_box(const TensorDesc& shape, const TensorDesc& source, const TensorDesc& destination) noexcept {
  Box box;
  for (int i = 0; i < shape.rank; ++i) box.add(shape.dims[i], source.strides[i], destination.strides[i]);
  return box;
}

void copy_box(const Box& box, std::int64_t element_bytes, const void* source, void* destination) noexcept {
  copy_box(Threads{}, box, element_bytes, source, destination);
}

void copy_box(const Threads& threads, Box box, std::int64_t element_bytes, const void* source,
              void* destination) noexcept {
  if (!simplify(&box)) return;
  for_each_part(threads, box, [&](const Box& part, std::int64_t from, std::int64_t to) {
    copy_simple(part, element_bytes, advance(source, from, element_bytes), advance(destination, to, element_bytes));
  });
}

void fill_box(const Threads& threads, Box box, std::int64_t element_bytes, const void* value,
              void* destination) noexcept {
  for (int i = 0; i < box.rank; ++i) box.levels[i].source = 0;
  if (!simplify(&box)) return;
  for_each_part(threads, box, [&](const Box& part, std::int64_t, std::int64_t to) {
    void* const first = advance(destination, to, element_bytes);
    if (!filled_short_runs(part, element_bytes, value, first)) copy_simple(part, element_bytes, value, first);
  });
}

}  // namespace bantam::ops
