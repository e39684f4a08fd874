// How operators that move elements are drawn.
#include <algorithm>

#include "ops/data/concat/concat.h"
#include "ops/data/copy/copy.h"
#include "ops/data/expand/expand.h"
#include "ops/data/gather/gather.h"
#include "ops/data/gather_elements/gather_elements.h"
#include "ops/data/gather_nd/gather_nd.h"
#include "ops/data/integers/integers.h"
#include "ops/data/one_hot/one_hot.h"
#include "ops/data/pad/pad.h"
#include "ops/data/range/range.h"
#include "ops/data/reshape/reshape.h"
#include "ops/data/reverse_sequence/reverse_sequence.h"
#include "ops/data/scatter_elements/scatter_elements.h"
#include "ops/data/scatter_nd/scatter_nd.h"
#include "ops/data/slice/slice.h"
#include "ops/data/tile/tile.h"
#include "ops/data/transpose/transpose.h"
#include "ops/data/trilu/trilu.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

IntList list_of(const std::vector<std::int64_t>& values) {
  IntList list;
  for (const std::int64_t v : values) list.v[list.size++] = static_cast<std::int32_t>(v);
  return list;
}

std::vector<std::int64_t> small_dims(Sampling& s, int rank, std::int64_t most) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  for (std::int64_t& d : dims) d = s.pick(1, most);
  return dims;
}

ElementType index_type(Sampling& s) { return s.one_of({ElementType::kI32, ElementType::kI64}); }

/// Indices into a dimension: constants and values, negative ones too. An empty dimension is refused by no infer, but
/// has nothing to point at.
void indices(Sampling& s, const TensorDesc& desc, std::int64_t dim) {
  const Range range{s.one_in(2) ? -static_cast<double>(dim) : 0.0, static_cast<double>(dim) - 1.0};
  if (s.one_in(2)) {
    s.constant(desc, range);
  } else {
    s.fresh(desc, range);
  }
}

void concat(Sampling& s) {
  const TensorDesc x = s.any(1, 5);
  const std::int32_t axis = s.axis(x);
  for (int n = s.pick(0, 3); n > 0; --n) s.like(s.one_in(2) ? x : with_dim(x, axis, s.dim()));
  s.set_params(ConcatParams{axis});
}

void copy(Sampling& s) { s.any(0, 5); }

void expand(Sampling& s) {
  const TensorDesc x = s.any(0, 4);
  std::vector<std::int64_t> dims(x.dims, x.dims + x.rank);
  for (std::int64_t& d : dims)
    if (d == 1) d = s.dim();
  if (s.one_in(3)) dims.insert(dims.begin(), s.pick(1, 3));
  s.set_params(ExpandParams{list_of(dims)});
}

void gather(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const std::int32_t axis = s.axis(x);
  const std::int32_t batch = s.one_in(4) ? s.pick(0, axis) : 0;
  std::vector<std::int64_t> dims(x.dims, x.dims + batch);
  for (int i = s.pick(0, 2); i > 0; --i) dims.push_back(s.pick(1, 4));
  if (x.dims[axis] == 0) dims.push_back(0);
  indices(s, dense_desc(index_type(s), dims), x.dims[axis]);
  s.set_params(GatherParams{axis, batch});
}

void gather_elements(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const std::int32_t axis = s.axis(x);
  TensorDesc at = with_type(x, index_type(s));
  for (int i = 0; i < x.rank; ++i)
    if (s.one_in(3)) at = with_dim(at, i, i == axis && x.dims[i] > 0 ? s.pick(1, 5) : s.pick(0, x.dims[i]));
  indices(s, at, x.dims[axis]);
  s.set_params(GatherElementsParams{axis});
}

/// Index tuples into the first `tuple` dimensions from `first` on; all of them may be addressed when they are equal, so
/// the range is that of the smallest.
TensorDesc tuples(Sampling& s, const TensorDesc& x, int first, int tuple, std::vector<std::int64_t> dims) {
  std::int64_t smallest = 1 << 20;
  for (int i = first; i < first + tuple; ++i) smallest = std::min<std::int64_t>(smallest, x.dims[i]);
  if (smallest == 0) dims.push_back(0);
  dims.push_back(tuple);
  const TensorDesc desc = dense_desc(index_type(s), dims);
  indices(s, desc, smallest);
  return desc;
}

void gather_nd(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const int batch = s.one_in(4) ? s.pick(0, x.rank - 1) : 0;
  std::vector<std::int64_t> dims(x.dims, x.dims + batch);
  for (int i = s.pick(0, 2); i > 0; --i) dims.push_back(s.pick(1, 3));
  tuples(s, x, batch, s.pick(1, x.rank - batch), dims);
  s.set_params(GatherNdParams{batch});
}

void integers(Sampling& s) {
  IntegersParams p;
  p.to = s.one_of({ElementType::kI32, ElementType::kI64});
  p.shape.size = s.pick(0, 2);
  p.values.size = 1;
  for (int i = 0; i < p.shape.size; ++i) p.values.size *= p.shape.v[i] = s.pick(0, i == 0 ? 4 : 2);
  for (int i = 0; i < p.values.size; ++i) p.values.v[i] = s.pick(-9, 9);
  s.set_params(p);
}

void one_hot(Sampling& s) {
  const std::int32_t depth = s.pick(0, 6);
  const ElementType index_type = s.type({ElementType::kI32, ElementType::kI64, ElementType::kF32});
  s.fresh(dense_desc(index_type, small_dims(s, s.pick(0, 3), 4)), {-8.0, 8.0});
  const ElementType type = s.type();
  s.like(dense_desc(type, {}));
  s.like(dense_desc(type, {}));
  s.set_params(OneHotParams{.axis = s.pick(-1, 1), .depth = depth});
}

void pad(Sampling& s) {
  const TensorDesc x = s.any(0, 5);
  PadParams p{.mode = s.one_in(2) ? PadMode::kConstant : s.enumerator<PadMode>()};
  p.before.size = p.after.size = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    p.before.v[i] = s.one_in(2) ? s.pick(s.one_in(4) ? -2 : 0, 3) : 0;
    p.after.v[i] = s.one_in(2) ? s.pick(s.one_in(4) ? -2 : 0, 3) : 0;
  }
  if (s.one_in(2)) s.like(dense_desc(x.type, {}));
  s.set_params(p);
}

void range(Sampling& s) {
  const ElementType type = s.type();
  const double start = s.pick(-5, 5);
  const double delta = s.one_of({-2.0, -1.0, 1.0, 3.0});
  const double limit = start + delta * s.pick(0, 9);
  for (const double value : {start, limit, delta}) s.constant(dense_desc(type, {}), {value, value});
}

void reshape(Sampling& s) {
  const TensorDesc x = s.any(0, 6);
  std::vector<std::int64_t> dims(x.dims, x.dims + x.rank);
  for (int n = s.pick(1, 3); n > 0; --n) {
    const auto at = static_cast<std::ptrdiff_t>(s.pick(0, std::ssize(dims)));
    if (s.one_in(2) && at + 1 < std::ssize(dims)) {
      dims[static_cast<std::size_t>(at)] *= dims[static_cast<std::size_t>(at + 1)];
      dims.erase(dims.begin() + at + 1);
    } else if (dims.size() < 6) {
      dims.insert(dims.begin() + at, 1);
    }
  }
  for (std::size_t i = 0; i + 1 < dims.size(); ++i)  // splits an even dimension over its neighbour
    if (dims[i] % 2 == 0 && s.one_in(2)) {
      dims[i] /= 2;
      dims[i + 1] *= 2;
    }
  s.set_params(ReshapeParams{list_of(dims)});
}

void reverse_sequence(Sampling& s) {
  const TensorDesc x = s.any(2, 4);
  const std::int32_t batch = s.axis(x);
  const std::int32_t time = (batch + s.pick(1, x.rank - 1)) % x.rank;
  const TensorDesc lengths = dense_desc(index_type(s), {x.dims[batch]});
  s.fresh(lengths, {0.0, static_cast<double>(x.dims[time])});
  s.set_params(ReverseSequenceParams{batch, time});
}

void scatter_elements(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const std::int32_t axis = s.axis(x);
  TensorDesc at = with_type(x, index_type(s));
  for (int i = 0; i < x.rank; ++i)
    if (s.one_in(3)) at = with_dim(at, i, s.pick(0, x.dims[i]));
  indices(s, at, x.dims[axis]);
  s.like(with_type(at, x.type));
  s.set_params(ScatterElementsParams{axis, s.one_in(2) ? ScatterReduction::kNone : s.enumerator<ScatterReduction>()});
}

void scatter_nd(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const int tuple = s.pick(1, x.rank);
  const TensorDesc at = tuples(s, x, 0, tuple, small_dims(s, s.pick(0, 2), 3));
  std::vector<std::int64_t> dims(at.dims, at.dims + at.rank - 1);
  dims.insert(dims.end(), x.dims + tuple, x.dims + x.rank);
  s.like(dense_desc(x.type, dims));
  s.set_params(ScatterNdParams{s.one_in(2) ? ScatterReduction::kNone : s.enumerator<ScatterReduction>()});
}

void slice(Sampling& s) {
  const TensorDesc x = s.any(0, 6);
  SliceParams p;
  p.starts.size = p.steps.size = p.sizes.size = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    const std::int32_t dim = x.dims[i];
    p.steps.v[i] = 1;
    p.sizes.v[i] = dim;
    if (dim == 0 || s.one_in(2)) continue;
    p.steps.v[i] = s.one_in(3) ? s.one_of({-2, -1, 2, 3}) : 1;
    p.starts.v[i] = s.pick(0, dim - 1);
    const std::int32_t room = p.steps.v[i] > 0 ? dim - 1 - p.starts.v[i] : p.starts.v[i];
    p.sizes.v[i] = s.pick(1, room / std::abs(p.steps.v[i]) + 1);
  }
  s.set_params(p);
}

void tile(Sampling& s) {
  const TensorDesc x = s.any(0, 4);
  TileParams p;
  p.repeats.size = x.rank;
  for (int i = 0; i < x.rank; ++i) p.repeats.v[i] = s.one_in(2) ? 1 : s.pick(s.one_in(8) ? 0 : 1, 3);
  s.set_params(p);
}

void transpose(Sampling& s) {
  // Larger matrices now and then: vector kernels work by tiles of up to 32 elements a side.
  if (s.one_in(3)) s.prefer_dim(s.pick(3, 70));
  const TensorDesc x = s.any(0, 6);
  s.set_params(TransposeParams{s.permutation(x.rank)});
}

void trilu(Sampling& s) {
  s.any(2, 4);
  s.set_params(TriluParams{.upper = s.pick(0, 1), .diagonal = s.pick(-4, 4)});
}

constexpr SamplerRow kRows[] = {{&kConcat, concat},
                                {&kCopy, copy},
                                {&kExpand, expand},
                                {&kGather, gather},
                                {&kGatherElements, gather_elements},
                                {&kGatherNd, gather_nd},
                                {&kIntegers, integers},
                                {&kOneHot, one_hot},
                                {&kPad, pad},
                                {&kRange, range},
                                {&kReshape, reshape},
                                {&kReverseSequence, reverse_sequence},
                                {&kScatterElements, scatter_elements},
                                {&kScatterNd, scatter_nd},
                                {&kSlice, slice},
                                {&kTile, tile},
                                {&kTranspose, transpose},
                                {&kTrilu, trilu}};

}  // namespace

std::span<const SamplerRow> data_samplers() { return kRows; }

}  // namespace bantam::ops::testing
