// matmul_affine on packed panels (nn/gemm/gemm_i8.h): a block of rows of a is widened to int16 with the zero points
// subtracted, and multiplied by b, which the compiler has packed when it is constant and which is packed into scratch
// otherwise.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/matmul_affine/kernels.h"

namespace bantam::ops::matmul_affine {
namespace {

constexpr std::int64_t kBlockRows = gemm::kMaxTileRows;

MatmulGeometry call_geometry(const OpCall& call) {
  return geometry_of(call.as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t row_numbers(const MatmulGeometry& g) { return 2 * gemm::pair_count(g.k); }

/// One thread's scratch: a block of widened rows.
std::int64_t block_bytes(const MatmulGeometry& g) {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  return align_up(kBlockRows * row_numbers(g) * kNumber, kAlignment);
}

/// How many panels one task takes: about ten microseconds of work.
std::int64_t panel_grain(const MatmulGeometry& g) {
  const std::int64_t rows = std::min<std::int64_t>(kBlockRows, g.m);
  return std::max<std::int64_t>(200'000 / (gemm::kPanel * g.k * rows), 4);
}

/// The constants of one application, while it runs.
template <typename Y>
struct Product {
  const Invocation& call;
  const MatmulGeometry& g;
  AffineScaler scaler;
  ZeroPoints a_zeros;
  ZeroPoints b_zeros;
  Y* y;

  void widen_row(const std::byte* a, std::int64_t m, std::int16_t* to) const {
    const std::byte* row = a + m * g.a.row_stride;
    if (call.in(0).type == ElementType::kU8) {
      gemm::widen(reinterpret_cast<const std::uint8_t*>(row), g.k, a_zeros[m] + 128, to);
    } else {
      gemm::widen(reinterpret_cast<const std::int8_t*>(row), g.k, a_zeros[m], to);
    }
    if (g.k % 2 != 0) to[g.k] = 0;
  }

  /// Rows [m, m + kBlockRows) of one product, panels [first, last) of b.
  void block(const std::byte* a, const std::int8_t* panels, Y* out, std::byte* scratch, std::int64_t m,
             std::int64_t first, std::int64_t last) const {
    auto* rows = reinterpret_cast<std::int16_t*>(scratch);
    const std::int64_t count = std::min<std::int64_t>(kBlockRows, g.m - m);
    for (std::int64_t i = 0; i < count; ++i) widen_row(a, m + i, rows + i * row_numbers(g));
    const gemm::LeftRowsI16 left{rows, count, gemm::pair_count(g.k)};
    gemm::AffineResult<Y> result{out + m * g.y.row_stride, g.y.row_stride, scaler, nullptr, b_zeros};
    std::int32_t sums[kBlockRows];
    if (!b_zeros.are_zero()) {
      gemm::sum_rows(left, sums);
      result.row_sums = sums;
    }
    gemm::multiply(left, gemm::RightPanelsI8{panels, g.n, first, last}, result);
  }

  /// One product, rows or panels in parallel.
  void multiply(const std::byte* a, const std::int8_t* panels, Y* out) const {
    const std::int64_t count = gemm::panel_count(g.n);
    const auto scratch = [&](std::int64_t slot) { return call.scratch + slot * block_bytes(g); };
    if (g.m > kBlockRows) {
      parallel_slots(*call.threads, g.m, kBlockRows, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
        for (std::int64_t m = begin; m < end; m += kBlockRows) block(a, panels, out, scratch(slot), m, 0, count);
      });
    } else {
      parallel_slots(*call.threads, count, panel_grain(g),
                     [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
                       block(a, panels, out, scratch(slot), 0, first, last);
                     });
    }
  }
};

void flip_signs(std::int8_t* packed, std::int64_t n, std::uint8_t flip) {
  if (flip == 0) return;
  for (std::int64_t i = 0; i < n; ++i) packed[i] = static_cast<std::int8_t>(packed[i] ^ static_cast<std::int8_t>(flip));
}

/// Panels [first, last) of one b.
void pack_range(const MatmulGeometry& g, const std::int8_t* b, std::uint8_t flip, std::int64_t first, std::int64_t last,
                std::int8_t* packed) {
  const std::int64_t columns = std::min<std::int64_t>(last * gemm::kPanel, g.n) - first * gemm::kPanel;
  const std::int64_t panel_bytes = gemm::packed_i8_bytes(g.k, gemm::kPanel);
  gemm::pack_panels_i8(b + first * gemm::kPanel * g.b.column_stride, g.k, columns, g.b.row_stride, g.b.column_stride,
                       packed + first * panel_bytes);
  // What pads the panels may have any value: it meets zeros of the left matrix, or belongs to no column.
  flip_signs(packed + first * panel_bytes, (last - first) * panel_bytes, flip);
}

template <typename Body>
void run(const Invocation& call, const MatmulGeometry& g, Body body) {
  const auto& form = call.as<MatmulAffineParams>().form;
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    const Product<Y> product{call,
                             g,
                             make_affine_scaler(call, form),
                             zero_points(call, 0, 4, form.input_zero_point),
                             zero_points(call, 1, 5, form.weights_zero_point),
                             y};
    for_each_element(g.batch, [&](const auto& offsets) {
      body(product, call.input<std::byte>(0) + offsets[1], offsets[2], y + offsets[0]);
    });
  });
}

bool has_elements(const OpCall& call) { return call.out().elements() > 0 && call.in(1).elements() > 0; }

}  // namespace

bool packed_supports(const OpCall& call) {
  return has_elements(call) && call.inputs[1].data != nullptr && call.in(1).rank == 2 && call.in(1).is_dense();
}

Footprint packed_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = block_bytes(call_geometry(call)) * threads};
}

std::int64_t packed_bytes(const OpCall& call, int input) {
  const MatmulGeometry g = call_geometry(call);
  return input == 1 ? gemm::packed_i8_bytes(g.k, g.n) : 0;
}

void pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const MatmulGeometry g = call_geometry(call);
  pack_range(g, static_cast<const std::int8_t*>(call.inputs[1].data), sign_flip(call.in(1).type), 0,
             gemm::panel_count(g.n), reinterpret_cast<std::int8_t*>(destination));
}

Status run_packed(const Invocation& call) {
  const MatmulGeometry plain = geometry_of(call.as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
  // Rows with zero points of their own cannot be counted through a batch.
  const bool per_row = call.has(4) && call.in(4).elements() != 1;
  const MatmulGeometry g = per_row ? plain : fold_batch(plain);
  run(call, g, [&](const auto& product, const std::byte* a, std::int64_t, auto* y) {
    product.multiply(a, call.input<std::int8_t>(1), y);
  });
  return ok_status();
}

bool dynamic_supports(const OpCall& call) { return has_elements(call); }

Footprint dynamic_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = call_geometry(call);
  return {.scratch_bytes = block_bytes(g) * threads + gemm::packed_i8_bytes(g.k, g.n)};
}

Status run_dynamic(const Invocation& call) {
  const MatmulGeometry g = geometry_of(call.as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
  const std::uint8_t flip = sign_flip(call.in(1).type);
  auto* packed =
      reinterpret_cast<std::int8_t*>(call.scratch + block_bytes(g) * std::max<std::int64_t>(call.threads->count, 1));
  const std::int64_t grain = std::max<std::int64_t>(32'768 / (gemm::kPanel * g.k), 1);
  std::int64_t ready = -1;  // offset of the b that is packed
  run(call, g, [&](const auto& product, const std::byte* a, std::int64_t b, auto* y) {
    if (b != ready) {
      parallel_ranges(*call.threads, gemm::panel_count(g.n), grain, [&](std::int64_t first, std::int64_t last) {
        pack_range(g, call.input<std::int8_t>(1) + b, flip, first, last, packed);
      });
      ready = b;
    }
    product.multiply(a, packed, y);
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul_affine
