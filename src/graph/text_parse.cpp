#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "base/shape.h"
#include "graph/control.h"
#include "graph/text.h"

namespace bantam::graph {
namespace {

/// Splits into names, numbers, quoted strings and single characters.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  const std::string& token() const { return token_; }
  bool quoted() const { return quoted_; }
  bool at_end() const { return token_.empty() && !quoted_; }
  int line() const { return line_; }

  void next() {
    skip_space();
    token_.clear();
    quoted_ = false;
    if (position_ == text_.size()) return;
    const char c = text_[position_];
    if (c == '"') {
      read_quoted();
    } else if (is_word(c)) {
      while (position_ < text_.size() && is_word(text_[position_])) token_ += text_[position_++];
    } else {
      token_ = text_[position_++];
    }
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
  }

  void skip_space() {
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (c == '#') {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        if (c == '\n') ++line_;
        ++position_;
      } else {
        return;
      }
    }
  }

  void read_quoted() {
    quoted_ = true;
    for (++position_; position_ < text_.size() && text_[position_] != '"'; ++position_) {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
      token_ += text_[position_];
    }
    if (position_ < text_.size()) ++position_;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int line_ = 1;
  std::string token_;
  bool quoted_ = false;
};

template <typename T>
void append(std::vector<std::byte>& bytes, double value, std::int64_t integer) {
  T element;
  if constexpr (std::is_floating_point_v<T>) {
    element = static_cast<T>(value);
  } else {
    element = static_cast<T>(integer);
  }
  const auto* p = reinterpret_cast<const std::byte*>(&element);
  bytes.insert(bytes.end(), p, p + sizeof element);
}

void append_element(std::vector<std::byte>& bytes, ElementType type, const std::string& token) {
  const double value = std::strtod(token.c_str(), nullptr);
  std::int64_t integer = 0;
  std::from_chars(token.data(), token.data() + token.size(), integer);
  switch (type) {
    case ElementType::kF32: return append<float>(bytes, value, integer);
    case ElementType::kF64: return append<double>(bytes, value, integer);
    case ElementType::kI8: return append<std::int8_t>(bytes, value, integer);
    case ElementType::kU8:
    case ElementType::kBool: return append<std::uint8_t>(bytes, value, integer);
    case ElementType::kI16: return append<std::int16_t>(bytes, value, integer);
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16: return append<std::uint16_t>(bytes, value, integer);
    case ElementType::kI32: return append<std::int32_t>(bytes, value, integer);
    case ElementType::kU32: return append<std::uint32_t>(bytes, value, integer);
    case ElementType::kI64: return append<std::int64_t>(bytes, value, integer);
    case ElementType::kU64: return append<std::uint64_t>(bytes, value, integer);
    default: return;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Graph> run() {
    if (expect("graph") && parse_graph()) {
      if (auto sound = verify(graph_); !sound) return fail(std::move(sound.error()));
      return std::move(graph_);
    }
    return fail(StatusCode::kInvalidModel, fmt::format("line {}: {}", error_line_, error_),
                "see graph/text.h for the form");
  }

 private:
  // Every parse function returns false after noting the first error.
  bool error(std::string message) {
    if (error_.empty()) {
      error_ = std::move(message);
      error_line_ = lexer_.line();
    }
    return false;
  }
  bool accept(std::string_view token) {
    if (lexer_.quoted() || lexer_.token() != token) return false;
    lexer_.next();
    return true;
  }
  bool expect(std::string_view token) {
    return accept(token) || error(fmt::format("expected '{}', found '{}'", token, lexer_.token()));
  }
  std::string take() {
    std::string token = lexer_.token();
    lexer_.next();
    return token;
  }
  bool take_integer(std::int64_t* out) {
    const std::string token = take();
    const auto [end, code] = std::from_chars(token.data(), token.data() + token.size(), *out);
    return (code == std::errc() && end == token.data() + token.size()) ||
           error(fmt::format("expected an integer, found '{}'", token));
  }

  bool parse_graph() {
    if (lexer_.quoted()) graph_.name = take();
    if (!expect("{")) return false;
    while (!accept("}")) {
      if (lexer_.at_end()) return error("the closing '}' is missing");
      if (!parse_statement()) return false;
    }
    return true;
  }

  bool parse_statement() {
    if (accept("output")) {
      const std::string name = take();
      ValueId id = kNone;
      if (!parse_operand(&id)) return false;
      graph_.outputs.push_back({name, id});
      return true;
    }
    if (accept("size")) {
      MeasuredSize size;
      size.name = take();
      if (!parse_operand(&size.value) || !take_integer(&size.bound)) return false;
      graph_.measured.push_back(std::move(size));
      return true;
    }
    if (accept("next")) {
      const std::string name = take();
      ValueId id = kNone;
      if (!parse_operand(&id)) return false;
      for (State& state : graph_.states)
        if (state.name == name) {
          state.out = id;
          return true;
        }
      return error(fmt::format("there is no state '{}'", name));
    }
    return parse_definition();
  }

  struct Target {
    std::string number;  ///< "_" for an absent result
    std::string name;
  };

  bool parse_definition() {
    std::vector<Target> targets;
    do {
      Target target;
      if (accept("_")) {
        target.number = "_";
      } else {
        if (!expect("%")) return false;
        target.number = take();
        if (lexer_.quoted()) target.name = take();
      }
      targets.push_back(target);
    } while (accept(","));
    if (!expect("=")) return false;
    if (accept("input")) return parse_input(targets.front());
    if (accept("state")) return parse_state(targets.front());
    if (accept("const")) return parse_constant(targets.front());
    return parse_node(targets);
  }

  bool define(const Target& target, ValueId id) {
    return values_.emplace(target.number, id).second || error(fmt::format("%{} is defined twice", target.number));
  }

  bool parse_type(TensorDesc* desc) {
    const std::string name = take();
    const ElementType type = element_type_from_name(name.data(), name.size());
    if (type == ElementType::kNone) return error(fmt::format("unknown element type '{}'", name));
    if (!expect("[")) return false;
    std::vector<std::int64_t> dims;
    while (!accept("]")) {
      std::int64_t dim = 0;
      if (!take_integer(&dim)) return false;
      dims.push_back(dim);
      if (!accept(",") && lexer_.token() != "]") return error("expected ',' or ']' in a shape");
    }
    const Status s = make_desc(type, dims.data(), static_cast<int>(dims.size()), desc);
    return s.ok() || error(s.message);
  }

  ValueId add_value(const Target& target, const TensorDesc& desc) {
    Value v;
    v.name = target.name;
    v.desc = desc;
    return graph_.add_value(std::move(v));
  }

  bool parse_input(const Target& target) {
    TensorDesc desc;
    if (!expect(":") || !parse_type(&desc)) return false;
    const ValueId id = add_value(target, desc);
    graph_.inputs.push_back({target.name, id});
    return define(target, id);
  }

  bool parse_state(const Target& target) {
    TensorDesc desc;
    if (!expect(":") || !parse_type(&desc)) return false;
    const ValueId id = add_value(target, desc);
    State state{target.name, id, kNone, std::nullopt};
    if (lexer_.token() == "{" || lexer_.token() == "splat") {
      Constant initial;
      if (!parse_elements(desc, &initial)) return false;
      state.initial = std::move(initial);
    }
    graph_.states.push_back(std::move(state));
    return define(target, id);
  }

  bool parse_constant(const Target& target) {
    TensorDesc desc;
    Constant constant;
    if (!expect(":") || !parse_type(&desc) || !parse_elements(desc, &constant)) return false;
    const ValueId id = add_value(target, desc);
    graph_.value(id).constant = std::move(constant);
    return define(target, id);
  }

  bool parse_elements(const TensorDesc& desc, Constant* out) {
    auto bytes = std::make_shared<std::vector<std::byte>>();
    if (accept("splat")) {
      if (!expect("(")) return false;
      const std::string token = take();
      for (std::int64_t i = 0; i < desc.elements(); ++i) append_element(*bytes, desc.type, token);
      if (!expect(")")) return false;
    } else {
      if (!expect("{")) return false;
      while (!accept("}")) {
        if (lexer_.at_end()) return error("the elements do not end");
        append_element(*bytes, desc.type, take());
        accept(",");
      }
    }
    if (static_cast<std::int64_t>(bytes->size()) != desc.bytes())
      return error(fmt::format("{} bytes of elements, {} needed", bytes->size(), desc.bytes()));
    out->bytes = *bytes;
    out->owner = std::move(bytes);
    return true;
  }

  bool parse_operand(ValueId* id) {
    if (accept("_")) return true;
    if (!expect("%")) return false;
    const std::string number = take();
    const auto it = values_.find(number);
    if (it == values_.end()) return error(fmt::format("%{} is not defined", number));
    *id = it->second;
    return true;
  }

  bool parse_node(const std::vector<Target>& targets) {
    Node node;
    const std::string name = take();
    node.op = ops::find_op(name);
    if (node.op == nullptr) node.op = find_control_op(name);
    if (node.op == nullptr) return error(fmt::format("unknown operator '{}'", name));
    node.params = Params(*node.op);
    node.origin = name;
    node.name = targets.front().name.empty() ? "%" + targets.front().number : targets.front().name;
    if (!expect("(")) return false;
    while (!accept(")")) {
      ValueId id = kNone;
      if (!parse_operand(&id)) return false;
      node.inputs.push_back(id);
      if (!accept(",") && lexer_.token() != ")") return error("expected ',' or ')' after an operand");
    }
    if (accept("{") && !parse_params(node)) return false;
    return find_control_op(name) != nullptr ? add_control_results(std::move(node), targets)
                                            : add_results(std::move(node), targets);
  }

  /// Bodies tell what the results are, so the stated types come before anything is known about them.
  bool add_control_results(Node node, const std::vector<Target>& targets) {
    std::vector<TensorDesc> stated(targets.size());
    if (!expect(":")) return false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (i != 0 && !expect(",")) return false;
      if (!accept("_") && !parse_type(&stated[i])) return false;
    }
    while (accept("body"))
      if (!parse_body(node)) return false;
    return bind_results(std::move(node), targets, stated);
  }

  bool parse_body(Node& node) {
    if (++depth_ > kMaxBodyDepth) return error(fmt::format("more than {} bodies inside one another", kMaxBodyDepth));
    Graph body;
    std::map<std::string, ValueId> values;
    std::swap(graph_, body);
    std::swap(values_, values);
    const bool parsed = parse_graph();
    std::swap(graph_, body);
    std::swap(values_, values);
    --depth_;
    node.bodies.push_back(std::move(body));
    return parsed;
  }

  bool add_results(Node node, const std::vector<Target>& targets) {
    if (static_cast<std::int32_t>(targets.size()) != node.op->outputs)
      return error(fmt::format("'{}' has {} results", node.op->name, node.op->outputs));
    std::vector<TensorDesc> inferred(targets.size());
    const OperandTables tables = operand_tables(graph_, node);
    const Status s = ops::infer(*node.op, node.params.data(), tables.inputs, inferred);
    if (!s.ok()) return error(error_from(s).message);
    if (accept(":")) {
      for (std::size_t i = 0; i < targets.size(); ++i) {
        if (i != 0 && !expect(",")) return false;
        TensorDesc stated;
        if (accept("_")) continue;
        if (!parse_type(&stated)) return false;
        if (!same_shape_and_type(stated, inferred[i]))
          return error(fmt::format("the result is {}, not {}", format_desc(inferred[i]), format_desc(stated)));
      }
    }
    return bind_results(std::move(node), targets, inferred);
  }

  bool bind_results(Node node, const std::vector<Target>& targets, const std::vector<TensorDesc>& descs) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].number == "_") {
        node.outputs.push_back(kNone);
        continue;
      }
      const ValueId id = add_value(targets[i], descs[i]);
      graph_.value(id).producer = static_cast<NodeId>(graph_.nodes.size());
      node.outputs.push_back(id);
      if (!define(targets[i], id)) return false;
    }
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  bool parse_params(Node& node) {
    while (!accept("}")) {
      const std::string name = take();
      const auto field = std::find_if(node.op->fields.begin(), node.op->fields.end(),
                                      [&](const ops::ParamField& f) { return f.name == name; });
      if (field == node.op->fields.end()) return error(fmt::format("'{}' has no parameter '{}'", node.op->name, name));
      if (!expect("=") || !parse_field(*field, node.params.data() + field->offset)) return false;
      if (!accept(",") && lexer_.token() != "}") return error("expected ',' or '}' after a parameter");
    }
    return true;
  }

  bool parse_field(const ops::ParamField& field, std::byte* p) {
    if (field.kind == ops::ParamField::Kind::kIntList) return parse_list(p);
    if (field.count == 1) return parse_scalar(field, p);
    if (!expect("[")) return false;
    for (std::uint32_t i = 0; i < field.count; ++i) {
      if (i != 0 && !expect(",")) return false;
      if (!parse_scalar(field, p + i * 4)) return false;
    }
    return expect("]");
  }

  bool parse_list(std::byte* p) {
    ops::IntList list;
    if (!expect("[")) return false;
    while (!accept("]")) {
      std::int64_t value = 0;
      if (!take_integer(&value)) return false;
      if (list.size == kMaxRank) return error("a list has too many entries");
      list.v[list.size++] = static_cast<std::int32_t>(value);
      accept(",");
    }
    std::memcpy(p, &list, sizeof list);
    return true;
  }

  bool parse_scalar(const ops::ParamField& field, std::byte* p) {
    using FieldKind = ops::ParamField::Kind;
    if (field.kind == FieldKind::kF32) {
      const std::string token = take();
      char* end = nullptr;
      const float value = std::strtof(token.c_str(), &end);
      if (end == token.c_str()) return error(fmt::format("expected a number, found '{}'", token));
      std::memcpy(p, &value, sizeof value);
      return true;
    }
    std::int32_t value = 0;
    if (field.kind == FieldKind::kBool && (lexer_.token() == "true" || lexer_.token() == "false")) {
      value = take() == "true" ? 1 : 0;
    } else if (field.kind == FieldKind::kEnum && lexer_.quoted()) {
      const std::string name = take();
      const auto it = std::find(field.enumerators.begin(), field.enumerators.end(), name);
      if (it == field.enumerators.end()) return error(fmt::format("'{}' is not a {}", name, field.name));
      value = static_cast<std::int32_t>(it - field.enumerators.begin());
    } else if (field.kind == FieldKind::kElementType && lexer_.quoted()) {
      const std::string name = take();
      value = ops::ElementType32(element_type_from_name(name.data(), name.size())).value;
    } else {
      std::int64_t wide = 0;
      if (!take_integer(&wide)) return false;
      value = static_cast<std::int32_t>(wide);
    }
    std::memcpy(p, &value, sizeof value);
    return true;
  }

  Lexer lexer_;
  Graph graph_;
  std::map<std::string, ValueId> values_;
  int depth_ = 0;  ///< bodies around what is being parsed
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Result<Graph> from_text(std::string_view text) { return Parser(text).run(); }

}  // namespace bantam::graph
