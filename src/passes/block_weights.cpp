#include "passes/block_weights.h"

#include <algorithm>

#include "ops/nn/matmul/matmul.h"
#include "ops/nn/matmul_blocks/matmul_blocks.h"
#include "passes/quantized_values.h"

namespace bantam::passes {
namespace {

using graph::kNone;
using graph::ValueId;

/// The integers of a matrix [K,N] by column and k, and the grid of each block of a column.
class Matrix {
 public:
  Matrix(const graph::QuantizedSource& source, const TensorDesc& desc, bool transposed)
      : source_(source),
        columns_(desc.dims[transposed ? 0 : 1]),
        k_(desc.dims[transposed ? 1 : 0]),
        column_stride_(transposed ? k_ : 1),
        k_stride_(transposed ? 1 : columns_),
        transposed_(transposed),
        blocked_(source.block != 0),
        per_column_(source.scales.size() > 1) {}

  /// The scales vary only as matmul_blocks takes them.
  static bool fits(const graph::QuantizedSource& source, bool transposed) {
    const int k_axis = transposed ? 1 : 0;
    if (source.block != 0) return source.axis == k_axis && source.block >= 2 && source.block % 2 == 0;
    return source.scales.size() == 1 || source.axis != k_axis;
  }

  std::int64_t columns() const { return columns_; }
  std::int64_t k() const { return k_; }
  std::int64_t block_size() const { return blocked_ ? source_.block : std::max<std::int64_t>((k_ + 1) / 2 * 2, 2); }
  std::int64_t blocks() const { return (k_ + block_size() - 1) / block_size(); }

  int number(std::int64_t column, std::int64_t k) const {
    const auto byte = source_.integers.bytes[static_cast<std::size_t>(column * column_stride_ + k * k_stride_)];
    return source_.type == ElementType::kI8 ? static_cast<std::int8_t>(byte) : std::to_integer<int>(byte);
  }
  float scale(std::int64_t column, std::int64_t block) const { return source_.scales[index(column, block)]; }
  std::int32_t zero_point(std::int64_t column, std::int64_t block) const {
    return source_.zero_points[index(column, block)];
  }
  bool is_signed() const { return source_.type == ElementType::kI8; }

 private:
  std::size_t index(std::int64_t column, std::int64_t block) const {
    if (!blocked_) return per_column_ ? static_cast<std::size_t>(column) : 0;
    return static_cast<std::size_t>(transposed_ ? column * blocks() + block : block * columns_ + column);
  }

  const graph::QuantizedSource& source_;
  std::int64_t columns_;
  std::int64_t k_;
  std::int64_t column_stride_;
  std::int64_t k_stride_;
  bool transposed_;
  bool blocked_;
  bool per_column_;
};

/// True when all numbers and zero points fit into 4 bits.
bool fits_nibbles(const Matrix& m) {
  const int low = m.is_signed() ? -8 : 0;
  const auto fits = [low](int number) { return number >= low && number <= low + 15; };
  for (std::int64_t column = 0; column < m.columns(); ++column) {
    for (std::int64_t k = 0; k < m.k(); ++k)
      if (!fits(m.number(column, k))) return false;
    for (std::int64_t block = 0; block < m.blocks(); ++block)
      if (!fits(m.zero_point(column, block))) return false;
  }
  return true;
}

ValueId packed_weights(Rewriter& rewriter, const Matrix& m, int bits) {
  const std::int64_t block_bytes = m.block_size() * bits / 8;
  const std::int64_t dims[] = {m.columns(), m.blocks(), block_bytes};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(m.columns() * m.blocks() * block_bytes));
  const int offset = m.is_signed() ? 1 << (bits - 1) : 0;
  for (std::int64_t column = 0; column < m.columns(); ++column)
    for (std::int64_t k = 0; k < m.k(); ++k) {
      const auto q = static_cast<unsigned>(m.number(column, k) + offset);
      const std::int64_t position = column * m.blocks() * m.block_size() + k;
      auto& byte = bytes[static_cast<std::size_t>(position * bits / 8)];
      byte = static_cast<std::uint8_t>(bits == 8 ? q : byte | q << (position % 2 * 4));
    }
  return rewriter.constant<std::uint8_t>(dims, bytes);
}

/// Zero points as unsigned numbers, or kNone when they are the middle of the range.
ValueId packed_zero_points(Rewriter& rewriter, const Matrix& m, int bits) {
  const int middle = 1 << (bits - 1);
  const int offset = m.is_signed() ? middle : 0;
  std::vector<std::uint8_t> numbers;
  for (std::int64_t column = 0; column < m.columns(); ++column)
    for (std::int64_t block = 0; block < m.blocks(); ++block)
      numbers.push_back(static_cast<std::uint8_t>(m.zero_point(column, block) + offset));
  if (std::all_of(numbers.begin(), numbers.end(), [=](std::uint8_t z) { return z == middle; })) return kNone;
  const std::int64_t dims[] = {m.columns(), m.blocks()};
  return rewriter.constant<std::uint8_t>(dims, numbers);
}

}  // namespace

std::optional<ValueId> multiply_by_blocks(Rewriter& rewriter, const graph::Node& node) {
  if (!node.is(ops::kMatmul)) return std::nullopt;
  const auto& p = node.as<ops::MatmulParams>();
  const TensorDesc& b = rewriter.desc(node.inputs[1]);
  const bool plain = p.transpose_a == 0 && p.activation.function == ops::UnaryFunction::kIdentity;
  if (!plain || b.rank != 2 || b.elements() == 0 || rewriter.desc(node.inputs[0]).type != ElementType::kF32)
    return std::nullopt;
  const auto source = quantized_source(rewriter, node.inputs[1]);
  const bool transposed = p.transpose_b != 0;
  if (!source || !is_8_bit(source->type) || !Matrix::fits(*source, transposed)) return std::nullopt;
  const Matrix m(*source, b, transposed);
  const int bits = fits_nibbles(m) ? 4 : 8;
  std::vector<float> scales;
  for (std::int64_t column = 0; column < m.columns(); ++column)
    for (std::int64_t block = 0; block < m.blocks(); ++block) scales.push_back(m.scale(column, block));
  const std::int64_t dims[] = {m.columns(), m.blocks()};
  const ops::MatmulBlocksParams params{bits, static_cast<std::int32_t>(m.block_size())};
  std::vector<ValueId> inputs{node.inputs[0], packed_weights(rewriter, m, bits), rewriter.constant<float>(dims, scales),
                              packed_zero_points(rewriter, m, bits), node.inputs.size() > 2 ? node.inputs[2] : kNone};
  while (inputs.back() == kNone) inputs.pop_back();
  return rewriter.emit(ops::kMatmulBlocks, params, std::move(inputs));
}

}  // namespace bantam::passes
