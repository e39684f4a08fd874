// Functions of one and two operands, selections, changes of representation.
#include "import/tflite/testing/peer_case_builder.h"

namespace bantam::import::tflite::testing {
namespace {

using Shape = std::vector<std::int32_t>;

const char* type_suffix(TensorType type) {
  switch (type) {
    case TensorType::FLOAT32: return "f32";
    case TensorType::INT8: return "i8";
    case TensorType::UINT8: return "u8";
    case TensorType::INT16: return "i16";
    case TensorType::INT32: return "i32";
    case TensorType::INT64: return "i64";
    default: return "bool";
  }
}

std::string case_name(BuiltinOperator code, TensorType type, const std::string& more = "") {
  return std::string(schema::EnumNameBuiltinOperator(code)) + "_" + type_suffix(type) +
         (more.empty() ? "" : "_" + more);
}

bool is_quantized(TensorType type) { return type == TensorType::INT8 || type == TensorType::INT16; }

/// A spec with a random scale around `scale`, and a random zero point for int8.
TensorSpec spec_of(CaseBuilder& c, TensorType type, const Shape& shape, float scale = 0.05F) {
  TensorSpec spec{.type = type, .shape = shape};
  if (!is_quantized(type)) return spec;
  spec.scale = {scale * (0.5F + 0.1F * static_cast<float>(c.pick(11)))};
  spec.zero_point = {type == TensorType::INT8 ? static_cast<std::int64_t>(c.pick(61)) - 30 : 0};
  return spec;
}

struct Shapes {
  const char* name;
  Shape a;
  Shape b;
  Shape y;
};
const Shapes kShapes[] = {{"same", {2, 3, 5}, {2, 3, 5}, {2, 3, 5}},
                          {"broadcast", {2, 3, 5}, {5}, {2, 3, 5}},
                          {"scalar", {4, 1, 3}, {1, 2, 1}, {4, 2, 3}}};

void add_binary(std::vector<PeerCase>& cases, BuiltinOperator code, TensorType type, bool to_bool = false,
                std::optional<Range> second = std::nullopt, std::optional<Range> first = std::nullopt) {
  for (const Shapes& shapes : kShapes) {
    CaseBuilder c(case_name(code, type, shapes.name));
    const int a = c.input(spec_of(c, type, shapes.a), first);
    TensorSpec spec = spec_of(c, type, shapes.b);
    if (second && type == TensorType::INT8) spec.zero_point = {-128};  // so that a range can leave out zero
    const int b = c.input(spec, second);
    TensorSpec result =
        to_bool ? TensorSpec{.type = TensorType::BOOL, .shape = shapes.y} : spec_of(c, type, shapes.y, 0.2F);
    c.op(code, {a, b}, {c.output(result)});
    cases.push_back(c.finish());
  }
}

void add_arithmetic(std::vector<PeerCase>& cases) {
  using enum BuiltinOperator;
  for (const BuiltinOperator code : {ADD, SUB, MUL})
    for (const TensorType type : {FLOAT32, INT8, INT16, INT32}) add_binary(cases, code, type);
  // A quotient near zero leaves the original's arithmetic: it shifts by more than 31 bits.
  for (const TensorType type : {FLOAT32, INT8, INT32})
    add_binary(cases, DIV, type, false, Range{1, 90}, Range{-128, -80});
  for (const TensorType type : {FLOAT32, INT8, INT16}) add_binary(cases, SQUARED_DIFFERENCE, type);
  add_binary(cases, SQUARED_DIFFERENCE, INT32, false, Range{-90, 90}, Range{-90, 90});
  for (const BuiltinOperator code : {MAXIMUM, MINIMUM})
    for (const TensorType type : {FLOAT32, INT8, INT16, INT32, INT64}) add_binary(cases, code, type);
  for (const BuiltinOperator code : {FLOOR_DIV, FLOOR_MOD}) add_binary(cases, code, FLOAT32, false, Range{0.5, 3});
  for (const BuiltinOperator code : {EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL})
    for (const TensorType type : {FLOAT32, INT8, INT32, INT64})
      add_binary(cases, code, type, true, type == INT8 ? std::nullopt : std::optional(Range{-3, 3}),
                 type == INT8 ? std::nullopt : std::optional(Range{-3, 3}));
  for (const BuiltinOperator code : {EQUAL, NOT_EQUAL, LOGICAL_AND, LOGICAL_OR}) add_binary(cases, code, BOOL, true);
}

/// Equal scales, where stored values that differ may still be equal numbers.
void add_equal_on_scales(std::vector<PeerCase>& cases) {
  CaseBuilder c("EQUAL_i8_scales");
  const int a = c.input({.type = TensorType::INT8, .shape = {200}, .scale = {0.5F}, .zero_point = {1}}, Range{-8, 8});
  const int b =
      c.input({.type = TensorType::INT8, .shape = {200}, .scale = {0.25F}, .zero_point = {-3}}, Range{-16, 16});
  c.op(BuiltinOperator::EQUAL, {a, b}, {c.output({.type = TensorType::BOOL, .shape = {200}})});
  cases.push_back(c.finish());
}

void add_prelu(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16}) {
    CaseBuilder c(case_name(BuiltinOperator::PRELU, type));
    const Shape shape{1, 4, 3, 5};
    const int x = c.input(spec_of(c, type, shape));
    const TensorType slope_type = type == INT16 ? INT8 : type;
    TensorSpec slope = spec_of(c, slope_type, {1, 1, 5}, 0.01F);
    const int y = c.output(spec_of(c, type, shape));
    c.op(BuiltinOperator::PRELU, {x, c.weights(slope)}, {y});
    cases.push_back(c.finish());
  }
}

void add_add_n(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8}) {
    for (const std::uint32_t count : {2U, 3U, 5U}) {
      CaseBuilder c(case_name(BuiltinOperator::ADD_N, type, std::to_string(count)));
      const TensorSpec spec = spec_of(c, type, {3, 7});
      std::vector<std::int32_t> operands;
      for (std::uint32_t i = 0; i < count; ++i) operands.push_back(c.input(spec));
      c.op(BuiltinOperator::ADD_N, operands, {c.output(spec_of(c, type, {3, 7}, 0.15F))});
      cases.push_back(c.finish());
    }
  }
}

void add_unary(std::vector<PeerCase>& cases, BuiltinOperator code, TensorType type,
               std::optional<Range> range = std::nullopt, std::optional<float> scale = std::nullopt,
               std::int64_t zero_point = 0) {
  CaseBuilder c(case_name(code, type));
  const Shape shape{4, 67};
  TensorSpec spec = spec_of(c, type, shape);
  if (range && type == TensorType::INT8) spec.zero_point = {-128};
  const int x = c.input(spec, range);
  // The original's RELU6 does not bring its operand to another scale.
  TensorSpec result = code == BuiltinOperator::RELU6 ? spec : spec_of(c, type, shape);
  if (scale) {
    result.scale = {*scale};
    result.zero_point = {zero_point};
  }
  auto options = BuiltinOptions::NONE;
  flatbuffers::Offset<void> table = 0;
  if (code == BuiltinOperator::LEAKY_RELU) {
    options = BuiltinOptions::LeakyReluOptions;
    table = schema::CreateLeakyReluOptions(c.fbb(), 0.3F).Union();
  }
  c.op(code, {x}, {c.output(result)}, options, table);
  cases.push_back(c.finish());
}

void add_functions(std::vector<PeerCase>& cases) {
  using enum BuiltinOperator;
  for (const BuiltinOperator code :
       {ABS, SIN, COS, SQUARE, EXP, NEG, FLOOR, CEIL, ROUND, ELU, HARD_SWISH, LEAKY_RELU, LOGISTIC, TANH, RELU, RELU6})
    add_unary(cases, code, FLOAT32);
  for (const BuiltinOperator code : {LOG, SQRT, RSQRT}) add_unary(cases, code, FLOAT32, Range{0.01, 9});
  for (const BuiltinOperator code : {ABS, ELU, HARD_SWISH, LEAKY_RELU, RELU, RELU6}) add_unary(cases, code, INT8);
  for (const BuiltinOperator code : {ABS, LEAKY_RELU, RELU, RELU6}) add_unary(cases, code, INT16);
  add_unary(cases, RSQRT, INT8, Range{-128, 127});
  add_unary(cases, RSQRT, INT16, Range{0, 32767}, 0.0001F);
  add_unary(cases, LOGISTIC, INT8, std::nullopt, 1.0F / 256, -128);
  add_unary(cases, TANH, INT8, std::nullopt, 1.0F / 128, 0);
  add_unary(cases, LOGISTIC, INT16, std::nullopt, 1.0F / 32768, 0);
  add_unary(cases, TANH, INT16, std::nullopt, 1.0F / 32768, 0);
  add_unary(cases, LOGICAL_NOT, BOOL);
  for (const TensorType type : {FLOAT32, INT8, INT32, INT64}) add_unary(cases, ZEROS_LIKE, type);
}

void add_select(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16}) {
    CaseBuilder c(case_name(BuiltinOperator::SELECT_V2, type));
    const int condition = c.input({.type = BOOL, .shape = {2, 1, 5}});
    const TensorSpec spec = spec_of(c, type, {2, 3, 5});
    TensorSpec row = spec;
    row.shape = {5};
    const int a = c.input(spec);
    const int b = c.input(row);
    c.op(BuiltinOperator::SELECT_V2, {condition, a, b}, {c.output(spec)});
    cases.push_back(c.finish());
  }
}

void add_representations(std::vector<PeerCase>& cases) {
  const auto one = [&](BuiltinOperator code, TensorType from, TensorType to, std::optional<Range> range) {
    CaseBuilder c(case_name(code, from, type_suffix(to)));
    const int x = c.input(spec_of(c, from, {3, 40}), range);
    TensorSpec y = spec_of(c, to, {3, 40});
    if (to == UINT8) {
      y.scale = {0.04F};
      y.zero_point = {100};
    }
    if (code == BuiltinOperator::QUANTIZE && to == INT32) y.scale = {0.001F}, y.zero_point = {0};
    c.op(code, {x}, {c.output(y)});
    cases.push_back(c.finish());
  };
  const auto quantized = BuiltinOperator::QUANTIZE;
  for (const TensorType to : {INT8, INT16}) one(quantized, FLOAT32, to, std::nullopt);
  for (const TensorType to : {INT8, INT16, INT32, UINT8}) one(quantized, INT8, to, std::nullopt);
  for (const TensorType to : {INT8, INT16, INT32}) one(quantized, INT16, to, std::nullopt);
  for (const TensorType from : {INT8, INT16}) one(BuiltinOperator::DEQUANTIZE, from, FLOAT32, std::nullopt);
  for (const TensorType from : {FLOAT32, INT8, INT16, INT32, BOOL})
    for (const TensorType to : {FLOAT32, INT8, INT16, INT32})
      if (from != to)
        one(BuiltinOperator::CAST, from, to, from == BOOL ? std::nullopt : std::optional(Range{-100, 100}));
}

}  // namespace

void add_elementwise_cases(std::vector<PeerCase>& cases) {
  add_arithmetic(cases);
  add_equal_on_scales(cases);
  add_prelu(cases);
  add_add_n(cases);
  add_functions(cases);
  add_select(cases);
  add_representations(cases);
}

}  // namespace bantam::import::tflite::testing
