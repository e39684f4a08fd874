#include "ops/evaluate.h"

#include <algorithm>
#include <array>

#include "base/shape.h"

namespace bantam::ops {

std::int64_t evaluation_bytes(const KernelVariant& variant, const OpCall& call, int threads) {
  std::int64_t bytes = footprint(variant, call, threads).scratch_bytes;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    bytes += align_up(packed_bytes(variant, call, static_cast<int>(i)), kAlignment);
  return bytes;
}

Status evaluate(const KernelVariant& variant, const OpCall& call, std::span<std::byte> memory, const Threads& threads) {
  if (call.inputs.size() > kMaxInputs)
    return failure(StatusCode::kInvalidArgument, "too many operands", static_cast<std::int64_t>(call.inputs.size()),
                   kMaxInputs);
  const std::int64_t needed = evaluation_bytes(variant, call, threads.count);
  if (static_cast<std::int64_t>(memory.size()) < needed)
    return failure(StatusCode::kInvalidArgument, "working memory is too small",
                   static_cast<std::int64_t>(memory.size()), needed);
  std::array<Tensor, kMaxInputs> operands{};
  std::copy(call.inputs.begin(), call.inputs.end(), operands.begin());
  std::byte* next = memory.data();
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::int64_t bytes = packed_bytes(variant, call, static_cast<int>(i));
    if (bytes == 0) continue;
    variant.pack(call, static_cast<int>(i), next);
    operands[i].data = next;
    next += align_up(bytes, kAlignment);
  }
  return variant.run(Invocation{call.params, std::span(operands).first(call.inputs.size()), call.outputs, next,
                                &threads, footprint(variant, call, threads.count).scratch_bytes});
}

}  // namespace bantam::ops
