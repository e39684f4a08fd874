// Transposed convolution as one matrix product and a scatter: every input position times all weights gives what it adds
// to each tap of each output channel; those are then added where the taps meet the output. It suits what the products
// by phase do not: few output channels or a large stride, as in the inverse of a short-time Fourier transform.
#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv_transpose2d/conv_transpose2d_columns_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"
#include "ops/nn/gemm/gemm_f32.h"

#ifndef BANTAM_CONV_TRANSPOSE2D_COLUMNS_RUNS_
#define BANTAM_CONV_TRANSPOSE2D_COLUMNS_RUNS_
namespace bantam::ops::conv_transpose2d {
namespace {

/// Runs of n numbers each, at equal distances.
struct Runs {
  std::int64_t count;
  std::int64_t n;
  std::int64_t from_step;
  std::int64_t to_step;
};

}  // namespace
}  // namespace bantam::ops::conv_transpose2d
#endif

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv_transpose2d::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Runs of few numbers, one by one: each sum may be needed right after, which is found while it waits to be written if
/// it is read as it was stored.
template <int kNumbers>
HWY_INLINE void add_few_numbers(const Runs& runs, const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
  for (std::int64_t run = 0; run < runs.count; ++run, from += runs.from_step, to += runs.to_step)
    for (int i = 0; i < kNumbers; ++i) to[i] += from[i];
}

/// Runs of a last vector of `rest` numbers.
template <class D>
HWY_INLINE void add_whole_and_rest(D few, std::size_t rest, const Runs& runs, const float* from, float* to) {
  using namespace ops::HWY_NAMESPACE;  // NOLINT: the ends of rows
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = runs.n - static_cast<std::int64_t>(rest);
  for (std::int64_t run = 0; run < runs.count; ++run, from += runs.from_step, to += runs.to_step) {
    for (std::int64_t i = 0; i < whole; i += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
    if (rest == 0) continue;
    const auto sum = hn::Add(load_partial(few, to + whole, rest), load_partial(few, from + whole, rest));
    store_few(sum, few, to + whole, rest);
  }
}

/// Adds runs of numbers to others, which do not overlap each other.
void add_runs(const Runs& runs, const float* from, float* to) {
  switch (runs.n) {
    case 1: return add_few_numbers<1>(runs, from, to);
    case 2: return add_few_numbers<2>(runs, from, to);
    case 3: return add_few_numbers<3>(runs, from, to);
    case 4: return add_few_numbers<4>(runs, from, to);
    case 8: return add_few_numbers<8>(runs, from, to);
    default: break;
  }
  const hn::ScalableTag<float> d;
  const std::size_t rest = static_cast<std::size_t>(runs.n) % hn::Lanes(d);
  ops::HWY_NAMESPACE::with_few_lanes(d, rest,
                                     [&](auto few) HWY_ATTR { add_whole_and_rest(few, rest, runs, from, to); });
}

}  // namespace
}  // namespace bantam::ops::conv_transpose2d::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv_transpose2d {

HWY_EXPORT(add_runs);

namespace {

constexpr std::int64_t kFloat = sizeof(float);

/// Input positions are multiplied in blocks, so that a large image needs no more scratch than a small one.
constexpr std::int64_t kMaxBlock = 64;
constexpr std::int64_t kBlockFloats = 65536;
constexpr std::int64_t kSmallPackedBytes = 65536;

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t taps(const Geometry& g) { return g.vertical.kernel * g.horizontal.kernel; }

/// Columns of the product: tap by tap, its output channels.
std::int64_t columns(const Geometry& g) { return g.channels_out * taps(g); }

/// Floats from one row of products to the next, which is stored in whole vectors.
std::int64_t product_row(const Geometry& g) { return align_up(columns(g), gemm::kPanel / 2); }

std::int64_t block_of(const Geometry& g) {
  const std::int64_t positions = g.vertical.in * g.horizontal.in;
  return std::clamp<std::int64_t>(kBlockFloats / product_row(g), 1, std::clamp<std::int64_t>(positions, 1, kMaxBlock));
}

/// [begin, end) of the rows or columns of an image.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A part of an output image.
struct Region {
  Range rows;
  Range columns;
};

/// Is an item a sequence? Then it is cut along its only row, else between rows.
bool is_sequence(const Geometry& g) { return g.vertical.in == 1 && g.vertical.out == 1; }

const Axis& cut_axis(const Geometry& g) { return is_sequence(g) ? g.horizontal : g.vertical; }

/// What each thread has at least of the outputs along the axis that is cut: it multiplies inputs at its edges once
/// more.
std::int64_t least_outputs(const Geometry& g) {
  const Axis& axis = cut_axis(g);
  return std::max<std::int64_t>(4 * (axis.kernel - 1) * axis.dilation, 4);
}

/// May items be cut?
bool cuts_items(const Geometry& g) { return cut_axis(g).out >= 2 * least_outputs(g); }

/// Do so many threads share outputs, or items? Else, as of a small image, they share the products of each block.
bool shares_outputs(const Geometry& g, std::int64_t threads) { return cuts_items(g) || g.batch >= threads; }

/// Of the outputs of all items along the axis that is cut.
Grain output_grain(const Geometry& g) {
  constexpr std::int64_t kWork = 400'000;
  const std::int64_t outputs = cut_axis(g).out;
  const std::int64_t work = g.vertical.in * g.horizontal.in * g.channels_in * columns(g) / outputs;
  const std::int64_t worth = kWork / std::max<std::int64_t>(work, 1) + 1;
  return cuts_items(g) ? Grain(std::max(worth, least_outputs(g)), 1) : Grain(worth, outputs);
}

/// All of an item, or, along the axis that is cut, a part of it.
Region region_of(const Geometry& g, const Range& cut) {
  return is_sequence(g) ? Region{{0, 1}, cut} : Region{cut, {0, g.horizontal.out}};
}

/// The input positions [first, last) of those whose tap k meets an output of a range.
struct Positions {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Positions meeting(const Axis& a, const Range& outputs, std::int64_t k, Positions all) {
  const std::int64_t start = a.dilation * k - a.pad;  // output of position 0
  const auto first_from = [&](std::int64_t output) {
    return start >= output ? 0 : (output - start + a.stride - 1) / a.stride;
  };
  return {std::max(first_from(outputs.begin), all.first), std::min(first_from(outputs.end), all.last)};
}

/// Adds the products of positions `all` of input row `ih` to a region of the image `y`, row by row of the taps.
class Scatter {
 public:
  Scatter(const Geometry& g, const Region& region, std::int64_t ih, Positions all, const float* products, float* y)
      : g_(g), axis_(g.horizontal), region_(region), ih_(ih), all_(all), products_(products), y_(y) {}

  void operator()() const {
    for (std::int64_t kh = 0; kh < g_.vertical.kernel; ++kh) {
      const std::int64_t oh = g_.vertical.stride * ih_ + g_.vertical.dilation * kh - g_.vertical.pad;
      if (oh < region_.rows.begin || oh >= region_.rows.end) continue;
      float* row = y_ + oh * axis_.out * g_.channels_out;
      if (axis_.dilation == 1 && axis_.kernel <= axis_.stride) {
        add_rows_of_taps(kh, row);
      } else {
        for (std::int64_t kw = 0; kw < axis_.kernel; ++kw) add_taps(kh, kw, 1, all_, row);
      }
    }
  }

 private:
  /// All taps of a position meet neighbouring outputs, and no other position's: they are one run, where they meet some.
  void add_rows_of_taps(std::int64_t kh, float* row) const {
    const Positions first_tap = meeting(axis_, region_.columns, 0, all_);
    const Positions last_tap = meeting(axis_, region_.columns, axis_.kernel - 1, all_);
    const Positions inside{first_tap.first, std::max(first_tap.first, last_tap.last)};
    add_taps(kh, 0, axis_.kernel, inside, row);
    for (std::int64_t kw = 0; kw < axis_.kernel; ++kw) {
      add_taps(kh, kw, 1, {all_.first, std::min(inside.first, all_.last)}, row);
      add_taps(kh, kw, 1, {inside.last, all_.last}, row);
    }
  }

  /// Of `positions`, taps [kw, kw + taps), where tap kw meets an output.
  void add_taps(std::int64_t kh, std::int64_t kw, std::int64_t taps, Positions positions, float* row) const {
    const Positions met = meeting(axis_, region_.columns, kw, positions);
    if (met.first >= met.last) return;
    const float* from =
        products_ + (met.first - all_.first) * product_row(g_) + (kh * axis_.kernel + kw) * g_.channels_out;
    const std::int64_t ow = axis_.stride * met.first + axis_.dilation * kw - axis_.pad;
    HWY_DYNAMIC_DISPATCH(add_runs)
    ({.count = met.last - met.first,
      .n = taps * g_.channels_out,
      .from_step = product_row(g_),
      .to_step = axis_.stride * g_.channels_out},
     from, row + ow * g_.channels_out);
  }

  const Geometry& g_;
  const Axis& axis_;
  const Region& region_;
  std::int64_t ih_;
  Positions all_;
  const float* products_;
  float* y_;
};

/// The products of `count` input positions from `first` on.
void scatter_block(const Geometry& g, const Region& region, std::int64_t first, std::int64_t count,
                   const float* products, float* y) {
  const std::int64_t end = first + count;
  while (first < end) {
    const std::int64_t ih = first / g.horizontal.in;
    const std::int64_t row = ih * g.horizontal.in;
    const std::int64_t row_end = std::min(row + g.horizontal.in, end);
    Scatter(g, region, ih, {first - row, row_end - row}, products, y)();
    products += (row_end - first) * product_row(g);
    first = row_end;
  }
}

/// The numbers of a region of the image `y`, which are contiguous along a row.
struct OutputRows {
  OutputRows(const Geometry& g, const Region& region, float* y)
      : first(y + (region.rows.begin * g.horizontal.out + region.columns.begin) * g.channels_out),
        count(region.rows.end - region.rows.begin),
        length((region.columns.end - region.columns.begin) * g.channels_out),
        step(g.horizontal.out * g.channels_out) {}

  float* first;
  std::int64_t count;
  std::int64_t length;
  std::int64_t step;  ///< from a row to the next
};

/// Every output is the bias at first: a row of them is written by doubling what is there, the others are copies.
void fill_bias(const OutputRows& rows, std::int64_t channels, const float* bias) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < rows.count; ++i) std::fill_n(rows.first + i * rows.step, rows.length, 0.0F);
    return;
  }
  std::copy_n(bias, channels, rows.first);
  for (std::int64_t done = channels; done < rows.length; done *= 2)
    std::copy_n(rows.first, std::min(done, rows.length - done), rows.first + done);
  for (std::int64_t i = 1; i < rows.count; ++i) std::copy_n(rows.first, rows.length, rows.first + i * rows.step);
}

/// The inputs that meet outputs of a range.
Range input_range(const Axis& a, const Range& outputs) {
  const std::int64_t reach = (a.kernel - 1) * a.dilation;
  const std::int64_t first = std::max<std::int64_t>(outputs.begin + a.pad - reach, 0);
  const std::int64_t last = outputs.end - 1 + a.pad;
  const std::int64_t begin = (first + a.stride - 1) / a.stride;
  return {std::min(begin, a.in), last < 0 ? 0 : std::min(last / a.stride + 1, a.in)};
}

/// Writes a panel of w [output channels, taps, input channels].
void pack_panel(const Geometry& g, const float* w, std::int64_t panel, float* to) {
  for (std::int64_t i = 0; i < gemm::kPanel; ++i) {
    const std::int64_t column = panel * gemm::kPanel + i;
    const std::int64_t row = column % g.channels_out * taps(g) + column / g.channels_out;
    const float* from = column < columns(g) ? w + row * g.channels_in : nullptr;
    for (std::int64_t k = 0; k < g.channels_in; ++k) to[k * gemm::kPanel + i] = from != nullptr ? from[k] : 0.0F;
  }
}

}  // namespace

bool columns_supports(const OpCall& call) {
  if (linear_form(call.in(0), call.in(1)) != LinearForm::kFloat || !all_dense(call) || call.out().elements() == 0)
    return false;
  const Geometry g = geometry_of(call);
  if (g.groups != 1 || g.group_in() < 1) return false;
  const std::int64_t packed = columns_packed_bytes(call);
  return packed <= kSmallPackedBytes || packed <= 2 * call.in(1).bytes();
}

Footprint columns_footprint(const OpCall& call, int threads) {
  const Geometry g = geometry_of(call);
  Footprint footprint;
  footprint.scratch_bytes = block_of(g) * product_row(g) * kFloat * (shares_outputs(g, threads) ? threads : 1);
  return footprint;
}

std::int64_t columns_packed_bytes(const OpCall& call) {
  const Geometry g = geometry_of(call);
  return gemm::packed_floats(g.channels_in, columns(g)) * kFloat;
}

void columns_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  const Geometry g = geometry_of(call);
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  parallel_ranges(threads, gemm::panel_count(columns(g)), gemm::packing_grain(g.channels_in),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t panel = begin; panel < end; ++panel)
                      pack_panel(g, w, panel, packed + panel * g.channels_in * gemm::kPanel);
                  });
}

namespace {

/// All products of a block of input positions. Threads share the panels of weights, or the positions where there are
/// too few panels.
void multiply_block(const Threads& threads, const gemm::LeftRows& left, const float* weights, std::int64_t n,
                    const gemm::Result& products) {
  constexpr std::int64_t kWork = 100'000;
  const std::int64_t panels = gemm::panel_count(n);
  if (panels >= threads.count) {
    const std::int64_t work = std::max<std::int64_t>(left.rows * left.length * gemm::kPanel, 1);
    parallel_ranges(threads, panels, kWork / work + 1, [&](std::int64_t begin, std::int64_t end) {
      gemm::multiply(left, {.data = weights, .n = n, .first = begin, .last = end}, products);
    });
    return;
  }
  const std::int64_t row_work = std::max<std::int64_t>(left.length * n, 1);
  parallel_ranges(threads, left.rows, Grain(kWork / row_work + 1, gemm::kMaxTileRows),
                  [&](std::int64_t begin, std::int64_t end) {
                    gemm::LeftRows part = left;
                    part.data += begin * left.row_stride;
                    part.rows = end - begin;
                    gemm::Result result = products;
                    result.data += begin * products.row_stride;
                    gemm::multiply(part, {.data = weights, .n = n, .first = 0, .last = panels}, result);
                  });
}

/// An item of the batch.
struct Item {
  const Invocation& call;
  const Geometry& g;
  const float* x;
  float* y;

  /// The products are multiplied by `threads`; there is room for a block of them.
  void compute(const Threads& threads, const Region& region, float* products) const {
    const OutputRows outputs(g, region, y);
    fill_bias(outputs, g.channels_out, call.has(2) ? call.input<float>(2) : nullptr);
    const std::int64_t block = block_of(g);
    const Range in = input_positions(region);
    for (std::int64_t first = in.begin, next; first < in.end; first = next) {
      // Blocks end at the same positions whatever the region, as sums depend on them.
      next = std::min((first / block + 1) * block, in.end);
      const gemm::LeftRows left{.data = x + first * g.channels_in,
                                .rows = next - first,
                                .row_stride = g.channels_in,
                                .length = g.channels_in};
      multiply_block(threads, left, call.input<float>(1), product_row(g),
                     {.data = products, .row_stride = product_row(g)});
      scatter_block(g, region, first, left.rows, products, y);
    }
    activate_rows(call.as<ConvTranspose2dParams>().activation, outputs.first, outputs.count, outputs.step,
                  outputs.length);
  }

 private:
  /// The input positions that meet a region, of whole rows unless the item is a sequence.
  Range input_positions(const Region& region) const {
    if (is_sequence(g)) return input_range(g.horizontal, region.columns);
    const Range rows = input_range(g.vertical, region.rows);
    return {rows.begin * g.horizontal.in, rows.end * g.horizontal.in};
  }
};

}  // namespace

Status run_columns(const Invocation& call) {
  const Geometry g =
      conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
  const std::int64_t positions = g.vertical.in * g.horizontal.in;
  const std::int64_t image = g.vertical.out * g.horizontal.out * g.channels_out;
  const auto item = [&](std::int64_t n) {
    return Item{call, g, call.input<float>(0) + n * positions * g.channels_in, call.output<float>() + n * image};
  };
  auto* products = reinterpret_cast<float*>(call.scratch);
  const std::int64_t outputs = cut_axis(g).out;
  const std::int64_t block_floats = block_of(g) * product_row(g);
  // A plan for more threads than items, which share products, has room for one block.
  const bool has_room = call.scratch_bytes >= block_floats * call.threads->count * kFloat;
  if (!has_room || !shares_outputs(g, call.threads->count)) {
    for (std::int64_t n = 0; n < g.batch; ++n) item(n).compute(*call.threads, region_of(g, {0, outputs}), products);
    return ok_status();
  }
  parallel_slots(
      *call.threads, g.batch * outputs, output_grain(g), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
        for (std::int64_t at = begin, next; at < end; at = next) {
          const std::int64_t first = at / outputs * outputs;
          next = std::min(first + outputs, end);
          item(at / outputs).compute({}, region_of(g, {at - first, next - first}), products + slot * block_floats);
        }
      });
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
#endif
