#include "import/tflite/lowering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/shape.h"
#include "import/tflite/importer.h"
#include "ops/data/concat/concat.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/cast/cast.h"
#include "ops/elementwise/lookup8/lookup8.h"
#include "ops/elementwise/requantize/requantize.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::import::tflite {
namespace {

constexpr TensorDesc kAbsent{};

// A vtable of two entries (its own size 4, table size 4) and the table's distance to it.
alignas(8) constexpr std::uint8_t kEmptyTable[] = {4, 0, 4, 0, 4, 0, 0, 0};

bool is_int32(std::int64_t v) { return v == static_cast<std::int32_t>(v); }

}  // namespace

const std::uint8_t* empty_table() noexcept { return kEmptyTable + 4; }

ops::IntList int_list(std::span<const int> values) {
  ops::IntList list;
  list.size = static_cast<std::int32_t>(std::min<std::size_t>(values.size(), kMaxRank));
  std::copy_n(values.begin(), list.size, list.v);
  return list;
}

ops::IntList int_list(const Dims& values) {
  ops::IntList list;
  list.size = static_cast<std::int32_t>(std::min<std::size_t>(values.size(), kMaxRank));
  for (int i = 0; i < list.size; ++i) list.v[i] = static_cast<std::int32_t>(values[static_cast<std::size_t>(i)]);
  return list;
}

Lowering::Lowering(Importer& importer, const schema::Operator& op, std::string name, std::string operator_name)
    : importer_(importer), op_(op), name_(std::move(name)), operator_name_(std::move(operator_name)) {
  inputs_.assign(count(op_.inputs()), kNoValue);
  for (int i = 0; i < operands(); ++i) {
    if (!has(i) || in_tensor(i).type() == schema::TensorType::RESOURCE) continue;
    auto value = importer_.read(in_index(i));
    if (!value) {
      fail_with(std::move(value.error()).in(fmt::format("{}operand {}", prefix(), i)));
      return;
    }
    inputs_[static_cast<std::size_t>(i)] = *value;
  }
}

graph::Builder& Lowering::builder() noexcept { return importer_.builder(); }
const graph::Graph& Lowering::graph() const noexcept { return importer_.builder().graph(); }

std::string Lowering::prefix() const { return fmt::format("node {} ({}): ", name_, operator_name_); }

const TensorDesc& Lowering::desc(ValueId id) const noexcept {
  return id == kNoValue ? kAbsent : graph().value(id).desc;
}

ElementType Lowering::out_type(int i) const noexcept { return element_type(out_tensor(i).type()); }

Dims Lowering::dims(ValueId id) const {
  const TensorDesc& d = desc(id);
  return Dims(d.dims, d.dims + d.rank);
}

const schema::Tensor& Lowering::in_tensor(int i) const noexcept {
  return *importer_.subgraph().tensors()->Get(static_cast<std::uint32_t>(in_index(i)));
}

const schema::Tensor& Lowering::out_tensor(int i) const noexcept {
  return *importer_.subgraph().tensors()->Get(static_cast<std::uint32_t>(out_index(i)));
}

CustomOptions Lowering::custom_options(std::initializer_list<std::string_view> known) {
  const auto* bytes = op_.custom_options();
  auto options = CustomOptions::parse(bytes == nullptr ? std::span<const std::uint8_t>{}
                                                       : std::span(bytes->data(), bytes->size()));
  if (!options) {
    fail_with(std::move(options.error()).in(prefix()));
    return {};
  }
  for (const std::string& name : options->names())
    if (std::find(known.begin(), known.end(), name) == known.end())
      unsupported("option " + shown_name(name), fmt::format("{}", fmt::join(known, ", ")));
  return *std::move(options);
}

std::int32_t Lowering::integer_option(const CustomOptions& options, std::string_view name, std::int32_t lowest,
                                      std::int32_t highest) {
  const auto value = options.number(name);
  if (value && *value >= lowest && *value <= highest && *value == std::floor(*value))
    return static_cast<std::int32_t>(*value);
  invalid(value ? fmt::format("option {} is {}", name, *value) : fmt::format("option {} is no number", name),
          fmt::format("{} to {}", lowest, highest));
  return lowest;
}

bool Lowering::flag_option(const CustomOptions& options, std::string_view name) {
  return options.has(name) && integer_option(options, name, 0, 1) != 0;
}

Dims Lowering::constant_operand(int i, std::string_view role) {
  if (failed()) return {};
  auto elements = graph::constant_integers(graph(), in(i));
  if (elements) return *std::move(elements);
  unsupported(fmt::format("{} (operand {}) that is computed at run time", role, i), "constant integers");
  return {};
}

Dims Lowering::constant_operand(int i, std::string_view role, std::size_t n) {
  Dims elements = constant_operand(i, role);
  if (!failed() && elements.size() != n)
    invalid(fmt::format("{} (operand {}) has {} elements", role, i, elements.size()), std::to_string(n));
  elements.resize(n);
  return elements;
}

int Lowering::axis(std::int64_t axis, int rank) {
  const int normalized = normalize_axis(axis, rank);
  if (normalized < 0) invalid(fmt::format("axis {}", axis), fmt::format("an axis of a tensor of rank {}", rank));
  return std::max(normalized, 0);
}

std::vector<int> Lowering::axes(const Dims& axes, int rank) {
  std::vector<int> normalized;
  for (const std::int64_t a : axes) normalized.push_back(axis(a, rank));
  std::sort(normalized.begin(), normalized.end());
  normalized.erase(std::unique(normalized.begin(), normalized.end()), normalized.end());
  return normalized;
}

bool Lowering::is_quantized_in(int i) const noexcept {
  return has(i) && in_tensor(i).quantization() != nullptr && count(in_tensor(i).quantization()->scale()) > 0;
}

Affine Lowering::affine(const schema::Tensor& tensor, const std::string& role) {
  const schema::QuantizationParameters* q = tensor.quantization();
  if (q != nullptr && q->details_type() != 0) {
    unsupported(role + " with custom quantisation details", "one scale and zero point");
    return {};
  }
  if (q == nullptr || count(q->scale()) == 0) {
    unsupported(fmt::format("{} of type {} without quantisation parameters", role, type_name(tensor.type())),
                "one scale and zero point");
    return {};
  }
  if (count(q->scale()) != 1 || count(q->zero_point()) > 1) {
    unsupported(fmt::format("{} with {} scales", role, count(q->scale())), "one scale and zero point");
    return {};
  }
  const float scale = q->scale()->Get(0);
  const std::int64_t zero_point = count(q->zero_point()) == 0 ? 0 : element(q->zero_point(), 0);
  if (!std::isfinite(scale) || scale <= 0) {
    invalid(fmt::format("{} has scale {}", role, scale), "a positive number");
    return {};
  }
  const auto range = type_range(element_type(tensor.type()));
  if (range ? zero_point < range->minimum || zero_point > range->maximum : !is_int32(zero_point)) {
    invalid(fmt::format("{} has zero point {}", role, zero_point),
            fmt::format("a value of type {}", type_name(tensor.type())));
    return {};
  }
  return {scale, static_cast<std::int32_t>(zero_point)};
}

std::vector<float> Lowering::weight_scales(int i, int axis, std::int64_t channels, std::int32_t* zero_point) {
  const schema::QuantizationParameters* q = has(i) ? in_tensor(i).quantization() : nullptr;
  const std::uint32_t n = q == nullptr ? 0 : count(q->scale());
  if (n == 0) {
    unsupported(fmt::format("operand {} of type {} without scales", i, element_type_name(in_type(i))),
                "one scale, or one per output channel");
    return {1.0F};
  }
  if (q->details_type() != 0 || (n != 1 && (n != channels || q->quantized_dimension() != axis))) {
    unsupported(fmt::format("operand {} with {} scales along dimension {}", i, n, q->quantized_dimension()),
                fmt::format("one scale, or {} along dimension {}", channels, axis));
    return {1.0F};
  }
  std::vector<float> scales(q->scale()->begin(), q->scale()->end());
  for (const float s : scales)
    if (!std::isfinite(s) || s < 0) {
      invalid(fmt::format("operand {} has scale {}", i, s), "a number that is not negative");
      return {1.0F};
    }
  const Dims zero_points = tflite::integers(q->zero_point());
  const bool per_tensor_offset = zero_point != nullptr && n == 1 && zero_points.size() == 1;
  if (per_tensor_offset) {
    if (zero_points[0] < -128 || zero_points[0] > 127)
      invalid(fmt::format("operand {} has zero point {}", i, zero_points[0]), "-128 to 127");
    *zero_point = static_cast<std::int32_t>(zero_points[0]);
  } else if (std::any_of(zero_points.begin(), zero_points.end(), [](std::int64_t z) { return z != 0; })) {
    unsupported(fmt::format("operand {} with asymmetric weights", i), "zero point 0");
  }
  return scales;
}

FixedMultiplier Lowering::multiplier(double real) {
  const FixedMultiplier m = quantize_multiplier(real);
  if (!m.is_applicable() || !std::isfinite(real)) {
    unsupported(fmt::format("a rescaling by {}", real), "factors below 2^30");
    return {};
  }
  return m;
}

IntegerRange Lowering::activation_range(schema::Activation activation) {
  const auto type = type_range(out_type());
  if (!type) {
    unsupported(fmt::format("a quantised result of type {}", type_name(out_tensor().type())), "INT8, UINT8, INT16");
    return {};
  }
  const Affine output = out_affine();
  switch (activation) {
    case schema::Activation::NONE: return *type;
    case schema::Activation::RELU: return clamp_range(*type, output, 0.0F, std::nullopt);
    case schema::Activation::RELU6: return clamp_range(*type, output, 0.0F, 6.0F);
    case schema::Activation::RELU_N1_TO_1: return clamp_range(*type, output, -1.0F, 1.0F);
    default: break;
  }
  unsupported(fmt::format("fused_activation_function {}", static_cast<int>(activation)),
              "NONE, RELU, RELU6, RELU_N1_TO_1 on quantised results");
  return *type;
}

ops::Activation Lowering::float_activation(schema::Activation activation) {
  switch (activation) {
    case schema::Activation::NONE: return {};
    case schema::Activation::RELU: return {ops::UnaryFunction::kRelu};
    case schema::Activation::RELU6: return {ops::UnaryFunction::kClip, 0.0F, 6.0F};
    case schema::Activation::RELU_N1_TO_1: return {ops::UnaryFunction::kClip, -1.0F, 1.0F};
    case schema::Activation::TANH: return {ops::UnaryFunction::kTanh};
    default: break;
  }
  unsupported(fmt::format("fused_activation_function {}", static_cast<int>(activation)),
              "NONE, RELU, RELU6, RELU_N1_TO_1, TANH");
  return {};
}

void Lowering::result(int i, ValueId value) {
  if (failed() || i >= results()) return;
  if (value == kNoValue) return invalid(fmt::format("result {} has no value", i), "one");
  const schema::Tensor& tensor = out_tensor(i);
  if (desc(value).type != element_type(tensor.type()))
    return invalid(fmt::format("result {} is declared as {}", i, type_name(tensor.type())),
                   fmt::format("{}, which the operator produces", element_type_name(desc(value).type)));
  graph::Value& v = builder().graph().value(value);
  if (v.name.empty()) v.name = text(tensor.name());
  if (!v.quantization) v.quantization = port_quantization(tensor);
  importer_.write(out_index(i), value);
}

ValueId Lowering::read_state(std::string_view role, ElementType type, const Dims& dims, ValueId initial) {
  if (failed()) return kNoValue;
  TensorDesc desc;
  if (const Status status = make_desc(type, dims.data(), static_cast<int>(dims.size()), &desc); !status.ok()) {
    invalid(fmt::format("a state of {} dimensions: {}", dims.size(), status.message), "a valid shape");
    return kNoValue;
  }
  if (initial != kNoValue && !graph().is_constant(initial)) {
    unsupported(fmt::format("a {} of {} bytes that begins otherwise than with zeros", role, desc.bytes()),
                "smaller ones");
    return kNoValue;
  }
  Variable& variable = importer_.operator_variable(fmt::format("{}/{}", name_, role));
  variable.initial = initial;
  auto value = importer_.read_variable(variable, desc);
  if (value) return *value;
  fail_with(std::move(value.error()));
  return kNoValue;
}

void Lowering::write_state(std::string_view role, ValueId value) {
  if (failed()) return;
  Variable& variable = importer_.operator_variable(fmt::format("{}/{}", name_, role));
  if (auto written = importer_.write_variable(variable, value); !written) fail_with(std::move(written.error()));
}

std::vector<ValueId> Lowering::emit_all(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
  if (failed()) return std::vector<ValueId>(static_cast<std::size_t>(op.outputs), kNoValue);
  auto values = builder().emit(op, std::move(params), std::move(inputs));
  if (!values) {
    fail_with(std::move(values.error()));
    return std::vector<ValueId>(static_cast<std::size_t>(op.outputs), kNoValue);
  }
  return *std::move(values);
}

ValueId Lowering::emit(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
  return emit_all(op, std::move(params), std::move(inputs)).front();
}

ValueId Lowering::reshape(ValueId x, const Dims& dims) {
  if (failed() || x == kNoValue) return kNoValue;
  TensorDesc wanted;
  const Status status = make_desc(desc(x).type, dims.data(), static_cast<int>(dims.size()), &wanted);
  if (!status.ok() || wanted.elements() != desc(x).elements()) {
    invalid(fmt::format("shape [{}] of {} elements", fmt::join(dims, ","), desc(x).elements()), "as many elements");
    return kNoValue;
  }
  if (const auto& constant = graph().value(x).constant) {
    const graph::Constant bytes = *constant;
    return builder().constant({}, wanted, bytes.bytes, bytes.owner);
  }
  auto y = builder().reshape(x, dims);
  if (y) return *y;
  fail_with(std::move(y.error()));
  return kNoValue;
}

ValueId Lowering::transpose(ValueId x, const std::vector<int>& perm) {
  if (failed() || x == kNoValue) return kNoValue;
  auto y = builder().transpose(x, perm);
  if (y) return *y;
  fail_with(std::move(y.error()));
  return kNoValue;
}

ValueId Lowering::cast(ValueId x, ElementType to) {
  if (desc(x).type == to) return x;
  return emit(ops::kCast, ops::CastParams{to}, {x});
}

ValueId Lowering::concat(std::vector<ValueId> parts, int axis) {
  // The core operator joins at most kMaxInputs operands; longer lists are joined in groups.
  while (parts.size() > 1 && !failed()) {
    std::vector<ValueId> joined;
    for (std::size_t first = 0; first < parts.size(); first += ops::kMaxInputs) {
      const std::size_t last = std::min(parts.size(), first + ops::kMaxInputs);
      std::vector<ValueId> group(parts.begin() + static_cast<std::ptrdiff_t>(first),
                                 parts.begin() + static_cast<std::ptrdiff_t>(last));
      joined.push_back(group.size() == 1 ? group[0] : emit(ops::kConcat, ops::ConcatParams{axis}, std::move(group)));
    }
    parts = std::move(joined);
  }
  return failed() || parts.empty() ? kNoValue : parts[0];
}

ValueId Lowering::slice(ValueId x, const Dims& starts, const Dims& sizes, const Dims& steps) {
  if (failed()) return kNoValue;
  ops::SliceParams params;
  params.starts = int_list(starts);
  params.sizes = int_list(sizes);
  params.steps = int_list(steps.empty() ? Dims(starts.size(), 1) : steps);
  const bool whole = sizes == dims(x) && std::all_of(starts.begin(), starts.end(), [](auto s) { return s == 0; }) &&
                     (steps.empty() || std::all_of(steps.begin(), steps.end(), [](auto s) { return s == 1; }));
  return whole ? x : emit(ops::kSlice, params, {x});
}

ValueId Lowering::slice_axis(ValueId x, int axis, std::int64_t start, std::int64_t size) {
  if (failed() || x == kNoValue) return kNoValue;
  Dims sizes = dims(x);
  Dims starts(sizes.size(), 0);
  starts[static_cast<std::size_t>(axis)] = start;
  sizes[static_cast<std::size_t>(axis)] = size;
  return slice(x, starts, sizes);
}

ValueId Lowering::unary(ops::UnaryFunction function, ValueId x, float a, float b) {
  return emit(ops::kUnary, ops::UnaryParams{function, a, b}, {x});
}

ValueId Lowering::lookup(ValueId x, ElementType result, const Table8& table) {
  if (failed()) return kNoValue;
  const Dims size{static_cast<std::int64_t>(table.size())};
  if (result == ElementType::kU8) return emit(ops::kLookup8, {x, constant<std::uint8_t>(size, table)});
  std::array<std::int8_t, 256> entries{};
  std::transform(table.begin(), table.end(), entries.begin(), [](auto e) { return static_cast<std::int8_t>(e); });
  return emit(ops::kLookup8, {x, constant<std::int8_t>(size, entries)});
}

ValueId Lowering::apply(ValueId x, const ops::Activation& activation) {
  if (activation.function == ops::UnaryFunction::kIdentity) return x;
  return unary(activation.function, x, activation.a, activation.b);
}

ValueId Lowering::rescale_sum(ValueId sum, std::int64_t zero_points, Affine input) {
  constexpr int kLeftShift = 20;  // of a number beside twice the scale
  const Affine output = out_affine();
  const double twice = 2 * static_cast<double>(input.scale);
  const FixedMultiplier m = multiplier(twice / ((1 << kLeftShift) * static_cast<double>(output.scale)));
  if (failed()) return kNoValue;
  const auto offset = static_cast<std::int32_t>(-zero_points);
  const std::int32_t unit = 1 << (kLeftShift - 1);
  sum = emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kAdd},
             {sum, constant<std::int32_t>({}, std::span(&offset, 1))});
  sum = emit(ops::kBinary, ops::BinaryParams{ops::BinaryFunction::kMul},
             {sum, constant<std::int32_t>({}, std::span(&unit, 1))});
  return emit(ops::kRequantize, ops::RequantizeParams{out_type(), 0, output.zero_point, m.multiplier, m.shift}, {sum});
}

ValueId Lowering::scalar(ElementType type, double value) {
  if (failed()) return kNoValue;
  const auto v = static_cast<float>(value);
  return cast(constant<float>({}, std::span<const float>(&v, 1)), type);
}

ValueId Lowering::integers(const Dims& elements, ElementType type) {
  if (failed()) return kNoValue;
  return cast(builder().integers(elements), type);
}

void Lowering::fail_with(Error error) {
  if (!error_) error_ = std::move(error);
}

void Lowering::unsupported(const std::string& found, const std::string& supported) {
  fail_with({StatusCode::kUnsupported, fmt::format("{}{} is not supported; supported: {}", prefix(), found, supported),
             "change the model's conversion, or ask for this operator form"});
}

void Lowering::invalid(const std::string& message, const std::string& expected) {
  fail_with({StatusCode::kInvalidModel, fmt::format("{}{}, expected {}", prefix(), message, expected),
             "the file breaks the rules of its format; export it again"});
}

bool Lowering::require_type(int i, std::initializer_list<ElementType> types) {
  if (failed()) return false;
  if (std::find(types.begin(), types.end(), in_type(i)) != types.end()) return true;
  std::vector<std::string> names;
  for (const ElementType t : types) names.emplace_back(element_type_name(t));
  unsupported(fmt::format("operand {} of type {}", i, has(i) ? element_type_name(in_type(i)) : "none"),
              fmt::format("{}", fmt::join(names, ", ")));
  return false;
}

bool Lowering::require_rank(int i, int lowest, int highest) {
  if (failed()) return false;
  if (rank(i) >= lowest && rank(i) <= highest) return true;
  const std::string wanted = lowest == highest ? std::to_string(lowest) : fmt::format("{} to {}", lowest, highest);
  invalid(fmt::format("operand {} has rank {}", i, rank(i)), wanted);
  return false;
}

bool Lowering::require_same_quantization(int a) {
  const Affine input = in_affine(a);
  const Affine output = out_affine();
  if (failed()) return false;
  if (input == output) return true;
  unsupported(fmt::format("a result quantised by ({}, {}) with operand {} by ({}, {})", output.scale, output.zero_point,
                          a, input.scale, input.zero_point),
              "equal scales and zero points");
  return false;
}

}  // namespace bantam::import::tflite
