#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "graph/text.h"

namespace bantam::graph {
namespace {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string format_float(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

template <typename T>
T load(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

std::string format_element(const std::byte* p, ElementType type) {
  switch (type) {
    case ElementType::kF32: return format_float(load<float>(p));
    case ElementType::kF64: return fmt::format("{}", load<double>(p));
    case ElementType::kI8: return fmt::format("{}", load<std::int8_t>(p));
    case ElementType::kU8:
    case ElementType::kBool: return fmt::format("{}", load<std::uint8_t>(p));
    case ElementType::kI16: return fmt::format("{}", load<std::int16_t>(p));
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16: return fmt::format("{}", load<std::uint16_t>(p));
    case ElementType::kI32: return fmt::format("{}", load<std::int32_t>(p));
    case ElementType::kU32: return fmt::format("{}", load<std::uint32_t>(p));
    case ElementType::kI64: return fmt::format("{}", load<std::int64_t>(p));
    case ElementType::kU64: return fmt::format("{}", load<std::uint64_t>(p));
    default: return "?";
  }
}

std::string format_constant(const TensorDesc& desc, std::span<const std::byte> bytes) {
  const std::int64_t n = desc.elements();
  const int size = element_size(desc.type);
  if (size == 0) return "...";
  bool equal = n > 1;
  for (std::int64_t i = 1; equal && i < n; ++i)
    equal = std::memcmp(bytes.data(), bytes.data() + i * size, static_cast<std::size_t>(size)) == 0;
  if (equal) return fmt::format("splat({})", format_element(bytes.data(), desc.type));
  if (n > kPrintedElements) return "...";
  std::string out = "{";
  for (std::int64_t i = 0; i < n; ++i) out += (i == 0 ? "" : ", ") + format_element(bytes.data() + i * size, desc.type);
  return out + "}";
}

std::string format_scalar(const ops::ParamField& field, const std::byte* p) {
  using FieldKind = ops::ParamField::Kind;
  switch (field.kind) {
    case FieldKind::kF32: return format_float(load<float>(p));
    case FieldKind::kBool: return load<std::int32_t>(p) != 0 ? "true" : "false";
    case FieldKind::kEnum: {
      const auto value = static_cast<std::size_t>(load<std::int32_t>(p));
      return value < field.enumerators.size() ? quote(field.enumerators[value]) : fmt::format("{}", value);
    }
    case FieldKind::kElementType: return quote(element_type_name(load<ops::ElementType32>(p)));
    case FieldKind::kIntList: {
      const auto list = load<ops::IntList>(p);
      return fmt::format("[{}]", fmt::join(list.v, list.v + std::clamp(list.size, 0, kMaxRank), ", "));
    }
    case FieldKind::kI32: break;
  }
  return fmt::format("{}", load<std::int32_t>(p));
}

std::size_t field_size(const ops::ParamField& field) {
  return field.kind == ops::ParamField::Kind::kIntList ? sizeof(ops::IntList) : 4;
}

std::string format_params(const Node& node) {
  std::string out;
  for (const ops::ParamField& field : node.op->fields) {
    const std::byte* p = node.params.data() + field.offset;
    const auto* standard = static_cast<const std::byte*>(node.op->default_params) + field.offset;
    const std::size_t size = field_size(field);
    if (std::memcmp(p, standard, size * field.count) == 0) continue;
    std::string text;
    if (field.count == 1) {
      text = format_scalar(field, p);
    } else {
      for (std::uint32_t i = 0; i < field.count; ++i)
        text += (i == 0 ? "[" : ", ") + format_scalar(field, p + i * size);
      text += "]";
    }
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", field.name, text);
  }
  return out.empty() ? "" : " {" + out + "}";
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), numbers_(graph.values.size(), -1) {}

  std::string run() {
    out_ = fmt::format("{} {{\n", quote(graph_.name));
    for (const Port& port : graph_.inputs) line(port.value, "input : " + format_desc(graph_.value(port.value).desc));
    for (const State& state : graph_.states) {
      std::string text = "state : " + format_desc(graph_.value(state.in).desc);
      if (state.initial) text += " " + format_constant(graph_.value(state.in).desc, state.initial->bytes);
      line(state.in, text, state.name);
    }
    for (const Node& node : graph_.nodes)
      if (node.op != nullptr) print(node);
    for (const Port& port : graph_.outputs) {
      constant(port.value);
      out_ += fmt::format("  output {} {}\n", quote(port.name), ref(port.value));
    }
    for (const State& state : graph_.states)
      if (state.out != kNone) {
        constant(state.out);
        out_ += fmt::format("  next {} {}\n", quote(state.name), ref(state.out));
      }
    for (const MeasuredSize& size : graph_.measured) {
      constant(size.value);
      out_ += fmt::format("  size {} {} {}\n", quote(size.name), ref(size.value), size.bound);
    }
    return out_ + "}\n";
  }

 private:
  std::string ref(ValueId id) {
    if (id == kNone) return "_";
    int& number = numbers_[static_cast<std::size_t>(id)];
    if (number < 0) number = next_++;
    return fmt::format("%{}", number);
  }

  void line(ValueId id, const std::string& text, std::string name = {}) {
    if (name.empty()) name = graph_.value(id).name;
    out_ += fmt::format("  {}{} = {}\n", ref(id), name.empty() ? "" : " " + quote(name), text);
  }

  /// Prints a constant where it is first needed.
  void constant(ValueId id) {
    if (id == kNone || !graph_.is_constant(id) || numbers_[static_cast<std::size_t>(id)] >= 0) return;
    const Value& v = graph_.value(id);
    line(id, fmt::format("const : {} {}", format_desc(v.desc), format_constant(v.desc, v.constant->bytes)));
  }

  void print(const Node& node) {
    for (const ValueId id : node.inputs) constant(id);
    std::string results;
    std::string types;
    for (const ValueId id : node.outputs) {
      results += (results.empty() ? "" : ", ") + ref(id);
      if (id != kNone && !graph_.value(id).name.empty()) results += " " + quote(graph_.value(id).name);
      types += (types.empty() ? "" : ", ") + (id == kNone ? "_" : format_desc(graph_.value(id).desc));
    }
    std::string operands;
    for (const ValueId id : node.inputs) operands += (operands.empty() ? "" : ", ") + ref(id);
    out_ += fmt::format("  {} = {}({}){} : {}\n", results, node.op->name, operands, format_params(node), types);
    for (const Graph& body : node.bodies) print_body(body);
  }

  void print_body(const Graph& body) {
    std::string text = "body " + Printer(body).run();
    std::size_t line_start = 0;
    while (line_start < text.size()) {
      const std::size_t end = text.find('\n', line_start) + 1;
      out_ += "    " + text.substr(line_start, end - line_start);
      line_start = end;
    }
  }

  const Graph& graph_;
  std::vector<int> numbers_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string to_text(const Graph& graph) { return "graph " + Printer(graph).run(); }

}  // namespace bantam::graph
