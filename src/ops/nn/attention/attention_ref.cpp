// The plain definition of attention: the scores of one query, their softmax, and the values they weigh.
#include <cmath>

#include "ops/nn/attention/kernels.h"
#include "ops/nn/attention/problem.h"

namespace bantam::ops::attention {
namespace {

/// The score of query (b, h, s) and key j.
float score(const Invocation& call, const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t s,
            std::int64_t j) {
  const auto& p = call.as<AttentionParams>();
  if (call.has(kMask)) {
    const bool given = call.input<std::uint8_t>(kMask)[problem.mask.at(b, h, s) + j * problem.mask.strides[3]] != 0;
    if (given != (p.mask_keeps != 0)) return p.masked_value;
  }
  const float* q = call.input<float>(kQ) + problem.q.at(b, h, s);
  const float* k = call.input<float>(kK) + problem.k.at(b, h / problem.group, j);
  float sum = 0;
  for (std::int64_t i = 0; i < problem.q.width; ++i) sum += q[i] * k[i];
  float result = p.scale * sum;
  if (p.softcap > 0) result = p.softcap * std::tanh(result / p.softcap);
  if (call.has(kBias))
    result += p.bias_scale * call.input<float>(kBias)[problem.bias.at(b, h, s) + j * problem.bias.strides[3]];
  return result;
}

/// Weights the values of the keys in sight by the softmax of `scores`, which are those of these keys.
void weigh_values(const Invocation& call, const Problem& problem, const KeyRange& keys, const float* values,
                  float* scores, float* y) {
  const std::int64_t width = problem.v.width;
  std::fill_n(y, width, 0.0F);
  if (keys.first == keys.last) return;
  const std::int64_t count = keys.last - keys.first;
  float maximum = scores[0];
  for (std::int64_t j = 1; j < count; ++j) maximum = scores[j] > maximum ? scores[j] : maximum;
  if (call.as<AttentionParams>().empty_rows_zero != 0 && maximum == -std::numeric_limits<float>::infinity()) return;
  double sum = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    scores[j] = std::exp(scores[j] - maximum);
    sum += static_cast<double>(scores[j]);
  }
  for (std::int64_t j = 0; j < count; ++j) {
    const float weight = static_cast<float>(static_cast<double>(scores[j]) / sum);
    const float* value = values + (keys.first + j) * problem.v.row_stride;
    for (std::int64_t i = 0; i < width; ++i) y[i] += weight * value[i];
  }
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  return {.scratch_bytes = make_problem(call).k.rows * static_cast<std::int64_t>(sizeof(float))};
}

Status run_reference(const Invocation& call) {
  const auto& p = call.as<AttentionParams>();
  const Problem problem = make_problem(call);
  BANTAM_RETURN_IF_ERROR(check_lengths(call, problem));
  auto* scores = reinterpret_cast<float*>(call.scratch);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t length = length_of(call, problem, b);
    for (std::int64_t h = 0; h < problem.q.heads; ++h) {
      const float* values = call.input<float>(kV) + problem.v.at(b, h / problem.group, 0);
      for (std::int64_t s = 0; s < problem.q.rows; ++s) {
        const KeyRange keys = problem.visible(p, length, s);
        for (std::int64_t j = keys.first; j < keys.last; ++j) scores[j - keys.first] = score(call, problem, b, h, s, j);
        weigh_values(call, problem, keys, values, scores, call.output<float>() + problem.y.at(b, h, s));
      }
    }
  }
  return ok_status();
}

}  // namespace bantam::ops::attention
