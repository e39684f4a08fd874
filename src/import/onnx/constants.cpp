// ONNX operators whose result is known when the model is imported: constants and facts about shapes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

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

/// 0, 1, 2 ...: `count` numbers of that type.
ValueId count_up(NodeLowering& n, ElementType type, std::int64_t count) {
  return n.emit(ops::kRange, {n.scalar(type, 0), n.scalar(type, static_cast<double>(count)), n.scalar(type, 1)});
}

/// A range of integers whose ends are computed at run time: how many there are is measured.
void lower_range_at_run_time(NodeLowering& n, ValueId start, ValueId limit, ValueId step) {
  using ops::BinaryFunction;
  const ElementType type = n.type(start);
  const auto steps = graph::constant_integers(n.builder().graph(), step);
  if ((type != ElementType::kI32 && type != ElementType::kI64) || !steps || steps->size() != 1 || steps->front() == 0)
    return n.fail(
        fmt::format("its size is computed at run time, which is supported for integers and a constant step "
                    "only; give fixed values: --set {}=..., or say how much its input counts at most: "
                    "--count INPUT=...",
                    printable(n.proto().inputs[n.is_constant(start) ? 1 : 0])));
  const auto from = graph::constant_integers(n.builder().graph(), start);
  if (from && from->front() == 0 && steps->front() == 1)
    return n.set_output(0, count_up(n, type, n.size_element(1, "limit", limit, 0, std::nullopt)));
  // Rounded up, towards the limit; where the limit lies behind, the division gives nothing positive.
  const std::int64_t size = std::abs(steps->front());
  const ValueId length =
      steps->front() > 0 ? n.binary(BinaryFunction::kSub, limit, start) : n.binary(BinaryFunction::kSub, start, limit);
  const ValueId rounded = n.binary(BinaryFunction::kAdd, length, n.scalar(type, static_cast<double>(size - 1)));
  const ValueId count =
      n.binary(BinaryFunction::kMax, n.binary(BinaryFunction::kDiv, rounded, n.scalar(type, static_cast<double>(size))),
               n.scalar(type, 0));
  const ValueId numbers = count_up(n, type, n.size_element(1, "limit", count, 0, std::nullopt));
  n.set_output(0, n.binary(BinaryFunction::kAdd, n.binary(BinaryFunction::kMul, numbers, step), start));
}

void lower_range(NodeLowering& n) {
  std::vector<ValueId> scalars;
  bool known = true;
  for (int i = 0; i < 3; ++i) {
    const ValueId id = n.size_of(n.input(i));
    if (n.failed()) return;
    if (n.desc(id).elements() != 1)
      return n.fail(fmt::format("operand {} is {}, expected one number", i, format_desc(n.desc(id))),
                    StatusCode::kInvalidModel);
    scalars.push_back(n.reshape(id, {}));
    known = known && n.is_constant(id);
  }
  if (!known) return lower_range_at_run_time(n, scalars[0], scalars[1], scalars[2]);
  n.set_output(0, n.emit(ops::kRange, std::move(scalars)));
}

void lower_eye_like(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::int64_t diagonal = n.attr_int("k", 0);
  const auto code = n.attr_int32("dtype", 0);
  const ElementType type = n.has_attr("dtype") ? compute_type(element_type(code)) : n.type(x);
  if (!n.failed() && n.rank(x) != 2) n.fail("the operand must have rank 2", StatusCode::kInvalidModel);
  if (n.failed()) return;
  const std::int64_t rows = n.desc(x).dims[0];
  const std::int64_t columns = n.desc(x).dims[1];
  // Element (i, j) is one where j - i equals the diagonal.
  const ValueId row = n.reshape(count_up(n, ElementType::kI64, rows), {rows, 1});
  const ValueId shifted =
      n.binary(ops::BinaryFunction::kAdd, row, n.reshape(n.integers_constant(std::array{diagonal}), {}));
  n.set_output(0,
               n.cast(n.binary(ops::BinaryFunction::kEqual, count_up(n, ElementType::kI64, columns), shifted), type));
}

constexpr OperatorRow kConstantOperators[] = {
    {"", "Constant", 1, kNewest, lower_constant}, {"", "ConstantOfShape", 9, kNewest, lower_constant_of_shape},
    {"", "EyeLike", 9, kNewest, lower_eye_like},  {"", "Range", 11, kNewest, lower_range},
    {"", "Shape", 1, kNewest, lower_shape},       {"", "Size", 1, kNewest, lower_size},
};

}  // namespace

std::span<const OperatorRow> constant_operators() { return kConstantOperators; }

}  // namespace bantam::import::onnx
