// matmul_affine on packed panels (nn/gemm/gemm_i8.h): rows of a are multiplied by b, which the compiler has packed when
// it is constant and which is packed into scratch otherwise. Rows with zero points of their own are widened first.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/matmul/int8_grain.h"
#include "ops/nn/matmul_affine/kernels.h"

namespace bantam::ops::matmul_affine {
namespace {

/// Rows of one task.
constexpr std::int64_t kTaskRows = gemm::kMaxTileRows;

MatmulGeometry call_geometry(const OpCall& call) {
  return geometry_of(call.as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
}

/// Of products with one b: all their rows together, unless they have zero points of their own, which cannot be counted
/// through a batch.
template <typename Call>
MatmulGeometry folded_geometry(const Call& call) {
  const MatmulGeometry g = geometry_of(call.template as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
  return call.has(4) && call.in(4).elements() != 1 ? g : fold_batch(g);
}

std::int64_t operand_bytes(const OpCall& call) { return call.in(0).bytes() + call.in(1).bytes() + call.out().bytes(); }

/// The constants of one application, while it runs.
template <typename Y>
struct Product {
  const Invocation& call;
  const MatmulGeometry& g;
  AffineScaler scaler;
  ZeroPoints a_zeros;
  ZeroPoints b_zeros;
  Y* y;
  std::int64_t reserved;  ///< bytes of the scratch that are not for rows

  gemm::ByteForm form(std::int64_t m) const { return gemm::byte_form(sign_flip(call.in(0).type), a_zeros[m]); }

  /// Rows from m on, of which each has a zero point of its own.
  struct WidenedRows {
    const Product& product;
    const std::uint8_t* a;
    std::int64_t m;

    static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                       std::int64_t stride, std::int16_t* to) {
      const WidenedRows& self = *static_cast<const WidenedRows*>(context);
      for (std::int64_t m = self.m + row; m < self.m + row + rows; ++m, to += stride)
        gemm::widen(self.a + m * self.product.g.a.row_stride + first, count, self.product.form(m), to);
    }
  };

  /// Rows [m, end) of one product, panels [first, last) of b.
  void block(const std::uint8_t* a, const std::int8_t* panels, Y* out, std::int64_t slot, std::int64_t m,
             std::int64_t end, std::int64_t first, std::int64_t last) const {
    const std::int64_t bytes = slot_scratch_bytes(call, reserved);
    const gemm::Workspace workspace{reinterpret_cast<std::int16_t*>(call.scratch + reserved + slot * bytes),
                                    bytes / static_cast<std::int64_t>(sizeof(std::int16_t))};
    const WidenedRows widened{*this, a, m};
    gemm::LeftSource rows{.rows = end - m, .k = g.k};
    if (a_zeros.several) {
      rows.gather_numbers = WidenedRows::gather;
      rows.context = &widened;
    } else {
      const gemm::ByteForm of_all = form(0);
      rows.flip = of_all.flip;
      rows.zero = of_all.zero;
      rows.data = a + m * g.a.row_stride;
      rows.row_stride = g.a.row_stride;
    }
    gemm::multiply(rows, workspace, gemm::RightPanelsI8{panels, g.n, first, last},
                   gemm::AffineResult<Y>{out + m * g.y.row_stride, g.y.row_stride, scaler, b_zeros});
  }

  /// One product, rows or panels in parallel.
  void multiply(const std::uint8_t* a, const std::int8_t* panels, Y* out) const {
    const std::int64_t count = gemm::panel_count(g.n);
    if (g.m > kTaskRows) {
      parallel_slots(*call.threads, g.m, int8_row_grain(g),
                     [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                       block(a, panels, out, slot, begin, end, 0, count);
                     });
    } else {
      parallel_slots(*call.threads, count, int8_panel_grain(g),
                     [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
                       block(a, panels, out, slot, 0, g.m, first, last);
                     });
    }
  }
};

/// Panels [first, last) of one b.
void pack_range(const MatmulGeometry& g, const std::int8_t* b, std::uint8_t flip, std::int64_t first, std::int64_t last,
                std::int8_t* packed) {
  const std::int64_t columns = std::min<std::int64_t>(last * gemm::kPanel, g.n) - first * gemm::kPanel;
  gemm::pack_panels_i8_simd(b + first * gemm::kPanel * g.b.column_stride, g.k, columns, g.b.row_stride,
                            g.b.column_stride, flip, packed + first * gemm::panel_bytes(g.k));
}

/// `reserved`: bytes at the front of the scratch that are not for rows.
template <typename Body>
void run(const Invocation& call, const MatmulGeometry& g, std::int64_t reserved, Body body) {
  const auto& form = call.as<MatmulAffineParams>().form;
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    const Product<Y> product{call,
                             g,
                             make_affine_scaler(call, form),
                             zero_points(call, 0, 4, form.input_zero_point),
                             zero_points(call, 1, 5, form.weights_zero_point),
                             y,
                             reserved};
    for_each_element(g.batch, [&](const auto& offsets) {
      body(product, call.input<std::uint8_t>(0) + offsets[1], offsets[2], y + offsets[0]);
    });
  });
}

bool has_elements(const OpCall& call) { return call.out().elements() > 0 && call.in(1).elements() > 0; }

}  // namespace

bool packed_supports(const OpCall& call) {
  return has_elements(call) && call.inputs[1].data != nullptr && call.in(1).rank == 2 && call.in(1).is_dense();
}

Footprint packed_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = folded_geometry(call);
  const gemm::ProductScratch scratch = gemm::product_scratch(g.m, g.k, operand_bytes(call));
  return {.scratch_bytes = scratch.least * threads, .useful_scratch_bytes = scratch.useful * threads};
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
  const MatmulGeometry g = folded_geometry(call);
  run(call, g, 0, [&](const auto& product, const std::uint8_t* a, std::int64_t, auto* y) {
    product.multiply(a, call.input<std::int8_t>(1), y);
  });
  return ok_status();
}

namespace {

/// Of b, packed at the front of the scratch.
std::int64_t panels_bytes(const MatmulGeometry& g) { return align_up(gemm::packed_i8_bytes(g.k, g.n), kAlignment); }

}  // namespace

bool dynamic_supports(const OpCall& call) { return has_elements(call); }

Footprint dynamic_footprint(const OpCall& call, int threads) {
  const MatmulGeometry g = call_geometry(call);
  const gemm::ProductScratch scratch = gemm::product_scratch_up_to(g.m, g.k, operand_bytes(call));
  const std::int64_t panels = panels_bytes(g);
  return {.scratch_bytes = scratch.least * threads + panels, .useful_scratch_bytes = scratch.useful * threads + panels};
}

Status run_dynamic(const Invocation& call) {
  const MatmulGeometry g = geometry_of(call.as<MatmulAffineParams>(), call.in(0), call.in(1), call.out());
  const std::uint8_t flip = sign_flip(call.in(1).type);
  auto* packed = reinterpret_cast<std::int8_t*>(call.scratch);
  const std::int64_t grain = std::max<std::int64_t>(32'768 / (gemm::kPanel * g.k), 1);
  std::int64_t ready = -1;  // offset of the b that is packed
  run(call, g, panels_bytes(g), [&](const auto& product, const std::uint8_t* a, std::int64_t b, auto* y) {
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
