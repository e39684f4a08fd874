// matmul in f32 of a few rows by a matrix that is no constant: it is read once, as it lies, since packing it would take
// longer than the product. Rows of b are added to the results some at a time; a transposed b is multiplied by dots. A
// product by one column is that of one row, which the column is, by the rows as columns.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/matmul/matmul_rows_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::int64_t kRowsAtOnce = 8;  ///< of b: their factors and a sum live in registers
constexpr std::int64_t kDotsAtOnce = 4;
constexpr std::int64_t kUnit = 64;    ///< columns: threads share b in multiples of them
constexpr std::int64_t kStrip = 512;  ///< columns of which kRowsAtOnce rows stay in the first cache for all rows of a
constexpr std::int64_t kStripOfOneRow = 4096;  ///< the results stay there; the longer rows of b, the faster they come

/// y[j] += a[0] b[0][j] + ... + a[kCount - 1] b[kCount - 1][j] for 0 <= j < n, `stride` being the length of b's rows.
template <int kCount>
HWY_INLINE void add_rows(const float* a, const float* b, std::int64_t stride, std::size_t n, float* y) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V factors[kCount];
  unroll<kCount>([&](auto i) HWY_ATTR { factors[i] = hn::Set(d, a[i]); });
  std::size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    V sum = hn::LoadU(d, y + j);
    unroll<kCount>([&](auto i) HWY_ATTR { sum = hn::MulAdd(hn::LoadU(d, b + i * stride + j), factors[i], sum); });
    hn::StoreU(sum, d, y + j);
  }
  if (j == n) return;
  V sum = load_partial(d, y + j, n - j);
  unroll<kCount>([&](auto i)
                     HWY_ATTR { sum = hn::MulAdd(load_partial(d, b + i * stride + j, n - j), factors[i], sum); });
  store_partial(sum, d, y + j, n - j);
}

/// y[j] += b[j] a for 0 <= j < kCount, the rows of b being `stride` apart.
template <int kCount>
HWY_INLINE void add_dots(const float* a, const float* b, std::int64_t stride, std::size_t k, float* y) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[kCount];
  unroll<kCount>([&](auto j) HWY_ATTR { sums[j] = hn::Zero(d); });
  std::size_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const V factor = hn::LoadU(d, a + i);
    unroll<kCount>([&](auto j) HWY_ATTR { sums[j] = hn::MulAdd(hn::LoadU(d, b + j * stride + i), factor, sums[j]); });
  }
  if (i < k) {
    const V factor = load_partial(d, a + i, k - i);
    unroll<kCount>([&](auto j)
                       HWY_ATTR { sums[j] = hn::MulAdd(load_partial(d, b + j * stride + i, k - i), factor, sums[j]); });
  }
  unroll<kCount>([&](auto j) HWY_ATTR { y[j] += hn::GetLane(hn::SumOfLanes(d, sums[j])); });
}

/// Adds the products of all rows with n columns of b, which start at b, to those of y.
void add_product(const MatmulGeometry& g, const float* a, const float* b, std::int64_t n, float* y) {
  std::int64_t k = 0;
  for (; k + kRowsAtOnce <= g.k; k += kRowsAtOnce)
    for (std::int64_t m = 0; m < g.m; ++m)
      add_rows<kRowsAtOnce>(a + m * g.a.row_stride + k, b + k * g.b.row_stride, g.b.row_stride,
                            static_cast<std::size_t>(n), y + m * g.y.row_stride);
  for (; k < g.k; ++k)
    for (std::int64_t m = 0; m < g.m; ++m)
      add_rows<1>(a + m * g.a.row_stride + k, b + k * g.b.row_stride, g.b.row_stride, static_cast<std::size_t>(n),
                  y + m * g.y.row_stride);
}

/// The same where the columns of b are contiguous.
void add_transposed(const MatmulGeometry& g, const float* a, const float* b, std::int64_t n, float* y) {
  const auto k = static_cast<std::size_t>(g.k);
  const std::int64_t stride = g.b.column_stride;
  std::int64_t j = 0;
  for (; j + kDotsAtOnce <= n; j += kDotsAtOnce)
    for (std::int64_t m = 0; m < g.m; ++m)
      add_dots<kDotsAtOnce>(a + m * g.a.row_stride, b + j * stride, stride, k, y + m * g.y.row_stride + j);
  for (; j < n; ++j)
    for (std::int64_t m = 0; m < g.m; ++m)
      add_dots<1>(a + m * g.a.row_stride, b + j * stride, stride, k, y + m * g.y.row_stride + j);
}

/// What sums begin with: numbers of the columns, or one for all. May be null.
struct Bias {
  const float* numbers;
  bool several;
};

/// Columns [begin, end) of one product; the operands start at the matrices' first elements.
void multiply_columns(const MatmulGeometry& g, const float* a, const float* b, const Bias& bias,
                      const Activation& activation, float* y, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = end - begin;
  for (std::int64_t m = 0; m < g.m; ++m) {
    float* row = y + m * g.y.row_stride + begin;
    if (bias.numbers != nullptr && bias.several) {
      std::copy_n(bias.numbers + begin, n, row);
    } else {
      std::fill_n(row, n, bias.numbers != nullptr ? *bias.numbers : 0.0F);
    }
  }
  if (g.b.row_stride == 1) {
    add_transposed(g, a, b + begin * g.b.column_stride, n, y + begin);
  } else {
    add_product(g, a, b + begin, n, y + begin);
  }
  activate_rows(activation, y + begin, g.m, g.y.row_stride, n);
}

/// `turned`: the geometry's a is the call's b.
void multiply_few_rows(const Invocation& call, const MatmulGeometry& g, bool turned) {
  const Bias bias{optional_input<float>(call, 2), !turned};
  const Activation& activation = call.as<MatmulParams>().activation;
  const std::int64_t strip = g.m == 1 ? kStripOfOneRow : kStrip;
  const std::int64_t units = (g.n + kUnit - 1) / kUnit;
  // Work of about ten microseconds, so that small products do not wake other threads.
  const std::int64_t grain = std::max<std::int64_t>(100'000 / (kUnit * g.k * g.m), 1);
  for_each_element(g.batch, [&](const auto& offsets) {
    const float* first_operand = call.input<float>(0) + offsets[1];
    const float* second_operand = call.input<float>(1) + offsets[2];
    const float* a = turned ? second_operand : first_operand;
    const float* b = turned ? first_operand : second_operand;
    float* y = call.output<float>() + offsets[0];
    parallel_ranges(*call.threads, units, grain, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t end = std::min<std::int64_t>(last * kUnit, g.n);
      for (std::int64_t begin = first * kUnit; begin < end; begin += strip)
        multiply_columns(g, a, b, bias, activation, y, begin, std::min(begin + strip, end));
    });
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::matmul {

HWY_EXPORT(multiply_few_rows);

namespace {

constexpr std::int32_t kMostRows = 8;  ///< of more, a packed matrix gains more than it costs

MatmulGeometry geometry(const MatmulParams& p, const TensorDesc& a, const TensorDesc& b, const TensorDesc& y) {
  return fold_batch(matmul_geometry(p, a, b, y));
}

/// Is it a product of contiguous rows by a contiguous column? However many rows, so that parts of them give the same.
bool turns(const MatmulGeometry& g) {
  return g.n == 1 && g.a.column_stride == 1 && g.b.row_stride == 1 && g.y.row_stride == 1;
}

/// y^T = b^T a^T.
MatmulGeometry turned(const MatmulGeometry& g) {
  MatmulGeometry result = g;
  result.m = 1;
  result.n = g.m;
  result.a = {1, g.k, 1, 1};
  result.b = {g.k, g.m, 1, g.a.row_stride};
  result.y = {1, g.m, g.m, 1};
  return result;
}

MatmulGeometry geometry_of(const OpCall& call) {
  return geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
}

}  // namespace

bool column_supports(const OpCall& call) { return dynamic_supports(call) && turns(geometry_of(call)); }

Status run_column(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(multiply_few_rows)(call, turned(geometry_of({call.params, call.inputs, call.outputs})), true);
  return ok_status();
}

bool rows_supports(const OpCall& call) {
  if (!dynamic_supports(call)) return false;
  const MatmulGeometry g = geometry_of(call);
  return g.m <= kMostRows && g.a.column_stride == 1 && (g.b.row_stride == 1 || g.b.column_stride == 1);
}

Status run_rows(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(multiply_few_rows)(call, geometry_of({call.params, call.inputs, call.outputs}), false);
  return ok_status();
}

}  // namespace bantam::ops::matmul
#endif
