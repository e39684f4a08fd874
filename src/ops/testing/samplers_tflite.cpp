// How operators that only TensorFlow Lite knows are drawn.
#include "ops/data/update_slice/update_slice.h"
#include "ops/detect/detection_postprocess/detection_postprocess.h"
#include "ops/elementwise/rsqrt_q/rsqrt_q.h"
#include "ops/nn/batch_matmul_q/batch_matmul_q.h"
#include "ops/nn/l2_normalize_q/l2_normalize_q.h"
#include "ops/nn/log_softmax_q/log_softmax_q.h"
#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

constexpr ElementType kI8 = ElementType::kI8;
constexpr ElementType kI16 = ElementType::kI16;
constexpr ElementType kF32 = ElementType::kF32;

void update_slice(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  std::vector<std::int64_t> part(x.dims, x.dims + x.rank);
  for (std::int64_t& d : part) d = s.pick(0, d);
  s.like(dense_desc(x.type, part));
  s.fresh(dense_desc(s.one_of({ElementType::kI32, ElementType::kI64}), {x.rank}), {-2.0, 9.0});
}

void detection_postprocess(Sampling& s) {
  const std::int64_t boxes = s.dim();
  DetectionPostprocessParams p;
  p.classes = s.pick(1, 4);
  p.classes_per_detection = s.pick(1, 3);
  p.detections_per_class = s.pick(1, 5);
  p.max_detections = s.pick(0, 6);
  p.results = p.max_detections + s.pick(0, 4);
  p.regular = s.pick(0, 1);
  p.score_threshold = s.real(0, 0.6);
  p.overlap_threshold = s.real(0.1, 1.0);
  p.scale_y = p.scale_x = 10;
  s.fresh(dense_desc(kF32, {1, boxes, s.pick(4, 5)}), {-1.0, 1.0});
  s.fresh(dense_desc(kF32, {1, boxes, p.classes + s.pick(0, 1)}), {0.0, 1.0});
  s.constant(dense_desc(kF32, {boxes, 4}), {0.1, 0.9});
  s.set_params(p);
}

void rsqrt_q(Sampling& s) {
  const ElementType type = s.type({kI8, kI16});
  const RsqrtQParams p{type == kI8 ? -128 : 0, 0, s.pick(1 << 30, 0x7fffffff), s.pick(0, 8)};
  s.fresh(dense_desc(type, {s.dim(), s.dim()}), {type == kI8 ? -128.0 : 0.0, type == kI8 ? 127.0 : 32767.0});
  s.set_params(p);
}

void batch_matmul_q(Sampling& s) {
  const ElementType type = s.type({kI8, kI16});
  const TensorDesc a = s.any(type, 2, 4);
  BatchMatmulQParams p{.transpose_a = s.pick(0, 1), .transpose_b = s.pick(0, 1)};
  const std::int64_t depth = a.last(p.transpose_a != 0 ? 1 : 0);
  std::vector<std::int64_t> b(a.dims, a.dims + a.rank);
  b[b.size() - 2] = p.transpose_b != 0 ? s.dim() : depth;
  b[b.size() - 1] = p.transpose_b != 0 ? depth : s.dim();
  if (b.size() > 2 && s.one_in(3)) b[0] = 1;
  s.like(dense_desc(type, b));
  if (type == kI8) {
    p.a_zero_point = s.pick(-128, 127);
    p.b_zero_point = s.pick(-128, 127);
    p.output_zero_point = s.pick(-128, 127);
  }
  p.multiplier = s.pick(1 << 30, 0x7fffffff);
  p.shift = s.pick(-12, -6);
  s.set_params(p);
}

void l2_normalize_q(Sampling& s) {
  s.any(s.type({kI8}), 1, 4);
  s.set_params(L2NormalizeQParams{s.pick(-128, 127)});
}

void log_softmax_q(Sampling& s) {
  s.any(s.type({kI8}), 1, 4);
  s.set_params(LogSoftmaxQParams{s.pick(1 << 30, 0x7fffffff), s.pick(18, 26), s.pick(1 << 30, 0x7fffffff),
                                 s.pick(-25, -18), s.pick(-255, 0)});
}

void resize_bilinear_q(Sampling& s) {
  const TensorDesc x = s.any(s.type({kI8}), 4, 4);
  ResizeBilinearQParams p{.height = s.pick(1, 9), .width = s.pick(1, 9)};
  p.scale_h = x.dims[1] * 1024 / p.height;
  p.scale_w = x.dims[2] * 1024 / p.width;
  p.half_pixel = s.pick(0, 1);
  s.set_params(p);
}

constexpr SamplerRow kRows[] = {
    {&kUpdateSlice, update_slice},
    {&kDetectionPostprocess, detection_postprocess},
    {&kRsqrtQ, rsqrt_q},
    {&kBatchMatmulQ, batch_matmul_q},
    {&kL2NormalizeQ, l2_normalize_q},
    {&kLogSoftmaxQ, log_softmax_q},
    {&kResizeBilinearQ, resize_bilinear_q},
};

}  // namespace

std::span<const SamplerRow> tflite_samplers() { return kRows; }

}  // namespace bantam::ops::testing
