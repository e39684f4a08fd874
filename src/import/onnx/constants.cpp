// ONNX operators whose result is known when the model is imported: constants and facts about shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/onnx/lowering.h"
#include "ops/data/range/range.h"

namespace bantam::import::onnx {
namespace {

template <typename T>
ValueId constant_of(NodeLowering& n, const std::vector<T>& elements, bool scalar) {
  if (n.failed()) return kNone;
  const std::int64_t dims[] = {static_cast<std::int64_t>(elements.size())};
  return n.builder().constant<T>("", scalar ? std::span<const std::int64_t>() : std::span<const std::int64_t>(dims),
                                 std::span<const T>(elements));
}

void lower_constant(NodeLowering& n) {
  if (n.has_attr("value")) return n.set_output(0, n.attr_tensor("value"));
  if (n.has_attr("value_float"))
    return n.set_output(0, constant_of<float>(n, {n.attr_float("value_float", 0.0F)}, true));
  if (n.has_attr("value_int")) return n.set_output(0, constant_of<std::int64_t>(n, {n.attr_int("value_int", 0)}, true));
  if (n.has_attr("value_floats")) return n.set_output(0, constant_of(n, n.attr_floats("value_floats"), false));
  if (n.has_attr("value_ints")) return n.set_output(0, constant_of(n, n.attr_ints("value_ints"), false));
  n.fail(
      "none of the attributes value, value_float, value_floats, value_int and value_ints is given; strings and sparse "
      "tensors are not supported");
}

void lower_constant_of_shape(NodeLowering& n) {
  const auto shape = n.integers(0, "shape");
  ValueId value = n.has_attr("value") ? n.attr_tensor("value") : n.scalar(0.0F);
  if (!n.failed() && n.desc(value).elements() != 1)
    n.fail(fmt::format("attribute 'value' must have one element, it is {}", format_desc(n.desc(value))),
           StatusCode::kInvalidModel);
  value = n.reshape(value, {});
  n.set_output(0, n.expand(value, shape));
}

void lower_shape(NodeLowering& n) {
  const auto dims = n.dims(n.input(0));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto position = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const std::int64_t start = position(n.attr_int("start", 0));
  const std::int64_t end = std::max(start, position(n.attr_int("end", rank)));
  n.set_output(0, n.integers_constant(
                      std::span(dims).subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start))));
}

void lower_size(NodeLowering& n) {
  const std::int64_t elements = n.desc(n.input(0)).elements();
  n.set_output(0, n.reshape(n.integers_constant(std::array{elements}), {}));
}

void lower_range(NodeLowering& n) {
  std::vector<ValueId> scalars;
  for (int i = 0; i < 3; ++i) {
    const ValueId id = n.size_of(n.input(i));
    if (n.failed()) return;
    scalars.push_back(n.reshape(id, {}));
    if (n.is_constant(id)) continue;
    const std::string name = printable(n.proto().inputs[static_cast<std::size_t>(i)]);
    return n.fail(
        fmt::format("operand {} '{}' decides the size of the result, so it must be known when the model is "
                    "imported; give it a fixed value: --set {}=..., or say how much its input counts at most: "
                    "--count INPUT=...",
                    i, name, name));
  }
  n.set_output(0, n.emit(ops::kRange, std::move(scalars)));
}

void lower_eye_like(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t diagonal = n.attr_int("k", 0);
  const auto code = n.attr_int32("dtype", 0);
  const ElementType type = n.has_attr("dtype") ? element_type(code) : n.type(x);
  if (!n.failed() && n.rank(x) != 2) n.fail("the operand must have rank 2", StatusCode::kInvalidModel);
  if (n.failed()) return;
  const std::int64_t rows = n.desc(x).dims[0];
  const std::int64_t columns = n.desc(x).dims[1];
  // Element (i, j) is one where j - i equals the diagonal.
  const auto count_from_zero = [&](std::int64_t size) {
    return n.emit(ops::kRange, {n.scalar(ElementType::kI64, 0), n.scalar(ElementType::kI64, static_cast<double>(size)),
                                n.scalar(ElementType::kI64, 1)});
  };
  const ValueId row = n.reshape(count_from_zero(rows), {rows, 1});
  const ValueId shifted =
      n.binary(ops::BinaryFunction::kAdd, row, n.reshape(n.integers_constant(std::array{diagonal}), {}));
  n.set_output(0, n.cast(n.binary(ops::BinaryFunction::kEqual, count_from_zero(columns), shifted), type));
}

constexpr std::int64_t kNewest = OperatorRow::kNewest;
constexpr OperatorRow kRows[] = {
    {"", "Constant", 1, kNewest, lower_constant}, {"", "ConstantOfShape", 9, kNewest, lower_constant_of_shape},
    {"", "EyeLike", 9, kNewest, lower_eye_like},  {"", "Range", 11, kNewest, lower_range},
    {"", "Shape", 1, kNewest, lower_shape},       {"", "Size", 1, kNewest, lower_size},
};

}  // namespace

std::span<const OperatorRow> constant_operators() { return kRows; }

}  // namespace bantam::import::onnx
