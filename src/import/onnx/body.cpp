#include "import/onnx/body.h"

#include "graph/control.h"

namespace bantam::import::onnx {

graph::ValueId Frame::capture(graph::ValueId outer) {
  const auto [it, fresh] = known_.try_emplace(outer, graph::kNone);
  if (!fresh) return it->second;
  const graph::Value& value = outer_->graph_.value(outer);
  if (value.constant) {
    it->second = builder_.constant(value.name, value.desc, value.constant->bytes, value.constant->owner);
  } else {
    it->second = builder_.input(value.name, value.desc);
    captures_.push_back(outer);
  }
  graph_.value(it->second).quantization = value.quantization;
  graph_.value(it->second).quantized_source = value.quantized_source;
  if (outer_->is_nibbles(outer)) mark_nibbles(it->second);
  return it->second;
}

bool Frame::is_deepest() const noexcept {
  int depth = 0;
  for (const Frame* f = outer_; f != nullptr; f = f->outer_) ++depth;
  return depth >= graph::kMaxBodyDepth;
}

}  // namespace bantam::import::onnx
