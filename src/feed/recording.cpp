#include "feed/recording.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bantam::feed {
namespace {

static_assert(std::endian::native == std::endian::little, "recordings are written as they lie in memory");

void append(std::vector<std::byte>& bytes, const void* source, std::size_t size) {
  if (size == 0) return;
  bytes.resize(bytes.size() + size);
  std::memcpy(bytes.data() + bytes.size() - size, source, size);
}

}  // namespace

Recording::Recording(std::size_t sessions) : invokes_(sessions) {
  RecordingHead head{{}, static_cast<std::uint32_t>(sessions), 0};
  std::ranges::copy(kRecordingMagic, head.magic);
  append(bytes_, &head, sizeof head);
}

void Recording::add_inputs(std::size_t session, const Session& state, const std::vector<bool>& linked) {
  for (std::size_t i = 0; i < state.input_count(); ++i) {
    if (i < linked.size() && linked[i]) continue;
    const Tensor input = state.input(i);
    add(RecordKind::kInput, session, i, &input);
  }
  add(RecordKind::kInvoke, session, invokes_[session]++, nullptr);
}

void Recording::add_outputs(std::size_t session, const Session& state) {
  for (std::size_t i = 0; i < state.output_count(); ++i) {
    const Tensor output = state.output(i);
    add(RecordKind::kOutput, session, i, &output);
  }
}

void Recording::add(RecordKind kind, std::size_t session, std::size_t port, const Tensor* tensor) {
  const std::int64_t size = tensor != nullptr ? tensor->desc->bytes() : 0;
  const RecordHead head{kind, static_cast<std::uint32_t>(session), static_cast<std::uint32_t>(port),
                        tensor != nullptr ? static_cast<std::uint32_t>(tensor->desc->type) : 0,
                        static_cast<std::uint32_t>(size)};
  append(bytes_, &head, sizeof head);
  if (tensor != nullptr) append(bytes_, tensor->data, static_cast<std::size_t>(size));
}

}  // namespace bantam::feed
