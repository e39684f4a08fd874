// conv2d in f32 on weights in 16 bits or fewer: some panels at a time are widened into scratch, where the f32 kernel
// multiplies all pixels by them. Without room for one panel of whole windows, pieces of k are gathered from all pixels
// in turn, and results carry on where the last piece left them. A single window is multiplied by panels that are
// widened in registers.
//
// The kernel that computes in 16 bits too rounds windows instead (nn/gemm/gemm_f16.h), and is the one above on
// processors without such arithmetic and for single windows, which take as long as it takes to read the weights.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/gemm_pixels.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/gemm/gemm_f16.h"
#include "ops/nn/gemm/narrow_panels.h"

namespace bantam::ops::conv2d {
namespace {

constexpr std::int64_t kFloat = sizeof(float);

Problem problem_of(const OpCall& call) {
  return make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t pixel_count(const Problem& p) { return static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w; }

/// Scratch of one thread: panels that are wide, then windows.
struct Slot {
  std::int64_t wide = 0;  ///< bytes
  std::int64_t windows = 0;

  std::int64_t bytes() const noexcept { return align_up(wide, kAlignment) + align_up(windows, kAlignment); }
};

/// Pixels that may be computed at once wherever the result overlaps x: each time all weights are widened again.
constexpr std::int64_t kChunkPixels = gemm::HalfRoom::kMostRows;

gemm::WideFloats room_for_panels(const OpCall& call, const Problem& p) {
  return gemm::wide_floats(p.k, p.group_outputs, call.in(0).elements() + call.out().elements());
}

Slot least_slot(const OpCall& call, const Problem& p) {
  if (pixel_count(p) == 1) return {0, p.k * kFloat};
  const std::int64_t least = room_for_panels(call, p).least;
  // Windows in pieces as long as those of the panel.
  const std::int64_t windows = least / gemm::kPanel * gemm::kMaxTileRows;
  return {least * kFloat, std::max(gemm_tile_bytes(call).least, windows * kFloat)};
}

Slot useful_slot(const OpCall& call, const Problem& p) {
  const Slot least = least_slot(call, p);
  if (pixel_count(p) == 1) return least;
  return {std::max(least.wide, room_for_panels(call, p).useful * kFloat),
          std::max(least.windows, gemm_tile_bytes(call).useful)};
}

gemm::NarrowPanels group_panels(const std::byte* packed, const Problem& p, ElementType type, std::int64_t group) {
  return {type, packed + group * gemm::narrow_bytes(type, p.k, p.group_outputs), p.k, p.group_outputs};
}

/// Pixels from `index` on that can be multiplied where they lie: one tap, and equal distances.
std::int64_t pixels_in_place(const Problem& p, std::int64_t index, std::int64_t end) {
  if (!p.always_inside) return 0;
  return p.one_run ? end - index : std::min(end - index, p.g.y.w - index % p.g.y.w);
}

/// The window of output pixel `at` where it lies, if it has one tap; numbers from first_k on.
const float* window_in_place(const Problem& p, const float* x, const Pixel& at, std::int64_t first_k) {
  return x + p.g.x.offset(at.n, window_origin(p.g.vertical, at.y), window_origin(p.g.horizontal, at.x)) + first_k;
}

/// Numbers [first_k, first_k + count) of the windows of pixels [begin, end), times `weights`.
void convolve_piece(const Problem& p, const float* x, const gemm::RightPanels& weights, gemm::Result y,
                    std::int64_t first_k, std::int64_t count, std::int64_t begin, std::int64_t end, float* windows,
                    std::int64_t floats) {
  const std::int64_t most = std::min(floats / count, gemm::tile_rows());
  float* const y_base = y.data;
  y.row_stride = p.g.y.w_stride;
  for (std::int64_t index = begin; index < end;) {
    const Pixel at = pixel_at(p.g.y, index);
    y.data = y_base + p.g.y.offset(at.n, at.y, at.x);
    std::int64_t pixels = pixels_in_place(p, index, end);
    gemm::LeftRows rows{.rows = pixels, .length = count};
    if (pixels > 0) {
      rows.data = window_in_place(p, x, at, first_k);
      rows.row_stride = p.g.x.w_stride * p.g.horizontal.stride;
    } else {
      pixels = std::min({most, end - index, p.y_uniform ? most : p.g.y.w - at.x});
      for (std::int64_t i = 0; i < pixels; ++i)
        gather_window(p, x, pixel_at(p.g.y, index + i), first_k, count, windows + i * count, 0.0F);
      rows = {.data = windows, .rows = pixels, .row_stride = count, .length = count};
    }
    gemm::multiply(rows, weights, y);
    index += pixels;
  }
}

/// The scratch of one thread, as it was given.
struct Room {
  float* wide;
  std::int64_t wide_floats;
  float* windows;
  std::int64_t window_floats;
};

Room room_of(const Invocation& call, const Slot& least, const Slot& useful, std::int64_t slot) {
  const std::int64_t bytes = slot_scratch_bytes(call);
  const std::int64_t windows = align_up(bytes >= useful.bytes() ? useful.windows : least.windows, kAlignment);
  auto* memory = reinterpret_cast<float*>(call.scratch + slot * bytes);
  return {memory, (bytes - windows) / kFloat, memory + (bytes - windows) / kFloat, windows / kFloat};
}

void convolve_group(const Problem& p, const float* x, const gemm::NarrowPanels& weights, const gemm::Result& y,
                    std::int64_t begin, std::int64_t end, const Room& room) {
  const std::int64_t last = gemm::panel_count(p.group_outputs);
  gemm::for_each_widened(
      weights, 0, last, {room.wide, room.wide_floats, room.window_floats / gemm::kMaxTileRows},
      [&](const gemm::RightPanels& right, std::int64_t column, std::int64_t first_k, std::int64_t count) {
        const gemm::Result part = gemm::part_of(y, column, first_k, first_k + count == p.k);
        if (count == p.k) {
          convolve_gemm(p, x, right, part, begin, end, room.windows, room.window_floats);
        } else {
          convolve_piece(p, x, right, part, first_k, count, begin, end, room.windows, room.window_floats);
        }
      });
}

/// One group in 16-bit arithmetic.
void convolve_halves(const Problem& p, const float* x, const gemm::NarrowPanels& weights, gemm::Result y,
                     std::int64_t begin, std::int64_t end, const gemm::HalfRoom& room) {
  float* const y_base = y.data;
  y.row_stride = p.g.y.w_stride;
  for (std::int64_t index = begin; index < end;) {
    const Pixel first = pixel_at(p.g.y, index);
    const std::int64_t pixels = p.y_uniform ? end - index : std::min(end - index, p.g.y.w - first.x);
    y.data = y_base + p.g.y.offset(first.n, first.y, first.x);
    const float* const pixels_in_order = p.one_run ? window_in_place(p, x, first, 0) : nullptr;
    const auto window = [&](std::int64_t i, std::int64_t first_k, std::int64_t count, float* gathered) {
      if (p.one_run) return pixels_in_order + i * p.g.x.w_stride + first_k;
      const Pixel at = pixel_at(p.g.y, index + i);
      if (p.always_inside) return window_in_place(p, x, at, first_k);
      gather_window(p, x, at, first_k, count, gathered, 0.0F);
      return static_cast<const float*>(gathered);
    };
    multiply_half_rows(pixels, window, weights, 0, gemm::panel_count(p.group_outputs), y, room);
    index += pixels;
  }
}

/// One output pixel: its window is one row.
void multiply_window(const Invocation& call, const Problem& p, const float* x, const gemm::NarrowPanels& weights,
                     const gemm::Result& y) {
  auto* window = reinterpret_cast<float*>(call.scratch);
  gather_window(p, x, Pixel{}, 0, p.k, window, 0.0F);
  const std::int64_t grain = std::max<std::int64_t>(100'000 / (gemm::kPanel * p.k), 8);
  parallel_ranges(*call.threads, gemm::panel_count(p.group_outputs), grain,
                  [&](std::int64_t first, std::int64_t last) { multiply_row(window, weights, first, last, y); });
}

}  // namespace

Footprint narrow_footprint(const OpCall& call, int threads) {
  const Problem p = problem_of(call);
  const int slots = pixel_count(p) == 1 ? 1 : threads;
  return {.scratch_bytes = least_slot(call, p).bytes() * slots,
          .useful_scratch_bytes = useful_slot(call, p).bytes() * slots,
          .lead_bytes = p.g.groups == 1 ? lead_bytes(call, p.g, kChunkPixels, threads) : Footprint::kNoOverlap};
}

std::int64_t narrow_packed_bytes(const OpCall& call, int input, ElementType type) {
  if (input != 1) return 0;
  const Problem p = problem_of(call);
  return p.g.groups * gemm::narrow_bytes(type, p.k, p.group_outputs);
}

void narrow_pack(const OpCall& call, int /*input*/, ElementType type, std::byte* destination) {
  const Problem p = problem_of(call);
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  const std::int64_t bytes = gemm::narrow_bytes(type, p.k, p.group_outputs);
  for (std::int64_t group = 0; group < p.g.groups; ++group)
    gemm::pack_narrow(type, data + group * p.group_outputs * p.k, p.k, p.group_outputs, 1, p.k,
                      destination + group * bytes);
}

void narrow_restore(const OpCall& call, int /*input*/, ElementType type, const std::byte* packed, float* elements) {
  const Problem p = problem_of(call);
  for (std::int64_t group = 0; group < p.g.groups; ++group)
    gemm::restore_narrow(group_panels(packed, p, type, group), 1, p.k, elements + group * p.group_outputs * p.k);
}

namespace {

/// Calls compute(x, weights, y) for each group, with what is the group's.
template <typename F>
void for_each_group(const Invocation& call, const Problem& p, ElementType type, F compute) {
  const auto* bias = optional_input<float>(call, 2);
  for (std::int64_t group = 0; group < p.g.groups; ++group) {
    const std::int64_t first = group * p.group_outputs;
    compute(call.input<float>(0) + group * p.group_inputs, group_panels(call.input<std::byte>(1), p, type, group),
            gemm::Result{call.output<float>() + first, 0, bias != nullptr ? bias + first : nullptr,
                         call.as<Conv2dParams>().activation});
  }
}

/// Pixels that are worth a thread.
constexpr std::int64_t kGrain = gemm::kMaxTileRows * 4;

}  // namespace

Status run_narrow(const Invocation& call, ElementType type) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  const std::int64_t pixels = pixel_count(p);
  if (pixels == 1) {
    for_each_group(call, p, type, [&](const float* x, const gemm::NarrowPanels& weights, const gemm::Result& y) {
      multiply_window(call, p, x, weights, y);
    });
    return ok_status();
  }
  const OpCall shapes{call.params, call.inputs, call.outputs};
  const Slot least = least_slot(shapes, p);
  const Slot useful = useful_slot(shapes, p);
  parallel_slots(*call.threads, pixels, kGrain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    const Room room = room_of(call, least, useful, slot);
    for_each_group(call, p, type, [&](const float* x, const gemm::NarrowPanels& weights, const gemm::Result& y) {
      for (std::int64_t first = begin, next; first < end; first = next) {
        next = std::min(first + pixels_at_once(call, p.g, first, kChunkPixels), end);
        convolve_group(p, x, weights, y, first, next, room);
      }
    });
  });
  return ok_status();
}

Footprint half_footprint(const OpCall& call, int threads) {
  const Problem p = problem_of(call);
  Footprint footprint = narrow_footprint(call, threads);
  const std::int64_t pixels = pixel_count(p);
  if (pixels == 1) return footprint;
  gemm::HalfRoom::add_to(footprint, p.k, pixels, threads);
  return footprint;
}

Status run_half(const Invocation& call, ElementType type) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  const std::int64_t pixels = pixel_count(p);
  if (pixels == 1 || !gemm::half_products()) return run_narrow(call, type);
  const std::int64_t slot_bytes = slot_scratch_bytes(call);
  parallel_slots(*call.threads, pixels, kGrain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    const gemm::HalfRoom room(call.scratch + slot * slot_bytes, slot_bytes, p.k, end - begin);
    for_each_group(call, p, type, [&](const float* x, const gemm::NarrowPanels& weights, const gemm::Result& y) {
      convolve_halves(p, x, weights, y, begin, end, room);
    });
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d
