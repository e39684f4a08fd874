// How reductions and orderings are drawn.
#include "ops/reduce/arg_reduce/arg_reduce.h"
#include "ops/reduce/cumsum/cumsum.h"
#include "ops/reduce/quantization_range/quantization_range.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/topk/topk.h"
#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

ElementType index_type(Sampling& s) { return s.one_of({ElementType::kI32, ElementType::kI64}); }

void arg_reduce(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  s.set_params(ArgReduceParams{s.pick(0, 1), s.axis(x), s.pick(0, 1), s.pick(0, 1), index_type(s)});
}

void cumsum(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  s.set_params(CumsumParams{s.axis(x), s.pick(0, 1), s.pick(0, 1)});
}

void quantization_range(Sampling& s) { s.any(ElementType::kF32, 0, 5); }

void reduce(Sampling& s) {
  const TensorDesc x = s.any(0, 5);
  s.set_params(ReduceParams{s.enumerator<ReduceFunction>(), s.axes(x), s.pick(0, 1)});
}

void topk(Sampling& s) {
  const TensorDesc x = s.any(1, 4);
  const std::int32_t axis = s.axis(x);
  s.set_params(TopkParams{axis, s.pick(0, x.dims[axis]), s.pick(0, 1), index_type(s)});
}

constexpr SamplerRow kRows[] = {{&kArgReduce, arg_reduce},
                                {&kCumsum, cumsum},
                                {&kQuantizationRange, quantization_range},
                                {&kReduce, reduce},
                                {&kTopk, topk}};

}  // namespace

std::span<const SamplerRow> reduce_samplers() { return kRows; }

}  // namespace bantam::ops::testing
