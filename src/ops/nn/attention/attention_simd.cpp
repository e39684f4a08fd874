// Attention in blocks of queries and keys. The scores of a block are one small matrix product on packed keys, the
// values they weigh another; keys are packed once for several blocks of queries. Where there are few queries, packing
// would cost more than it saves, and keys are read where they lie. Between blocks of keys each query keeps its maximum,
// the sum of its weights, and its weighted values so far: in scratch, or in the result where several blocks of queries
// take turns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/attention/attention_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/attention/kernels.h"
#include "ops/nn/attention/problem.h"
#include "ops/nn/gemm/gemm_f32.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using attention::ScoreRow;

/// Calls f(i, load, store) for vectors of `n` floats: load(p) and store(v, p) access p[i...], all lanes or what is
/// left.
template <class F>
HWY_INLINE void for_vectors(std::size_t n, F f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    f([=](const float* from) HWY_ATTR { return hn::LoadU(d, from + i); },
      [=](V v, float* to) HWY_ATTR { hn::StoreU(v, d, to + i); });
  if (i == n) return;
  const std::size_t rest = n - i;
  f([=](const float* from) HWY_ATTR { return load_partial(d, from + i, rest); },
    [=](V v, float* to) HWY_ATTR { store_partial(v, d, to + i, rest); });
}

/// The scalar product of two rows.
HWY_INLINE float product(const float* a, const float* b, std::size_t n) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[2] = {hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sums[0] = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums[0]);
    sums[1] = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), sums[1]);
  }
  for (; i + lanes <= n; i += lanes) sums[0] = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums[0]);
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1])));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

/// scores[j] = q . key j, for keys `stride` apart.
void score_row(const float* q, const float* keys, std::int64_t stride, std::size_t width, std::size_t count,
               float* scores) {
  for (std::size_t j = 0; j < count; ++j) scores[j] = product(q, keys + static_cast<std::int64_t>(j) * stride, width);
}

/// y += weights[j] * value j.
void weigh_row(const float* weights, const float* values, std::int64_t stride, std::size_t width, std::size_t count,
               float* y) {
  const D d;
  for_vectors(width, [&](auto load, auto store) HWY_ATTR {
    V sum = load(y);
    for (std::size_t j = 0; j < count; ++j)
      sum = hn::MulAdd(hn::Set(d, weights[j]), load(values + static_cast<std::int64_t>(j) * stride), sum);
    store(sum, y);
  });
}

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Cap, bias and mask of the keys in sight, which are scaled.
void adjust_scores(const AttentionParams& p, const ScoreRow& row) {
  const D d;
  float* const scores = row.all + row.before;
  for_vectors(row.count, [&](auto load, auto store) HWY_ATTR {
    V score = load(scores);
    if (p.softcap > 0) score = hn::Mul(tanh_f32(d, hn::Div(score, hn::Set(d, p.softcap))), hn::Set(d, p.softcap));
    if (row.bias != nullptr && row.bias_stride == 1)
      score = hn::MulAdd(hn::Set(d, p.bias_scale), load(row.bias), score);
    store(score, scores);
  });
  if (row.bias != nullptr && row.bias_stride != 1)
    for (std::size_t j = 0; j < row.count; ++j) scores[j] += p.bias_scale * row.bias[0];
  if (row.mask == nullptr) return;
  for (std::size_t j = 0; j < row.count; ++j)
    if ((row.mask[static_cast<std::int64_t>(j) * row.mask_stride] != 0) != (p.mask_keeps != 0))
      scores[j] = p.masked_value;
}

/// Scales the raw products of the keys in sight and adds the bias, whose stride is 1; returns the largest of each lane.
HWY_INLINE V add_bias(const AttentionParams& p, const ScoreRow& row) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  float* const scores = row.all + row.before;
  const auto biased = [&](V raw, V bias) HWY_ATTR {
    return hn::MulAdd(hn::Set(d, p.bias_scale), bias, hn::Mul(raw, hn::Set(d, p.scale)));
  };
  V highest = hn::Set(d, kLowest);
  std::size_t j = 0;
  for (; j + lanes <= row.count; j += lanes) {
    const V score = biased(hn::LoadU(d, scores + j), hn::LoadU(d, row.bias + j));
    hn::StoreU(score, d, scores + j);
    highest = at_least(d, score, highest);
  }
  if (j == row.count) return highest;
  const std::size_t rest = row.count - j;
  const V score = biased(load_partial(d, scores + j, rest), load_partial(d, row.bias + j, rest));
  store_partial(score, d, scores + j, rest);
  return at_least(d, hn::IfThenElse(hn::FirstN(d, rest), score, highest), highest);
}

/// Scores of a row as exponents of 2: each is `factor` times what the row has.
struct Exponents {
  float factor;
  float highest;  ///< of them all and the start
};

constexpr float kLog2OfE = 1.44269504088896341F;

/// The largest number of each lane.
HWY_INLINE V largest(const float* x, std::size_t count) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V highest = hn::Set(d, kLowest);
  std::size_t j = 0;
  for (; j + lanes <= count; j += lanes) highest = at_least(d, hn::LoadU(d, x + j), highest);
  if (j == count) return highest;
  const V last = at_least(d, load_partial(d, x + j, count - j), highest);
  return hn::IfThenElse(hn::FirstN(d, count - j), last, highest);
}

/// Makes raw products scores, or leaves the scale to what follows where there is nothing else to do; those of keys out
/// of sight become -inf. `start` is the largest exponent so far. Where there is a NaN, the largest is any of them or
/// NaN: the row's weights become NaN either way.
HWY_INLINE Exponents finish_scores(const AttentionParams& p, const ScoreRow& row, float start) {
  const D d;
  float* const scores = row.all + row.before;
  std::fill(row.all, scores, kLowest);
  std::fill(scores + row.count, row.all + row.padded, kLowest);
  Exponents exponents{kLog2OfE, 0};
  V highest;
  if (row.mask == nullptr && p.softcap <= 0 && row.bias == nullptr && p.scale > 0) {
    exponents.factor *= p.scale;
    highest = largest(scores, row.count);
  } else if (row.mask == nullptr && p.softcap <= 0 && row.bias != nullptr && row.bias_stride == 1) {
    highest = add_bias(p, row);
  } else {
    for_vectors(row.count,
                [&](auto load, auto store) HWY_ATTR { store(hn::Mul(load(scores), hn::Set(d, p.scale)), scores); });
    adjust_scores(p, row);
    highest = largest(scores, row.count);
  }
  highest = hn::Mul(hn::MaxOfLanes(d, highest), hn::Set(d, exponents.factor));
  exponents.highest = hn::GetLane(at_least(d, highest, hn::Set(d, start)));
  return exponents;
}

/// Replaces scores by 2^(exponent - highest); returns their sum. What is 2^-127 times the largest weight or less counts
/// as nothing.
HWY_INLINE float weigh_scores(const ScoreRow& row, const Exponents& exponents) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V factor = hn::Set(d, exponents.factor);
  const V highest = hn::Set(d, exponents.highest);
  Lockstep<2, V> sums;
  sums.set([&](auto) HWY_ATTR { return hn::Zero(d); });
  const auto weigh = [&]<int kCount>(Lockstep<kCount, V> v, float* at) HWY_ATTR {
    v.set([&](auto i) HWY_ATTR {
      return at_least(d, hn::MulSub(hn::LoadU(d, at + i * lanes), factor, highest), hn::Set(d, -127.0F));
    });
    v = exp2_bounded_f32(d, v);
    unroll<kCount>([&](auto i) HWY_ATTR {
      sums.v[i] = hn::Add(sums.v[i], v.v[i]);
      hn::StoreU(v.v[i], d, at + i * lanes);
    });
  };
  std::size_t j = 0;
  for (; j + 2 * lanes <= row.padded; j += 2 * lanes) weigh(Lockstep<2, V>(), row.all + j);
  if (j < row.padded) weigh(Lockstep<1, V>(), row.all + j);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sums.v[0], sums.v[1])));
}

/// Turns a row's raw products into weights relative to the maximum so far, an exponent of 2, which it raises; the sum
/// of weights and the weighted values so far follow the new maximum. Keys out of sight weigh 0.
void advance_softmax(const AttentionParams& p, const ScoreRow& row, float* maximum, float* sum, float* values,
                     std::size_t width) {
  const D d;
  const Exponents exponents = finish_scores(p, row, *maximum);
  if (exponents.highest == kLowest) {
    std::fill(row.all, row.all + row.padded, 0.0F);
    return;
  }
  const float added = weigh_scores(row, exponents);
  if (exponents.highest == *maximum) {
    *sum += added;
    return;
  }
  const bool first = *maximum == kLowest;
  const V lower = at_least(d, hn::Set(d, *maximum - exponents.highest), hn::Set(d, -127.0F));
  const V factor = first ? hn::Zero(d) : exp2_bounded_f32(d, Lockstep<1, V>(lower)).v[0];
  *sum = first ? added : *sum * hn::GetLane(factor) + added;
  // Values so far are zeros at first, or such as an infinite score makes NaN.
  if (!first) for_vectors(width, [&](auto load, auto store) HWY_ATTR { store(hn::Mul(load(values), factor), values); });
  *maximum = exponents.highest;
}

void divide_row(float divisor, const float* x, float* y, std::size_t width) {
  const D d;
  for_vectors(width, [&](auto load, auto store) HWY_ATTR { store(hn::Div(load(x), hn::Set(d, divisor)), y); });
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(score_row);
HWY_EXPORT(weigh_row);
HWY_EXPORT(advance_softmax);
HWY_EXPORT(divide_row);

namespace attention {
namespace {

/// The most queries of a block: with the most keys, their scores lie in the first-level cache.
constexpr std::int64_t kQueries = 32;
constexpr std::int64_t kKeys = 224;
/// The most keys of the only block of a head, which packs them for itself alone, and of wide heads, whose packed keys
/// and values are most of the scratch.
constexpr std::int64_t kFewerKeys = 128;
constexpr std::int64_t kWideHead = 192;  ///< numbers of a key and a value
/// Blocks that share packed keys, where there are several.
constexpr std::int64_t kSharingBlocks = 32;
/// Fewer queries than this read keys where they lie.
constexpr std::int64_t kFewQueries = 8;

constexpr std::int64_t round_up(std::int64_t floats) { return align_up(floats, kAlignment / sizeof(float)); }

/// One task's scratch memory.
struct Scratch {
  float* scores;   ///< [queries of a block, row_floats]
  float* sums;     ///< [queries of a block, width of values]: the weighted values so far
  float* maxima;   ///< [queries that share keys]
  float* weights;  ///< [queries that share keys]: sums of weights
  float* keys;     ///< packed
  float* values;   ///< packed
};

/// Parts of about the same length, at most `most` each: their length.
std::int64_t even_part(std::int64_t total, std::int64_t most) {
  const std::int64_t parts = (total + most - 1) / most;
  return parts > 0 ? (total + parts - 1) / parts : 0;
}

std::int64_t block_queries(const Problem& problem) { return even_part(problem.q.rows, kQueries); }
/// Whole blocks.
std::int64_t sharing_queries(const Problem& problem) {
  return problem.q.rows > kQueries ? kSharingBlocks * block_queries(problem) : problem.q.rows;
}
std::int64_t most_keys(const Problem& problem) {
  return problem.q.rows > kQueries && problem.q.width + problem.v.width < kWideHead ? kKeys : kFewerKeys;
}
std::int64_t block_keys(const Problem& problem) {
  return std::min(align_up(even_part(problem.k.rows, most_keys(problem)), gemm::kPanel), problem.k.rows);
}

/// Floats of one task, never more for shorter sequences; sets the regions when `memory` is not null.
std::int64_t layout_scratch(const Problem& problem, float* memory, Scratch* scratch) {
  const std::int64_t queries = std::min(problem.q.rows, kQueries);
  const std::int64_t keys = std::min(problem.k.rows, most_keys(problem));
  const std::int64_t sharing = std::min(problem.q.rows, kSharingBlocks * kQueries);
  const bool packs = queries >= kFewQueries;
  std::int64_t used = 0;
  const auto take = [&](std::int64_t floats) {
    float* region = memory != nullptr ? memory + used : nullptr;
    used += round_up(floats);
    return region;
  };
  const Scratch regions{take(queries * round_up(keys)),
                        take(queries * problem.v.width),
                        take(sharing),
                        take(sharing),
                        take(packs ? gemm::packed_floats(problem.q.width, keys) : 0),
                        take(packs ? gemm::packed_floats(keys, problem.v.width) : 0)};
  if (scratch != nullptr) *scratch = regions;
  return used;
}

/// Queries [first, last) of one head, and the keys that at least one of them sees.
struct QueryBlock {
  std::int64_t b, h, first, last;
  std::int64_t length;
  KeyRange keys;

  std::int64_t rows() const { return last - first; }
  bool is_few() const { return rows() < kFewQueries; }
};

class BlockKernel {
 public:
  BlockKernel(const Invocation& call, const Problem& problem, float* memory)
      : call_(call),
        p_(call.as<AttentionParams>()),
        problem_(problem),
        step_(block_keys(problem)),
        in_result_(problem.q.rows > kQueries && step_ < problem.k.rows) {
    layout_scratch(problem, memory, &scratch_);
  }

  /// Queries [first, last) of a head, whole blocks of them.
  void run(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t last) {
    const std::int64_t most = sharing_queries(problem_);
    for (; first < last; first += most) run_sharing(b, h, first, std::min(first + most, last));
  }

 private:
  /// The same of queries that share packed keys. How keys are cut does not depend on the queries, so that no result
  /// does on the tasks.
  void run_sharing(std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t last) {
    first_ = first;
    std::fill_n(scratch_.maxima, last - first, -std::numeric_limits<float>::infinity());
    std::fill_n(scratch_.weights, last - first, 0.0F);
    const std::int64_t length = length_of(call_, problem_, b);
    const std::int64_t end = problem_.visible(p_, length, problem_.q.rows - 1).last;
    const std::int64_t queries = block_queries(problem_);
    KeyRange keys;
    do {
      const bool first_keys = keys.last == 0;
      keys = {keys.last, std::min(keys.last + step_, end)};
      bool packed = false;
      for (std::int64_t s = first; s < last; s += queries) {
        QueryBlock block{b, h, s, std::min(s + queries, last), length, {}};
        block.keys = {problem_.visible(p_, length, block.first).first,
                      problem_.visible(p_, length, block.last - 1).last};
        if (first_keys) clear_sums(block);
        const KeyRange seen{std::max(keys.first, block.keys.first), std::min(keys.last, block.keys.last)};
        if (seen.first < seen.last) {
          run_keys(block, block.is_few() ? seen : keys, packed);
          packed = packed || !block.is_few();
        }
        if (keys.last == end) divide(block);
      }
    } while (keys.last < end);
  }

  /// The weighted values so far of a block's queries.
  float* sums(const QueryBlock& block) const {
    return in_result_ ? call_.output<float>() + problem_.y.at(block.b, block.h, block.first) : scratch_.sums;
  }
  /// Floats from one row of scores to the next: whole vectors.
  std::int64_t row_floats() const { return round_up(step_); }
  std::int64_t sums_stride() const { return in_result_ ? problem_.y.row_stride : problem_.v.width; }

  void clear_sums(const QueryBlock& block) const {
    float* y = sums(block);
    for (std::int64_t r = 0; r < block.rows(); ++r) std::fill_n(y + r * sums_stride(), problem_.v.width, 0.0F);
  }

  const float* key_rows(const QueryBlock& block, const KeyRange& keys) const {
    return call_.input<float>(kK) + problem_.k.at(block.b, block.h / problem_.group, keys.first);
  }
  const float* value_rows(const QueryBlock& block, const KeyRange& keys) const {
    return call_.input<float>(kV) + problem_.v.at(block.b, block.h / problem_.group, keys.first);
  }

  /// `packed`: another block has packed these keys and their values. Values are packed late, so that the product finds
  /// them in the first-level cache.
  void run_keys(const QueryBlock& block, const KeyRange& keys, bool packed) {
    const std::int64_t count = keys.last - keys.first;
    const std::int64_t width = problem_.v.width;
    float* y = sums(block);
    multiply_keys(block, keys, packed);
    for (std::int64_t r = 0; r < block.rows(); ++r) {
      const KeyRange visible = problem_.visible(p_, block.length, block.first + r);
      weigh(block, r, keys,
            {std::clamp(visible.first, keys.first, keys.last), std::clamp(visible.last, keys.first, keys.last)},
            y + r * sums_stride());
    }
    if (block.is_few()) {
      for (std::int64_t r = 0; r < block.rows(); ++r) HWY_DYNAMIC_DISPATCH(weigh_row)
      (scratch_.scores + r * row_floats(), value_rows(block, keys), problem_.v.row_stride,
       static_cast<std::size_t>(width), static_cast<std::size_t>(count), y + r * sums_stride());
      return;
    }
    const std::int64_t panels = gemm::panel_count(width);
    if (!packed)
      gemm::pack_panels_simd(value_rows(block, keys), count, width, problem_.v.row_stride, 1, 0, panels,
                             scratch_.values);
    gemm::multiply({.data = scratch_.scores, .rows = block.rows(), .row_stride = row_floats(), .length = count},
                   {.data = scratch_.values, .n = width, .first = 0, .last = panels},
                   {.data = y, .row_stride = sums_stride(), .resumes = true});
  }

  /// The raw products of the block's queries and these keys.
  void multiply_keys(const QueryBlock& block, const KeyRange& keys, bool packed) {
    const std::int64_t count = keys.last - keys.first;
    const float* queries = call_.input<float>(kQ) + problem_.q.at(block.b, block.h, block.first);
    if (block.is_few()) {
      for (std::int64_t r = 0; r < block.rows(); ++r) HWY_DYNAMIC_DISPATCH(score_row)
      (queries + r * problem_.q.row_stride, key_rows(block, keys), problem_.k.row_stride,
       static_cast<std::size_t>(problem_.k.width), static_cast<std::size_t>(count), scratch_.scores + r * row_floats());
      return;
    }
    const std::int64_t panels = gemm::panel_count(count);
    if (!packed)
      gemm::pack_panels_simd(key_rows(block, keys), problem_.k.width, count, 1, problem_.k.row_stride, 0, panels,
                             scratch_.keys);
    gemm::multiply(
        {.data = queries, .rows = block.rows(), .row_stride = problem_.q.row_stride, .length = problem_.q.width},
        {.data = scratch_.keys, .n = count, .first = 0, .last = panels},
        {.data = scratch_.scores, .row_stride = row_floats()});
  }

  /// Makes row r's products weights; y are its weighted values so far.
  void weigh(const QueryBlock& block, std::int64_t r, const KeyRange& keys, const KeyRange& visible, float* y) {
    const std::int64_t at = block.first + r - first_;
    HWY_DYNAMIC_DISPATCH(advance_softmax)
    (p_, score_row_of(block, r, keys, visible), scratch_.maxima + at, scratch_.weights + at, y,
     static_cast<std::size_t>(problem_.v.width));
  }

  ScoreRow score_row_of(const QueryBlock& block, std::int64_t r, const KeyRange& keys, const KeyRange& visible) const {
    ScoreRow row{scratch_.scores + r * row_floats(), static_cast<std::size_t>(round_up(keys.last - keys.first)),
                 static_cast<std::size_t>(visible.first - keys.first),
                 static_cast<std::size_t>(visible.last - visible.first)};
    const std::int64_t s = block.first + r;
    if (call_.has(kBias)) {
      row.bias_stride = problem_.bias.strides[3];
      row.bias = call_.input<float>(kBias) + problem_.bias.at(block.b, block.h, s) + visible.first * row.bias_stride;
    }
    if (call_.has(kMask)) {
      row.mask_stride = problem_.mask.strides[3];
      row.mask =
          call_.input<std::uint8_t>(kMask) + problem_.mask.at(block.b, block.h, s) + visible.first * row.mask_stride;
    }
    return row;
  }

  /// Makes the weighted values of a block's queries their means.
  void divide(const QueryBlock& block) {
    for (std::int64_t r = 0; r < block.rows(); ++r) {
      const std::int64_t s = block.first + r;
      const KeyRange visible = problem_.visible(p_, block.length, s);
      // A weight of zero means that nothing was in sight, or that all of it was -inf.
      const bool zero = p_.empty_rows_zero != 0 || visible.first == visible.last;
      const float weight = scratch_.weights[s - first_];
      HWY_DYNAMIC_DISPATCH(divide_row)
      (weight == 0.0F && zero ? 1.0F : weight, sums(block) + r * sums_stride(),
       call_.output<float>() + problem_.y.at(block.b, block.h, s), static_cast<std::size_t>(problem_.v.width));
    }
  }

  const Invocation& call_;
  const AttentionParams& p_;
  const Problem& problem_;
  std::int64_t step_;  ///< keys of a block
  bool in_result_;     ///< the weighted values so far, of blocks that wait for each other between keys
  Scratch scratch_{};
  std::int64_t first_ = 0;  ///< of the queries that share keys at present
};

}  // namespace

Footprint blocks_footprint(const OpCall& call, int threads) {
  const Problem problem = make_problem(call);
  return {.scratch_bytes =
              layout_scratch(problem, nullptr, nullptr) * threads * static_cast<std::int64_t>(sizeof(float))};
}

Status run_blocks(const Invocation& call) {
  const Problem problem = make_problem(call);
  BANTAM_RETURN_IF_ERROR(check_lengths(call, problem));
  if (call.out().elements() == 0) return ok_status();
  const std::int64_t slot_floats = layout_scratch(problem, nullptr, nullptr);
  const std::int64_t queries = std::max<std::int64_t>(block_queries(problem), 1);
  const std::int64_t blocks = (problem.q.rows + queries - 1) / queries;
  // Work of about ten microseconds, so that small products do not wake other threads.
  const std::int64_t per_block = queries * problem.k.rows * (problem.q.width + problem.v.width) + 1;
  const std::int64_t grain = std::max<std::int64_t>(100'000 / per_block, 1);
  parallel_slots(*call.threads, problem.batch * problem.q.heads * blocks, grain,
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   BlockKernel kernel(call, problem, reinterpret_cast<float*>(call.scratch) + slot * slot_floats);
                   for (std::int64_t i = begin, next; i < end; i = next) {
                     const std::int64_t head = i / blocks;
                     next = std::min((head + 1) * blocks, end);
                     kernel.run(head / problem.q.heads, head % problem.q.heads, (i - head * blocks) * queries,
                                std::min((next - head * blocks) * queries, problem.q.rows));
                   }
                 });
  return ok_status();
}

}  // namespace attention
}  // namespace bantam::ops
#endif
