#include "import/onnx/ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_set>

#include "base/shape.h"

namespace bantam::import::onnx {
namespace {

/// The declared shape for messages: "[1,T,?]".
std::string format_shape(const std::vector<Dimension>& shape) {
  std::string text;
  for (const Dimension& d : shape) {
    if (!text.empty()) text += ",";
    text += d.value ? std::to_string(*d.value) : d.symbol.empty() ? "?" : printable(d.symbol);
  }
  return "[" + text + "]";
}

bool is_fixed(const Dimension& d) { return d.value.has_value() && *d.value >= 0; }

/// Collects lines for one Error and the flags that would remove the cause.
struct Problems {
  std::string lines;
  std::string flags;

  void add(const std::string& line) { lines += (lines.empty() ? "" : "\n") + line; }
  void suggest(const std::string& flag) {
    if (flags.find(flag) == std::string::npos) flags += (flags.empty() ? "" : " ") + flag;
  }
};

class ShapeResolver {
 public:
  ShapeResolver(const std::vector<const ValueInfo*>& inputs, const Options& options)
      : inputs_(inputs), options_(options), symbols_(options.dims) {}

  Result<std::vector<TensorDesc>> run() {
    check_names();
    for (const ValueInfo* info : inputs_) adopt_symbols(*info);
    std::vector<TensorDesc> descs;
    for (const ValueInfo* info : inputs_) descs.push_back(resolve(*info));
    if (problems_.lines.empty()) return descs;
    return fail(StatusCode::kInvalidArgument, problems_.lines,
                problems_.flags.empty() ? std::string() : "give " + problems_.flags);
  }

 private:
  void check_names();
  void adopt_symbols(const ValueInfo& info);
  TensorDesc resolve(const ValueInfo& info);
  std::vector<std::int64_t> dims_from_shape(const ValueInfo& info, const std::vector<std::int64_t>& shape);
  std::vector<std::int64_t> dims_from_symbols(const ValueInfo& info);

  const std::vector<const ValueInfo*>& inputs_;
  const Options& options_;
  std::map<std::string, std::int64_t> symbols_;
  Problems problems_;
};

void ShapeResolver::check_names() {
  std::vector<std::string> names;
  std::set<std::string> symbols;
  for (const ValueInfo* info : inputs_) {
    names.emplace_back(info->name);
    if (!info->shape) continue;
    for (const Dimension& d : *info->shape)
      if (!is_fixed(d) && !d.symbol.empty()) symbols.emplace(d.symbol);
  }
  for (const auto& [name, value] : options_.dims) {
    // What has a bound may be a size that the graph computes, which shows only in the end.
    if (!symbols.contains(name) && !options_.bounds.contains(name))
      problems_.add(fmt::format("--dim {}: the model has no such dimension; it has: {}", name,
                                list_names({symbols.begin(), symbols.end()})));
    if (value < 0) problems_.add(fmt::format("--dim {}={}: a dimension must not be negative", name, value));
  }
  for (const auto& [name, shape] : options_.shapes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      problems_.add(fmt::format("--shape {}: the model has no such input; it has: {}", name, list_names(names)));
}

void ShapeResolver::adopt_symbols(const ValueInfo& info) {
  const auto given = options_.shapes.find(std::string(info.name));
  if (given == options_.shapes.end() || !info.shape || info.shape->size() != given->second.size()) return;
  for (std::size_t i = 0; i < given->second.size(); ++i) {
    const Dimension& d = (*info.shape)[i];
    if (!is_fixed(d) && !d.symbol.empty()) symbols_.emplace(d.symbol, given->second[i]);
  }
}

std::vector<std::int64_t> ShapeResolver::dims_from_shape(const ValueInfo& info,
                                                         const std::vector<std::int64_t>& shape) {
  bool fits = !info.shape || info.shape->size() == shape.size();
  for (std::size_t i = 0; fits && info.shape && i < shape.size(); ++i) {
    const Dimension& d = (*info.shape)[i];
    fits = !is_fixed(d) || *d.value == shape[i];
  }
  if (!fits)
    problems_.add(fmt::format("--shape {}={}: the model declares {}", printable(info.name), fmt::join(shape, "x"),
                              format_shape(*info.shape)));
  return shape;
}

std::vector<std::int64_t> ShapeResolver::dims_from_symbols(const ValueInfo& info) {
  std::vector<std::int64_t> dims;
  if (!info.shape) {
    problems_.add(fmt::format("input '{}': the model does not say its shape", printable(info.name)));
    problems_.suggest(fmt::format("--shape {}=...", printable(info.name)));
    return dims;
  }
  std::string unknown;
  bool nameless = false;
  for (const Dimension& d : *info.shape) {
    const auto symbol = symbols_.find(std::string(d.symbol));
    if (is_fixed(d)) {
      dims.push_back(*d.value);
    } else if (!d.symbol.empty() && symbol != symbols_.end()) {
      dims.push_back(symbol->second);
    } else {
      dims.push_back(1);
      nameless = nameless || d.symbol.empty();
      unknown += (unknown.empty() ? "" : ", ") + (d.symbol.empty() ? std::string("?") : printable(d.symbol));
      if (!d.symbol.empty()) problems_.suggest(fmt::format("--dim {}=VALUE", printable(d.symbol)));
    }
  }
  if (!unknown.empty()) {
    problems_.add(fmt::format("input '{}' {}: no value is given for {}", printable(info.name),
                              format_shape(*info.shape), unknown));
    if (nameless) problems_.suggest(fmt::format("--shape {}=...", printable(info.name)));
  }
  return dims;
}

TensorDesc ShapeResolver::resolve(const ValueInfo& info) {
  TensorDesc desc;
  const ElementType type = element_type(info.data_type);
  if (!info.is_tensor || type == ElementType::kNone) {
    problems_.add(fmt::format("input '{}' is {}, which is not supported", printable(info.name),
                              info.is_tensor ? data_type_name(info.data_type) : "not a tensor"));
    return desc;
  }
  const auto given = options_.shapes.find(std::string(info.name));
  const std::vector<std::int64_t> dims =
      given != options_.shapes.end() ? dims_from_shape(info, given->second) : dims_from_symbols(info);
  const int rank = static_cast<int>(std::min<std::size_t>(dims.size(), kMaxRank + 1));
  if (const Status status = make_desc(type, dims.data(), rank, &desc); !status.ok())
    problems_.add(fmt::format("input '{}': {}", printable(info.name), error_from(status).message));
  return desc;
}

template <typename T>
bool store(double value, std::byte* to) {
  if constexpr (std::is_integral_v<T>) {
    // The limits of 64-bit types are exact in double or round outwards, where the comparison excludes them.
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if (std::floor(value) != value || value < kLow || value > kHigh || (sizeof(T) == 8 && value >= kHigh)) return false;
  }
  const T element = static_cast<T>(value);
  std::memcpy(to, &element, sizeof element);
  return true;
}

bool store_element(ElementType type, double value, std::byte* to) {
  switch (type) {
    case ElementType::kF32: return store<float>(value, to);
    case ElementType::kF64: return store<double>(value, to);
    case ElementType::kI8: return store<std::int8_t>(value, to);
    case ElementType::kU8: return store<std::uint8_t>(value, to);
    case ElementType::kI16: return store<std::int16_t>(value, to);
    case ElementType::kU16: return store<std::uint16_t>(value, to);
    case ElementType::kI32: return store<std::int32_t>(value, to);
    case ElementType::kU32: return store<std::uint32_t>(value, to);
    case ElementType::kI64: return store<std::int64_t>(value, to);
    case ElementType::kU64: return store<std::uint64_t>(value, to);
    case ElementType::kBool: return (value == 0.0 || value == 1.0) && store<std::uint8_t>(value, to);
    default: return false;
  }
}

}  // namespace

std::vector<const ValueInfo*> real_inputs(const GraphProto& graph) {
  std::unordered_set<std::string_view> constants;
  for (const TensorProto& tensor : graph.initializers) constants.insert(tensor.name);
  std::vector<const ValueInfo*> inputs;
  for (const ValueInfo& input : graph.inputs)
    if (!constants.contains(input.name)) inputs.push_back(&input);
  return inputs;
}

Result<std::vector<TensorDesc>> resolve_shapes(const std::vector<const ValueInfo*>& inputs, const Options& options) {
  return ShapeResolver(inputs, options).run();
}

std::optional<std::int64_t> largest_count(std::string_view text, const std::vector<const ValueInfo*>& inputs,
                                          std::span<const TensorDesc> descs) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size()) return number;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]->shape || inputs[i]->shape->size() != descs[i].rank) continue;
    for (std::size_t k = 0; k < descs[i].rank; ++k)
      if (!is_fixed((*inputs[i]->shape)[k]) && (*inputs[i]->shape)[k].symbol == text) return descs[i].dims[k];
  }
  return std::nullopt;
}

Result<graph::Constant> constant_from_values(const TensorDesc& desc, std::span<const double> values) {
  const auto count = static_cast<std::size_t>(desc.elements());
  if (values.size() != count && values.size() != 1)
    return fail(StatusCode::kInvalidArgument, fmt::format("{} values are given for {}, expected 1 or {}", values.size(),
                                                          graph::format_desc(desc), count));
  const auto size = static_cast<std::size_t>(element_size(desc.type));
  auto owner = std::make_shared<std::vector<std::byte>>(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[values.size() == 1 ? 0 : i];
    if (!store_element(desc.type, value, owner->data() + i * size))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{} is not a value of {}", value, graph::format_desc(desc)));
  }
  return graph::Constant{std::span<const std::byte>(*owner), owner};
}

std::string list_names(const std::vector<std::string>& names) {
  if (names.empty()) return "(none)";
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + printable(name) + "'";
  return text;
}

}  // namespace bantam::import::onnx
