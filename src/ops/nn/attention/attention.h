// Scaled dot-product attention, y = softmax(scores) v, without a matrix of all scores: kernels take keys in blocks and
// carry each query's maximum and sum along (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// Operands: 0 q, 1 k, 2 v: f32, rank 4, each [B,heads,length,width] or, where its flag says so, [B,length,heads,width],
// which is what a projection gives. q has H heads of S queries, k and v have G heads of T keys; G divides H, and query
// head h reads key head h / (H / G). q and k have width D, v has width E. 3 bias f32 (optional), 4 mask bool
// (optional), both broadcastable to [B,H,S,T]. 5 lengths i32 [B] (optional): keys from there on are left out; outside
// [0,T] is a fault. Result: [B,H,S,E] or [B,S,H,E].
//
// A score is scale * (q . k), then softcap * tanh(score / softcap) where softcap > 0, then + bias_scale * bias, then
// masked_value where the mask says so. Query i is at position i, or with `aligned_end` at length - S + i; it sees the
// keys from position - left to position + right, where these are not negative. Keys that are out of its sight, or
// beyond the length, take no part. A query whose scores are all -inf gives NaN, as softmax does, or zeros with
// `empty_rows_zero`; one that sees no key at all gives zeros. Accepts strided operands and results. Float sums; scores
// that differ by a rounding differ by as much in the result.
#pragma once

#include <limits>

#include "ops/op.h"

namespace bantam::ops {

struct AttentionParams {
  float scale = 1.0F;
  float softcap = 0.0F;  ///< 0: none
  float bias_scale = 1.0F;
  float masked_value = -std::numeric_limits<float>::infinity();
  std::int32_t mask_keeps = 1;  ///< 1: a true element takes part; 0: a true element is masked
  std::int32_t empty_rows_zero = 0;
  std::int32_t left = -1;   ///< negative: unbounded
  std::int32_t right = -1;  ///< negative: unbounded; 0 is causal
  std::int32_t aligned_end = 0;
  std::int32_t q_heads_last = 0;  ///< 1: [B,length,heads,width]
  std::int32_t k_heads_last = 0;
  std::int32_t v_heads_last = 0;
  std::int32_t y_heads_last = 0;
};

extern const OpDef kAttention;  // "attention". Accuracy: bound 3e-05

}  // namespace bantam::ops
