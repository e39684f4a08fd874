// ONNX operators that give the same elements another shape or order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "import/onnx/lowering.h"

namespace bantam::import::onnx {
namespace {

/// Keeps products of block sizes far from overflow; larger blocks exceed every tensor.
constexpr std::int64_t kMaxBlock = 1 << 15;

/// Resolves 0 (copy) and -1 (whatever is left) in a shape operand.
std::vector<std::int64_t> resolve_shape(NodeLowering& n, ValueId x, std::vector<std::int64_t> shape, bool allow_zero) {
  const auto from = n.dims(x);
  std::int64_t known = 1;
  std::ptrdiff_t free = -1;
  for (std::size_t i = 0; i < shape.size() && !n.failed(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= from.size()) {
        n.fail(fmt::format("shape [{}] copies dimension {} of {}", fmt::join(shape, ","), i, format_desc(n.desc(x))),
               StatusCode::kInvalidModel);
        break;
      }
      shape[i] = from[i];
    }
    if (shape[i] == -1 && free < 0) {
      free = static_cast<std::ptrdiff_t>(i);
    } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
      n.fail(fmt::format("shape [{}] is not valid", fmt::join(shape, ",")), StatusCode::kInvalidModel);
    }
  }
  if (n.failed() || free < 0) return shape;
  const std::int64_t elements = n.desc(x).elements();
  if (known == 0 || elements % known != 0) {
    n.fail(fmt::format("shape [{}] does not divide the {} elements of {}", fmt::join(shape, ","), elements,
                       format_desc(n.desc(x))),
           StatusCode::kInvalidModel);
    return shape;
  }
  shape[static_cast<std::size_t>(free)] = elements / known;
  return shape;
}

void lower_reshape(NodeLowering& n) {
  const ValueId x = n.input(0);
  const bool allow_zero = n.attr_int("allowzero", 0) != 0;
  n.set_output(0, n.reshape(x, resolve_shape(n, x, n.integers(1, "shape"), allow_zero)));
}

void lower_flatten(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto dims = n.dims(x);
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t axis = n.attr_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    return n.fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank), StatusCode::kInvalidModel);
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (std::int64_t i = 0; i < rank; ++i) (i < axis ? rows : columns) *= dims[static_cast<std::size_t>(i)];
  n.set_output(0, n.reshape(x, {rows, columns}));
}

/// Axes come as an attribute before operator set 13 and as an operand since.
std::vector<std::int64_t> axes_of(NodeLowering& n) { return n.has(1) ? n.integers(1, "axes") : n.attr_ints("axes"); }

void lower_squeeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto dims = n.dims(x);
  const auto values = axes_of(n);
  const auto axes = n.axes(values, n.rank(x));
  std::vector<std::int64_t> kept;
  for (int i = 0; i < n.rank(x); ++i) {
    const bool listed = std::find(axes.begin(), axes.end(), i) != axes.end();
    const std::int64_t size = dims[static_cast<std::size_t>(i)];
    if (listed && size != 1)
      n.fail(fmt::format("axis {} of {} cannot be removed", i, format_desc(n.desc(x))), StatusCode::kInvalidModel);
    if (values.empty() ? size != 1 : !listed) kept.push_back(size);
  }
  n.set_output(0, n.reshape(x, kept));
}

void lower_unsqueeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  auto dims = n.dims(x);
  const auto values = axes_of(n);
  if (values.size() + dims.size() > static_cast<std::size_t>(kMaxRank))
    n.fail(fmt::format("{} more axes make the rank too large, at most {}", values.size(), kMaxRank));
  const auto axes = n.axes(values, n.failed() ? 0 : n.rank(x) + static_cast<int>(values.size()));
  for (const int axis : axes) dims.insert(dims.begin() + axis, 1);
  n.set_output(0, n.reshape(x, dims));
}

void lower_transpose(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int rank = n.rank(x);
  std::vector<int> perm;
  if (n.has_attr("perm")) {
    const auto values = n.attr_ints("perm");
    if (!n.failed() && values.size() != static_cast<std::size_t>(rank))
      n.fail(fmt::format("attribute 'perm' = [{}] does not fit rank {}", fmt::join(values, ","), rank),
             StatusCode::kInvalidModel);
    if (n.failed()) return;
    n.axes(values, rank);  // refuses repeated axes
    for (const std::int64_t value : values) perm.push_back(n.axis(value, rank));
  } else {
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  }
  n.set_output(0, n.transpose(x, perm));
}

/// The size of a block, when it divides what it must.
std::int64_t block_size(NodeLowering& n, ValueId x) {
  const std::int64_t block = n.attr_int("blocksize", 0);
  if (n.failed()) return 1;
  if (n.rank(x) != 4 || block < 1 || block > kMaxBlock) {
    n.fail(fmt::format("attribute 'blocksize' = {} for {} is not valid", block, format_desc(n.desc(x))),
           StatusCode::kInvalidModel);
    return 1;
  }
  return block;
}

void lower_depth_to_space(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t b = block_size(n, x);
  const std::string_view mode = n.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail(fmt::format("attribute 'mode' = '{}' is not supported", printable(mode)));
  if (n.failed()) return;
  const TensorDesc d = n.desc(x);
  if (d.dims[1] % (b * b) != 0)
    return n.fail(fmt::format("{} channels are not a multiple of {} squared", d.dims[1], b), StatusCode::kInvalidModel);
  const std::int64_t c = d.dims[1] / (b * b);
  const ValueId y = mode == "DCR"
                        ? n.transpose(n.reshape(x, {d.dims[0], b, b, c, d.dims[2], d.dims[3]}), {0, 3, 4, 1, 5, 2})
                        : n.transpose(n.reshape(x, {d.dims[0], c, b, b, d.dims[2], d.dims[3]}), {0, 1, 4, 2, 5, 3});
  n.set_output(0, n.reshape(y, {d.dims[0], c, d.dims[2] * b, d.dims[3] * b}));
}

void lower_space_to_depth(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t b = block_size(n, x);
  if (n.failed()) return;
  const TensorDesc d = n.desc(x);
  const std::int64_t h = d.dims[2] / b;
  const std::int64_t w = d.dims[3] / b;
  if (h * b != d.dims[2] || w * b != d.dims[3])
    return n.fail(fmt::format("{} is not a whole number of blocks of {}", format_desc(d), b),
                  StatusCode::kInvalidModel);
  const ValueId y = n.transpose(n.reshape(x, {d.dims[0], d.dims[1], h, b, w, b}), {0, 3, 5, 1, 2, 4});
  n.set_output(0, n.reshape(y, {d.dims[0], d.dims[1] * b * b, h, w}));
}

void lower_expand(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto shape = n.integers(1, "shape");
  const auto from = n.dims(x);
  if (n.failed()) return;
  // The result has the shape of both broadcast together: a 1 in `shape` keeps the operand's dimension.
  std::vector<std::int64_t> dims(std::max(shape.size(), from.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t a = i < from.size() ? from[from.size() - 1 - i] : 1;
    const std::int64_t b = i < shape.size() ? shape[shape.size() - 1 - i] : 1;
    dims[dims.size() - 1 - i] = b == 1 ? a : b;
  }
  n.set_output(0, n.expand(x, dims));
}

constexpr OperatorRow kShapeOperators[] = {
    {"", "DepthToSpace", 1, kNewest, lower_depth_to_space},
    {"", "Expand", 8, kNewest, lower_expand},
    {"", "Flatten", 1, kNewest, lower_flatten},
    {"", "Reshape", 5, kNewest, lower_reshape},
    {"", "SpaceToDepth", 1, kNewest, lower_space_to_depth},
    {"", "Squeeze", 1, kNewest, lower_squeeze},
    {"", "Transpose", 1, kNewest, lower_transpose},
    {"", "Unsqueeze", 1, kNewest, lower_unsqueeze},
};

}  // namespace

std::span<const OperatorRow> shape_operators() { return kShapeOperators; }

}  // namespace bantam::import::onnx
