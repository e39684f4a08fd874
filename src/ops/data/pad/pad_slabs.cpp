#include <cstdint>

#include "ops/common/box.h"
#include "ops/data/pad/pad_kernels.h"

namespace bantam::ops {
namespace {

class Slabs {
 public:
  explicit Slabs(const Invocation& call)
      : params_(call.as<PadParams>()),
        x_(call.in(0)),
        out_(call.out()),
        threads_(*call.threads),
        bytes_(element_size(out_.type)),
        from_(call.input<std::byte>(0)),
        to_(call.output<std::byte>()) {}

  void run() const {
    void* inside = advance(to_, offset_inside(out_.rank), bytes_);
    // An operand that lies within the result is there already.
    if (inside != from_) copy_box(threads_, make_box(x_, x_, out_), bytes_, from_, inside);
    for (int axis = out_.rank - 1; axis >= 0; --axis) {
      const std::int64_t before = params_.before[axis];
      repeat(axis, 0, before);
      repeat(axis, before + x_.dims[axis], out_.dims[axis]);
    }
  }

 private:
  /// To the operand's place along the first `axes` axes.
  std::int64_t offset_inside(int axes) const {
    std::int64_t offset = 0;
    for (int i = 0; i < axes; ++i) offset += static_cast<std::int64_t>(params_.before[i]) * out_.strides[i];
    return offset;
  }

  std::int64_t source_of(int axis, std::int64_t i) const {
    const std::int64_t before = params_.before[axis];
    return before + padded_source(params_.mode, i - before, x_.dims[axis]);
  }

  /// Positions [begin, end) of `axis`, of which those that repeat positions evenly apart are copied at once: within the
  /// operand's place along the axes before it, and over all of the axes behind it, which are padded already.
  void repeat(int axis, std::int64_t begin, std::int64_t end) const {
    while (begin < end) {
      const std::int64_t source = source_of(axis, begin);
      std::int64_t n = 1;
      const std::int64_t step = begin + 1 < end ? source_of(axis, begin + 1) - source : 0;
      while (begin + n < end && source_of(axis, begin + n) == source + n * step) ++n;
      Box box;
      for (int i = 0; i < axis; ++i) box.add(x_.dims[i], out_.strides[i], out_.strides[i]);
      box.add(n, step * out_.strides[axis], out_.strides[axis]);
      for (int i = axis + 1; i < out_.rank; ++i) box.add(out_.dims[i], out_.strides[i], out_.strides[i]);
      const std::int64_t place = offset_inside(axis);
      copy_box(box, bytes_, advance(to_, place + source * out_.strides[axis], bytes_),
               advance(to_, place + begin * out_.strides[axis], bytes_));
      begin += n;
    }
  }

  const PadParams& params_;
  const TensorDesc& x_;
  const TensorDesc& out_;
  const Threads& threads_;
  std::int64_t bytes_;
  const std::byte* from_;
  std::byte* to_;
};

}  // namespace

bool supports_pad_slabs(const OpCall& call) {
  const auto& p = call.as<PadParams>();
  if (p.mode == PadMode::kConstant || call.in(0).elements() == 0) return false;
  for (int i = 0; i < call.out().rank; ++i)
    if (p.before[i] < 0 || p.after[i] < 0) return false;
  return true;
}

Status run_pad_slabs(const Invocation& call) {
  Slabs(call).run();
  return ok_status();
}

}  // namespace bantam::ops
