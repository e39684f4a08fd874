// Products, normalisations, resampling.
#include "import/tflite/testing/peer_case_builder.h"

namespace bantam::import::tflite::testing {
namespace {

using enum BuiltinOperator;
using Shape = std::vector<std::int32_t>;

TensorSpec numbers(TensorType type, Shape shape, float scale, std::int64_t zero_point) {
  TensorSpec spec{.type = type, .shape = std::move(shape)};
  if (type == FLOAT32) return spec;
  spec.scale = {scale};
  spec.zero_point = {zero_point};
  return spec;
}

void add_batch_matmul(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16}) {
    for (const int form : {0, 1, 2, 3}) {
      const bool adj_x = form % 2 != 0;
      const bool adj_y = form > 1;
      CaseBuilder c(std::string("BATCH_MATMUL_") + schema::EnumNameTensorType(type) + "_" + std::to_string(form));
      const std::int64_t zero = type == INT8 ? 1 : 0;
      const int a = c.input(numbers(type, adj_x ? Shape{2, 3, 6, 4} : Shape{2, 3, 4, 6}, 0.02F, -5 * zero));
      const int b = c.input(numbers(type, adj_y ? Shape{1, 3, 5, 6} : Shape{1, 3, 6, 5}, 0.03F, 9 * zero));
      const int y = c.output(numbers(type, {2, 3, 4, 5}, type == INT16 ? 40.0F : 0.2F, 3 * zero));
      c.op(BATCH_MATMUL, {a, b}, {y}, BuiltinOptions::BatchMatMulOptions,
           schema::CreateBatchMatMulOptions(c.fbb(), adj_x, adj_y).Union());
      cases.push_back(c.finish());
    }
  }
}

void add_normalisation(std::vector<PeerCase>& cases, const char* name, BuiltinOperator code, const TensorSpec& x,
                       TensorSpec y) {
  CaseBuilder c(name);
  const int in = c.input(x);
  y.shape = x.shape;
  const int out = c.output(y);
  auto type = BuiltinOptions::NONE;
  flatbuffers::Offset<void> options = 0;
  if (code == SOFTMAX) {
    type = BuiltinOptions::SoftmaxOptions;
    options = schema::CreateSoftmaxOptions(c.fbb(), 1.0F).Union();
  } else if (code == L2_NORMALIZATION) {
    type = BuiltinOptions::L2NormOptions;
    options = schema::CreateL2NormOptions(c.fbb()).Union();
  }
  c.op(code, {in}, {out}, type, options);
  cases.push_back(c.finish());
}

void add_normalisations(std::vector<PeerCase>& cases) {
  const Shape shape{4, 3, 19};
  const TensorSpec f32 = numbers(FLOAT32, shape, 0, 0);
  const TensorSpec i8 = numbers(INT8, shape, 0.11F, -4);
  const TensorSpec fine = numbers(INT8, shape, 0.004F, 20);
  const TensorSpec i16 = numbers(INT16, shape, 0.0003F, 0);
  add_normalisation(cases, "SOFTMAX_f32", SOFTMAX, f32, f32);
  add_normalisation(cases, "SOFTMAX_i8", SOFTMAX, i8, numbers(INT8, shape, 1.0F / 256, -128));
  add_normalisation(cases, "SOFTMAX_i8_i16", SOFTMAX, i8, numbers(INT16, shape, 1.0F / 65536, -32768));
  add_normalisation(cases, "SOFTMAX_i16", SOFTMAX, i16, numbers(INT16, shape, 1.0F / 32768, 0));
  add_normalisation(cases, "LOG_SOFTMAX_f32", LOG_SOFTMAX, f32, f32);
  add_normalisation(cases, "LOG_SOFTMAX_i8", LOG_SOFTMAX, i8, numbers(INT8, shape, 1.0F / 16, 127));
  add_normalisation(cases, "LOG_SOFTMAX_i8_fine", LOG_SOFTMAX, fine, numbers(INT8, shape, 1.0F / 16, 127));
  add_normalisation(cases, "L2_NORMALIZATION_f32", L2_NORMALIZATION, f32, f32);
  add_normalisation(cases, "L2_NORMALIZATION_i8", L2_NORMALIZATION, i8, numbers(INT8, shape, 1.0F / 128, 0));
}

void add_resizing(std::vector<PeerCase>& cases, BuiltinOperator code, TensorType type) {
  for (const Shape& size : {Shape{9, 7}, Shape{3, 2}}) {
    for (const int form : {0, 1, 2}) {
      CaseBuilder c(std::string(schema::EnumNameBuiltinOperator(code)) + "_" + schema::EnumNameTensorType(type) + "_" +
                    std::to_string(size[0]) + "_" + std::to_string(form));
      const TensorSpec x = numbers(type, {2, 5, 4, 3}, 0.1F, 0);
      TensorSpec y = x;
      y.shape = {2, size[0], size[1], 3};
      const int in = c.input(x);
      const int out = c.output(y);
      const bool corners = form == 1;
      const bool half = form == 2;
      if (code == RESIZE_BILINEAR) {
        c.op(code, {in, c.integers(size)}, {out}, BuiltinOptions::ResizeBilinearOptions,
             schema::CreateResizeBilinearOptions(c.fbb(), corners, half).Union());
      } else {
        c.op(code, {in, c.integers(size)}, {out}, BuiltinOptions::ResizeNearestNeighborOptions,
             schema::CreateResizeNearestNeighborOptions(c.fbb(), corners, half).Union());
      }
      cases.push_back(c.finish());
    }
  }
}

}  // namespace

void add_matrix_cases(std::vector<PeerCase>& cases) {
  add_batch_matmul(cases);
  add_normalisations(cases);
  for (const TensorType type : {FLOAT32, INT8}) add_resizing(cases, RESIZE_BILINEAR, type);
  for (const TensorType type : {FLOAT32, INT8, INT16}) add_resizing(cases, RESIZE_NEAREST_NEIGHBOR, type);
}

}  // namespace bantam::import::tflite::testing
