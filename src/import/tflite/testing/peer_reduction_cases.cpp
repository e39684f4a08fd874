// Reductions, running sums, pooling.
#include "import/tflite/testing/peer_case_builder.h"

namespace bantam::import::tflite::testing {
namespace {

using enum BuiltinOperator;

TensorSpec operand(TensorType type, std::vector<std::int32_t> shape, float scale = 0.1F, std::int64_t zero_point = -7) {
  TensorSpec spec{.type = type, .shape = std::move(shape)};
  if (type == INT8 || type == INT16) {
    spec.scale = {scale};
    spec.zero_point = {type == INT8 ? zero_point : 0};
  }
  return spec;
}

void add_reduction(std::vector<PeerCase>& cases, BuiltinOperator code, TensorType type, bool rescales) {
  struct Form {
    const char* name;
    std::vector<std::int32_t> axes;
    bool keep;
    std::vector<std::int32_t> result;
  };
  const Form forms[] = {
      {"rows", {1, 2}, true, {2, 1, 1, 3}}, {"last", {-1}, false, {2, 4, 5}}, {"first", {0}, false, {4, 5, 3}}};
  for (const Form& form : forms) {
    CaseBuilder c(std::string(schema::EnumNameBuiltinOperator(code)) + "_" + schema::EnumNameTensorType(type) + "_" +
                  form.name);
    const int x = c.input(operand(type, {2, 4, 5, 3}));
    const int y = c.output(rescales ? operand(type, form.result, 0.07F, 4) : operand(type, form.result));
    c.op(code, {x, c.integers(form.axes)}, {y}, BuiltinOptions::ReducerOptions,
         schema::CreateReducerOptions(c.fbb(), form.keep).Union());
    cases.push_back(c.finish());
  }
}

void add_searches(std::vector<PeerCase>& cases) {
  for (const BuiltinOperator code : {ARG_MAX, ARG_MIN}) {
    for (const TensorType type : {FLOAT32, INT8}) {
      CaseBuilder c(std::string(schema::EnumNameBuiltinOperator(code)) + "_" + schema::EnumNameTensorType(type));
      const int x = c.input(operand(type, {3, 9, 2}), Range{-4, 4});
      c.op(code, {x, c.integers({}, {1})}, {c.output({.type = INT32, .shape = {3, 2}})});
      cases.push_back(c.finish());
    }
  }
}

void add_cumsum(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8}) {
    for (const int form : {0, 1, 2, 3}) {
      CaseBuilder c(std::string("CUMSUM_") + schema::EnumNameTensorType(type) + "_" + std::to_string(form));
      const int x = c.input(operand(type, {3, 7, 2}));
      const int y = c.output(operand(type, {3, 7, 2}, 0.3F, 11));
      c.op(CUMSUM, {x, c.integers({}, {form % 2 == 0 ? 1 : -1})}, {y}, BuiltinOptions::CumsumOptions,
           schema::CreateCumsumOptions(c.fbb(), form % 2 != 0, form > 1).Union());
      cases.push_back(c.finish());
    }
  }
}

void add_pooling(std::vector<PeerCase>& cases, BuiltinOperator code, TensorType type) {
  for (const Padding padding : {Padding::SAME, Padding::VALID}) {
    for (const Activation activation : {Activation::NONE, Activation::RELU6}) {
      const bool same = padding == Padding::SAME;
      CaseBuilder c(std::string(schema::EnumNameBuiltinOperator(code)) + "_" + schema::EnumNameTensorType(type) +
                    (same ? "_same" : "_valid") + (activation == Activation::NONE ? "" : "_relu6"));
      const int x = c.input(operand(type, {1, 7, 6, 3}));
      const int y =
          c.output(operand(type, same ? std::vector<std::int32_t>{1, 4, 3, 3} : std::vector<std::int32_t>{1, 3, 2, 3}));
      c.op(code, {x}, {y}, BuiltinOptions::Pool2DOptions,
           schema::CreatePool2DOptions(c.fbb(), padding, 2, 2, 3, 2, activation).Union());
      cases.push_back(c.finish());
    }
  }
}

}  // namespace

void add_reduction_cases(std::vector<PeerCase>& cases) {
  for (const BuiltinOperator code : {MEAN, SUM})
    for (const TensorType type : {FLOAT32, INT8, INT16}) add_reduction(cases, code, type, true);
  for (const BuiltinOperator code : {REDUCE_MAX, REDUCE_MIN})
    for (const TensorType type : {FLOAT32, INT8}) add_reduction(cases, code, type, false);
  add_reduction(cases, REDUCE_ALL, BOOL, false);
  add_searches(cases);
  add_cumsum(cases);
  for (const BuiltinOperator code : {AVERAGE_POOL_2D, MAX_POOL_2D})
    for (const TensorType type : {FLOAT32, INT8, INT16}) add_pooling(cases, code, type);
  add_pooling(cases, L2_POOL_2D, FLOAT32);
}

}  // namespace bantam::import::tflite::testing
