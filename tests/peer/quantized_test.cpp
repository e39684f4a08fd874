// Quantised ONNX operators against ONNX Runtime: operator by operator, in every combination of types that it takes, and
// graphs in QDQ form, which it turns into its integer kernels.
//
// Integers must be equal, except where its kernels round otherwise than the standard says: those cases allow one step
// and say why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "import/testing/onnx_writer.h"
#include "peer_case.h"

namespace bantam::testing {
namespace {

using import::testing::attr;
using import::testing::GraphWriter;
using import::testing::raw_tensor;
using import::testing::tensor;
using Ints = std::vector<std::int64_t>;

constexpr ElementType kI8 = ElementType::kI8;
constexpr ElementType kU8 = ElementType::kU8;

struct Case {
  std::string name;
  std::string model;
  double tolerance = 0;  ///< 1 and more: steps of integers; else of floats, relative to the largest magnitude
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string model_of(const GraphWriter& graph, std::int64_t opset = 13) { return graph.model(opset); }

const char* name_of(ElementType type) { return type == kU8 ? "u8" : "i8"; }

class Weights {
 public:
  explicit Weights(unsigned seed) : random_(seed) {}

  std::string integers(std::string_view name, ElementType type, const Ints& dims, int low = -128, int high = 255) {
    std::string raw;
    for (std::int64_t i = elements(dims); i > 0; --i) {
      const int lowest = type == kU8 ? 0 : -128;
      const int number =
          std::uniform_int_distribution<int>(std::max(low, lowest), std::min(high, lowest + 255))(random_);
      raw.push_back(static_cast<char>(number));
    }
    return raw_tensor(name, type, dims, raw);
  }
  std::string reals(std::string_view name, const Ints& dims, float low, float high) {
    std::vector<float> values(static_cast<std::size_t>(elements(dims)));
    for (float& v : values) v = std::uniform_real_distribution<float>(low, high)(random_);
    return tensor<float>(name, dims, values);
  }
  std::string int32s(std::string_view name, const Ints& dims, int magnitude) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(elements(dims)));
    for (auto& v : values) v = std::uniform_int_distribution<int>(-magnitude, magnitude)(random_);
    return tensor<std::int32_t>(name, dims, values);
  }

 private:
  static std::int64_t elements(const Ints& dims) {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    return n;
  }
  std::mt19937 random_;
};

std::string zero_point(std::string_view name, ElementType type, int value) {
  return raw_tensor(name, type, {}, std::string(1, static_cast<char>(value)));
}

std::string scalar(std::string_view name, float value) { return tensor<float>(name, {}, {value}); }

std::vector<import::testing::Dim> dims_of(const Ints& dims) { return {dims.begin(), dims.end()}; }

// Operators of the standard.

Case qlinear_conv(ElementType x, ElementType w, bool per_channel, std::int64_t groups, int w_zero) {
  constexpr std::int64_t kChannels = 8;
  const std::int64_t out = groups == kChannels ? kChannels : 12;
  Weights weights(1);
  GraphWriter g;
  g.input("x", dims_of({2, kChannels, 7, 9}), x)
      .initializer(scalar("xs", 0.02F))
      .initializer(zero_point("xz", x, x == kU8 ? 120 : -3))
      .initializer(weights.integers("w", w, {out, kChannels / groups, 3, 3}))
      .initializer(per_channel ? weights.reals("ws", {out}, 0.001F, 0.01F) : scalar("ws", 0.004F))
      .initializer(per_channel ? weights.integers("wz", w, {out}, w_zero, w_zero) : zero_point("wz", w, w_zero))
      .initializer(scalar("ys", 0.05F))
      .initializer(zero_point("yz", x, x == kU8 ? 130 : 5))
      .initializer(weights.int32s("b", {out}, 3000))
      .node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"},
            {attr("pads", Ints{1, 0, 1, 2}), attr("strides", Ints{2, 1}), attr("group", groups)})
      .output("y", x);
  return {fmt::format("QLinearConv_{}_{}{}_groups{}_zero{}", name_of(x), name_of(w), per_channel ? "_channels" : "",
                      groups, w_zero == 0 ? 0 : 1),
          model_of(g)};
}

Case qlinear_matmul(ElementType a, ElementType b, bool per_column, bool constant_b) {
  Weights weights(2);
  GraphWriter g;
  g.input("a", dims_of({3, 5, 19}), a);
  if (constant_b) {
    g.initializer(weights.integers("b", b, {19, 21}));
  } else {
    g.input("b", dims_of({3, 19, 21}), b);
  }
  g.initializer(scalar("as", 0.02F))
      .initializer(zero_point("az", a, a == kU8 ? 127 : 4))
      .initializer(per_column ? weights.reals("bs", {21}, 0.005F, 0.02F) : scalar("bs", 0.01F))
      .initializer(per_column ? weights.integers("bz", b, {21}, 3, 90) : zero_point("bz", b, b == kU8 ? 110 : 7))
      .initializer(scalar("ys", 0.2F))
      .initializer(zero_point("yz", a, a == kU8 ? 128 : 0))
      .node("QLinearMatMul", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"})
      .output("y", a);
  return {fmt::format("QLinearMatMul_{}_{}{}{}", name_of(a), name_of(b), per_column ? "_columns" : "",
                      constant_b ? "" : "_dynamic"),
          model_of(g)};
}

Case matmul_integer(ElementType a, ElementType b, bool zero_points, bool per_column) {
  Weights weights(3);
  GraphWriter g;
  g.input("a", dims_of({2, 4, 33}), a).initializer(weights.integers("b", b, {33, 18}));
  std::vector<std::string> operands{"a", "b"};
  if (zero_points) {
    g.initializer(zero_point("az", a, 11))
        .initializer(per_column ? weights.integers("bz", b, {18}, -20, 100) : zero_point("bz", b, 9));
    operands.insert(operands.end(), {"az", "bz"});
  }
  g.node("MatMulInteger", operands, {"y"}).output("y", ElementType::kI32);
  return {fmt::format("MatMulInteger_{}_{}{}{}", name_of(a), name_of(b), zero_points ? "_zero" : "",
                      per_column ? "_columns" : ""),
          model_of(g)};
}

Case conv_integer(ElementType x, ElementType w) {
  Weights weights(4);
  GraphWriter g;
  g.input("x", dims_of({1, 6, 8, 8}), x)
      .initializer(weights.integers("w", w, {10, 6, 3, 3}))
      .initializer(zero_point("xz", x, 77))
      .initializer(zero_point("wz", w, 5))
      .node("ConvInteger", {"x", "w", "xz", "wz"}, {"y"}, {attr("pads", Ints{1, 1, 1, 1})})
      .output("y", ElementType::kI32);
  return {fmt::format("ConvInteger_{}_{}", name_of(x), name_of(w)), model_of(g)};
}

/// What dynamic quantisation writes: the scales are known at run time only.
Case dynamic_product(ElementType b, bool bias) {
  Weights weights(5);
  GraphWriter g;
  g.input("a", dims_of({2, 7, 40}))
      .initializer(weights.integers("b", b, {40, 24}))
      .initializer(scalar("bs", 0.02F))
      .initializer(zero_point("bz", b, b == kU8 ? 128 : 0))
      .initializer(weights.reals("c", {24}, -1.0F, 1.0F))
      .node("DynamicQuantizeLinear", {"a"}, {"q", "s", "z"})
      .node("MatMulInteger", {"q", "b", "z", "bz"}, {"sums"})
      .node("Cast", {"sums"}, {"real"}, {attr("to", 1)})
      .node("Mul", {"s", "bs"}, {"scale"})
      .node("Mul", {"real", "scale"}, {bias ? "product" : "y"});
  if (bias) g.node("Add", {"product", "c"}, {"y"});
  g.output("y");
  return {fmt::format("DynamicProduct_{}{}", name_of(b), bias ? "_bias" : ""), model_of(g), 1e-5};
}

std::vector<Case> standard_cases() {
  std::vector<Case> cases;
  for (const auto& [x, w] : {std::pair{kU8, kU8}, {kU8, kI8}, {kI8, kI8}})
    for (const bool per_channel : {false, true})
      for (const std::int64_t groups : {1, 2, 8}) {
        cases.push_back(qlinear_conv(x, w, per_channel, groups, 0));
        if (w == kU8) cases.push_back(qlinear_conv(x, w, per_channel, groups, 117));
      }
  for (const auto& [a, b] : {std::pair{kU8, kU8}, {kU8, kI8}, {kI8, kI8}}) {
    for (const bool per_column : {false, true}) cases.push_back(qlinear_matmul(a, b, per_column, true));
    cases.push_back(qlinear_matmul(a, b, false, false));
    if (a == kU8) cases.push_back(conv_integer(a, b));
  }
  for (const auto& [a, b] : {std::pair{kU8, kU8}, {kU8, kI8}, {kI8, kI8}, {kI8, kU8}})
    for (const bool zero_points : {false, true}) {
      cases.push_back(matmul_integer(a, b, zero_points, false));
      if (zero_points) cases.push_back(matmul_integer(a, b, true, true));
    }
  for (const ElementType b : {kU8, kI8})
    for (const bool bias : {false, true}) cases.push_back(dynamic_product(b, bias));
  return cases;
}

// com.microsoft.

constexpr const char* kMicrosoft = "com.microsoft";

/// An operator of one quantised operand, whose results may lie on another grid.
Case unary_case(const char* op, ElementType type, const Ints& dims, const std::vector<std::string>& attributes,
                double tolerance = 0) {
  GraphWriter g;
  g.input("x", dims_of(dims), type)
      .initializer(scalar("xs", 0.03F))
      .initializer(zero_point("xz", type, type == kU8 ? 110 : -9))
      .initializer(scalar("ys", std::string_view(op) == "QLinearSoftmax" || std::string_view(op) == "QLinearSigmoid"
                                    ? 1.0F / 256
                                    : 0.025F))
      .initializer(zero_point("yz", type, type == kU8 ? 0 : -128))
      .node(op, {"x", "xs", "xz", "ys", "yz"}, {"y"}, attributes, "", kMicrosoft)
      .output("y", type);
  return {fmt::format("{}_{}", op, name_of(type)), model_of(g), tolerance};
}

Case binary_case(const char* op, ElementType type, const Ints& b_dims, bool constant_b) {
  Weights weights(6);
  GraphWriter g;
  g.input("a", dims_of({2, 5, 17}), type);
  if (constant_b) {
    g.initializer(weights.integers("b", type, b_dims));
  } else {
    g.input("b", dims_of(b_dims), type);
  }
  g.initializer(scalar("as", 0.031F))
      .initializer(zero_point("az", type, 100))
      .initializer(scalar("bs", 0.017F))
      .initializer(zero_point("bz", type, 20))
      .initializer(scalar("ys", 0.041F))
      .initializer(zero_point("yz", type, 64))
      .node(op, {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"}, {}, "", kMicrosoft)
      .output("y", type);
  // Multiplies by quotients of scales where the standard divides by the last: ties fall to either side.
  return {fmt::format("{}_{}_{}{}", op, name_of(type), b_dims.size(), constant_b ? "_constant" : ""), model_of(g), 1};
}

Case concat_case(ElementType type) {
  GraphWriter g;
  g.input("a", dims_of({2, 3, 5}), type)
      .input("b", dims_of({2, 4, 5}), type)
      .initializer(scalar("as", 0.03F))
      .initializer(zero_point("az", type, 100))
      .initializer(scalar("bs", 0.05F))
      .initializer(zero_point("bz", type, 20))
      .initializer(scalar("ys", 0.05F))
      .initializer(zero_point("yz", type, 20))
      .node("QLinearConcat", {"ys", "yz", "a", "as", "az", "b", "bs", "bz"}, {"y"}, {attr("axis", 1)}, "", kMicrosoft)
      .output("y", type);
  return {fmt::format("QLinearConcat_{}", name_of(type)), model_of(g)};
}

Case where_case(ElementType type) {
  GraphWriter g;
  g.input("c", dims_of({3, 7}), ElementType::kBool)
      .input("a", dims_of({3, 7}), type)
      .input("b", dims_of({3, 7}), type)
      .initializer(scalar("as", 0.03F))
      .initializer(zero_point("az", type, 100))
      .initializer(scalar("bs", 0.05F))
      .initializer(zero_point("bz", type, 20))
      .initializer(scalar("ys", 0.05F))
      .initializer(zero_point("yz", type, 20))
      .node("QLinearWhere", {"c", "a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"}, {}, "", kMicrosoft)
      .output("y", type);
  return {fmt::format("QLinearWhere_{}", name_of(type)), model_of(g)};
}

Case gemm_case(ElementType a, ElementType b, bool real, bool per_column) {
  Weights weights(7);
  GraphWriter g;
  g.input("a", dims_of({6, 23}), a)
      .initializer(weights.integers("b", b, {14, 23}))
      .initializer(scalar("as", 0.02F))
      .initializer(zero_point("az", a, a == kU8 ? 127 : 4))
      .initializer(per_column ? weights.reals("bs", {14}, 0.005F, 0.02F) : scalar("bs", 0.01F))
      .initializer(per_column ? weights.integers("bz", b, {14}, 0, 0) : zero_point("bz", b, b == kU8 ? 110 : 0))
      .initializer(weights.int32s("c", {14}, 3000))
      .initializer(scalar("ys", 0.2F))
      .initializer(zero_point("yz", a, a == kU8 ? 128 : 0));
  std::vector<std::string> operands{"a", "as", "az", "b", "bs", "bz", "c"};
  if (!real) operands.insert(operands.end(), {"ys", "yz"});
  g.node("QGemm", operands, {"y"}, {attr("transB", 1)}, "", kMicrosoft).output("y", real ? ElementType::kF32 : a);
  return {fmt::format("QGemm_{}_{}{}{}", name_of(a), name_of(b), real ? "_real" : "", per_column ? "_columns" : ""),
          model_of(g), real ? 1e-6 : 0};
}

Case dynamic_matmul_case(ElementType b, bool bias) {
  Weights weights(8);
  GraphWriter g;
  g.input("a", dims_of({3, 26}))
      .initializer(weights.integers("b", b, {26, 15}))
      .initializer(weights.reals("bs", {15}, 0.005F, 0.02F))
      .initializer(weights.integers("bz", b, {15}, b == kU8 ? 100 : 0, b == kU8 ? 140 : 0))
      .initializer(weights.reals("c", {15}, -1.0F, 1.0F));
  std::vector<std::string> operands{"a", "b", "bs", "bz"};
  if (bias) operands.emplace_back("c");
  g.node("DynamicQuantizeMatMul", operands, {"y"}, {}, "", kMicrosoft).output("y");
  return {fmt::format("DynamicQuantizeMatMul_{}{}", name_of(b), bias ? "_bias" : ""), model_of(g), 1e-5};
}

Case integer_to_float_case(ElementType a, ElementType b) {
  Weights weights(9);
  GraphWriter g;
  g.input("a", dims_of({3, 26}), a)
      .initializer(weights.integers("b", b, {26, 15}))
      .initializer(scalar("as", 0.02F))
      .initializer(weights.reals("bs", {15}, 0.005F, 0.02F))
      .initializer(zero_point("az", a, 9))
      .initializer(weights.integers("bz", b, {15}, 3, 3))
      .initializer(weights.reals("c", {15}, -1.0F, 1.0F))
      .node("MatMulIntegerToFloat", {"a", "b", "as", "bs", "az", "bz", "c"}, {"y"}, {}, "", kMicrosoft)
      .output("y");
  return {fmt::format("MatMulIntegerToFloat_{}_{}", name_of(a), name_of(b)), model_of(g), 1e-5};
}

Case nbits_case(std::int64_t bits, std::int64_t k, bool zero_points, bool bias) {
  constexpr std::int64_t kColumns = 18;
  constexpr std::int64_t kBlock = 32;
  const std::int64_t blocks = (k + kBlock - 1) / kBlock;
  Weights weights(10);
  GraphWriter g;
  g.input("a", dims_of({2, 5, k}))
      .initializer(weights.integers("b", kU8, {kColumns, blocks, kBlock * bits / 8}))
      .initializer(weights.reals("s", {kColumns * blocks}, 0.005F, 0.02F))
      .initializer(weights.integers("z", kU8, {kColumns * ((blocks * bits + 7) / 8)}))
      .initializer(weights.reals("c", {kColumns}, -1.0F, 1.0F));
  std::vector<std::string> operands{"a", "b", "s"};
  if (zero_points) operands.emplace_back("z");
  if (bias) {
    operands.resize(5);
    operands.emplace_back("c");
  }
  g.node("MatMulNBits", operands, {"y"},
         {attr("K", k), attr("N", kColumns), attr("bits", bits), attr("block_size", kBlock)}, "", kMicrosoft)
      .output("y");
  return {fmt::format("MatMulNBits_{}_{}{}{}", bits, k, zero_points ? "_zero" : "", bias ? "_bias" : ""), model_of(g),
          1e-5};
}

std::vector<Case> microsoft_cases() {
  std::vector<Case> cases;
  for (const ElementType type : {kU8, kI8}) {
    cases.push_back(unary_case("QLinearSigmoid", type, {3, 50}, {}));
    cases.push_back(unary_case("QLinearLeakyRelu", type, {3, 50}, {attr("alpha", 0.2F)}));
    // Its exponentials come from a table of rounded numbers.
    cases.push_back(unary_case("QLinearSoftmax", type, {3, 20}, {attr("axis", 1), attr("opset", 13)}, 1));
    cases.push_back(unary_case("QLinearGlobalAveragePool", type, {2, 5, 6, 7}, {attr("channels_last", 0)}));
    // Averages of integers are rescaled, not averages of numbers: ties fall to either side.
    cases.push_back(unary_case("QLinearAveragePool", type, {2, 5, 6, 7},
                               {attr("kernel_shape", Ints{3, 2}), attr("strides", Ints{2, 1})}, 1));
    cases.push_back(concat_case(type));
    cases.push_back(where_case(type));
    for (const char* op : {"QLinearAdd", "QLinearMul"}) {
      cases.push_back(binary_case(op, type, {2, 5, 17}, false));
      cases.push_back(binary_case(op, type, {17}, true));
      cases.push_back(binary_case(op, type, {}, true));
    }
    cases.push_back(dynamic_matmul_case(type, false));
    cases.push_back(dynamic_matmul_case(type, true));
  }
  for (const auto& [a, b] : {std::pair{kU8, kU8}, {kU8, kI8}, {kI8, kI8}}) {
    for (const bool real : {false, true}) cases.push_back(gemm_case(a, b, real, false));
    cases.push_back(gemm_case(a, b, false, true));
    cases.push_back(integer_to_float_case(a, b));
  }
  for (const std::int64_t bits : {4, 8})
    for (const std::int64_t k : {64, 100})
      for (const bool zero_points : {false, true}) cases.push_back(nbits_case(bits, k, zero_points, false));
  cases.push_back(nbits_case(4, 64, false, true));
  return cases;
}

// Graphs in QDQ form.

/// Writes an operator between dequantisations and a quantisation.
class QdqWriter {
 public:
  QdqWriter(ElementType type, unsigned seed) : type_(type), weights_(seed) {}

  GraphWriter& graph() { return graph_; }

  /// A quantised input and its real form.
  std::string input(const std::string& name, const Ints& dims, float scale, int zero) {
    graph_.input(name, dims_of(dims), type_);
    return dequantize(name, scale, zero);
  }
  std::string dequantize(const std::string& q, float scale, int zero) {
    grid(q, scale, zero);
    graph_.node("DequantizeLinear", {q, q + "_s", q + "_z"}, {q + "_r"});
    return q + "_r";
  }
  std::string quantize(const std::string& real, const std::string& q, float scale, int zero) {
    grid(q, scale, zero);
    graph_.node("QuantizeLinear", {real, q + "_s", q + "_z"}, {q});
    return q;
  }
  std::string weights(const std::string& name, ElementType type, const Ints& dims, std::int64_t axis, bool per_slice) {
    const Ints slices = per_slice ? Ints{dims[static_cast<std::size_t>(axis)]} : Ints{};
    graph_.initializer(weights_.integers(name, type, dims))
        .initializer(weights_.reals(name + "_s", slices, 0.004F, 0.008F))
        .initializer(weights_.integers(name + "_z", type, slices, 0, 0))
        .node("DequantizeLinear", {name, name + "_s", name + "_z"}, {name + "_r"}, {attr("axis", axis)});
    return name + "_r";
  }
  std::string bias(const std::string& name, std::int64_t n, float scale) {
    graph_.initializer(weights_.int32s(name, {n}, 3000))
        .initializer(scalar(name + "_s", scale))
        .node("DequantizeLinear", {name, name + "_s"}, {name + "_r"});
    return name + "_r";
  }
  Case finish(const std::string& name, double tolerance = 0) {
    graph_.output("y", type_);
    return {fmt::format("Qdq{}_{}", name, name_of(type_)), graph_.model(13), tolerance};
  }

 private:
  void grid(const std::string& q, float scale, int zero) {
    graph_.initializer(scalar(q + "_s", scale))
        .initializer(zero_point(q + "_z", type_, type_ == kU8 ? zero + 128 : zero));
  }

  ElementType type_;
  Weights weights_;
  GraphWriter graph_;
};

Case qdq_conv(ElementType type, ElementType w_type, std::int64_t groups, bool per_channel, bool relu) {
  QdqWriter q(type, 11);
  const std::string x = q.input("x", {1, 8, 9, 9}, 0.03F, -5);
  const std::string w = q.weights("w", w_type, {8, 8 / groups, 3, 3}, 0, per_channel);
  std::vector<std::string> operands{x, w};
  if (!per_channel) operands.push_back(q.bias("b", 8, 0.03F * 0.005F));
  q.graph().node("Conv", operands, {relu ? "c" : "r"}, {attr("pads", Ints{1, 1, 1, 1}), attr("group", groups)});
  if (relu) q.graph().node("Relu", {"c"}, {"r"});
  q.quantize("r", "y", 0.08F, relu ? -128 : 3);
  return q.finish(
      fmt::format("Conv_{}_groups{}{}{}", name_of(w_type), groups, per_channel ? "_channels" : "", relu ? "_relu" : ""),
      // A bias whose grid is not that of the sums is rounded to it here, and taken as it is there.
      per_channel ? 0 : 1);
}

Case qdq_matmul(ElementType type, ElementType b_type, bool dynamic) {
  QdqWriter q(type, 12);
  const std::string a = q.input("a", {2, 6, 30}, 0.03F, 7);
  const std::string b = dynamic ? q.input("b", {2, 30, 11}, 0.02F, -4) : q.weights("b", b_type, {30, 11}, 1, false);
  q.graph().node("MatMul", {a, b}, {"r"});
  q.quantize("r", "y", 0.2F, 3);
  return q.finish(fmt::format("MatMul_{}{}", name_of(b_type), dynamic ? "_dynamic" : ""));
}

Case qdq_gemm(ElementType type) {
  QdqWriter q(type, 13);
  const std::string a = q.input("a", {6, 30}, 0.03F, 7);
  const std::string b = q.weights("b", type, {11, 30}, 0, false);
  q.graph().node("Gemm", {a, b}, {"r"}, {attr("transB", 1)});
  q.quantize("r", "y", 0.2F, 3);
  return q.finish("Gemm");
}

Case qdq_binary(const char* op, ElementType type) {
  QdqWriter q(type, 14);
  const std::string a = q.input("a", {2, 6, 30}, 0.03F, 7);
  const std::string b = q.input("b", {6, 30}, 0.02F, -3);
  q.graph().node(op, {a, b}, {"r"});
  q.quantize("r", "y", 0.05F, 3);
  return q.finish(op, 1);  // see binary_case
}

/// Operators of one operand; `same_grid`: movement.
Case qdq_unary(const char* op, ElementType type, const Ints& dims, const std::vector<std::string>& attributes,
               bool same_grid, double tolerance = 0, const std::vector<std::string>& constants = {}) {
  QdqWriter q(type, 15);
  std::vector<std::string> operands{q.input("x", dims, 0.03F, 7)};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    operands.push_back(constants[i].empty() ? "" : fmt::format("c{}", i));
    if (!constants[i].empty()) q.graph().initializer(constants[i]);
  }
  q.graph().node(op, operands, {"r"}, attributes);
  q.quantize("r", "y", same_grid ? 0.03F : 0.04F, same_grid ? 7 : -10);
  return q.finish(op, tolerance);
}

std::vector<Case> qdq_cases() {
  std::vector<Case> cases;
  for (const auto& [x, w] : {std::pair{kU8, kU8}, {kU8, kI8}, {kI8, kI8}})
    for (const std::int64_t groups : {1, 2, 8})
      for (const bool per_channel : {false, true}) cases.push_back(qdq_conv(x, w, groups, per_channel, groups == 1));
  for (const ElementType type : {kU8, kI8}) {
    cases.push_back(qdq_matmul(type, kI8, false));
    cases.push_back(qdq_matmul(type, type, true));
    cases.push_back(qdq_gemm(type));
    for (const char* op : {"Add", "Mul", "Sub", "Div"}) cases.push_back(qdq_binary(op, type));
    for (const char* op : {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Exp"})
      cases.push_back(qdq_unary(op, type, {3, 40}, {}, false, 1));
    cases.push_back(qdq_unary("Softmax", type, {3, 40}, {}, false, 1));
    cases.push_back(qdq_unary("Transpose", type, {3, 4, 5}, {attr("perm", Ints{2, 0, 1})}, true));
    cases.push_back(qdq_unary("MaxPool", type, {1, 3, 6, 6}, {attr("kernel_shape", Ints{2, 2})}, true));
    cases.push_back(qdq_unary("AveragePool", type, {1, 3, 6, 6}, {attr("kernel_shape", Ints{2, 2})}, false, 1));
    cases.push_back(qdq_unary("GlobalAveragePool", type, {1, 3, 6, 6}, {}, false));
    cases.push_back(qdq_unary("ReduceMean", type, {2, 3, 6}, {attr("axes", Ints{2})}, false, 1));
    cases.push_back(qdq_unary("Reshape", type, {3, 4}, {}, true, 0, {tensor<std::int64_t>("c0", {1}, {12})}));
    cases.push_back(qdq_unary("Clip", type, {3, 40}, {}, false, 0, {scalar("c0", -1.0F), scalar("c1", 2.0F)}));
  }
  return cases;
}

class Quantized : public ::testing::TestWithParam<Case> {};

TEST_P(Quantized, AgreesWithOnnxRuntime) {
  if (peer_library() == nullptr) GTEST_SKIP() << kNoPeer;
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const auto differences = compare_with_peer(GetParam().model, seed);
    ASSERT_TRUE(differences) << differences.error().message;
    for (const OutputDifference& d : *differences) {
      const double tolerance = GetParam().tolerance;
      const double allowed = tolerance < 1 ? tolerance * d.largest_expected : tolerance;
      const bool has_signed_weights = GetParam().name.find("_i8") != std::string::npos;
      if (d.largest > allowed && has_signed_weights && peer_limits_sums()) GTEST_SKIP() << kPeerLimitsSums;
      EXPECT_LE(d.largest, allowed) << d.different << " of " << d.elements << " differ, seed " << seed;
    }
  }
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Standard, Quantized, ::testing::ValuesIn(standard_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Microsoft, Quantized, ::testing::ValuesIn(microsoft_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Qdq, Quantized, ::testing::ValuesIn(qdq_cases()), name_of_case);

}  // namespace
}  // namespace bantam::testing
