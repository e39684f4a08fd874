#include <algorithm>
#include <cstdint>

#include "ops/common/box.h"
#include "ops/common/operands.h"
#include "ops/data/pad/pad_kernels.h"

namespace bantam::ops {
namespace {

/// value modulo size, in [0, size).
std::int64_t modulo(std::int64_t value, std::int64_t size) {
  const std::int64_t r = value % size;
  return r < 0 ? r + size : r;
}

/// One axis of the result: [0, begin) lies before the operand, [begin, end) inside, [end, size) after it.
struct Section {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t source = 0;  ///< operand coordinate of `begin`
};

Section inner_section(const PadParams& p, const TensorDesc& x, const TensorDesc& out, int axis) {
  Section section;
  const std::int64_t size = out.dims[axis];
  section.begin = std::clamp<std::int64_t>(p.before[axis], 0, size);
  section.end = std::clamp<std::int64_t>(static_cast<std::int64_t>(p.before[axis]) + x.dims[axis], section.begin, size);
  section.source = section.begin - p.before[axis];
  return section;
}

/// An operand that lies within the result is there already.
void copy_unless_there(const Threads& threads, const Box& box, std::int64_t bytes, const void* from, void* to) {
  if (from != to) copy_box(threads, box, bytes, from, to);
}

/// The part of the result that repeats the operand itself.
void copy_inside(const Invocation& call, const Section* sections) {
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  const std::int64_t bytes = element_size(out.type);
  std::int64_t from = 0;
  std::int64_t to = 0;
  Box box;
  for (int i = 0; i < out.rank; ++i) {
    const Section& s = sections[i];
    if (s.begin == s.end) return;
    box.add(s.end - s.begin, x.strides[i], out.strides[i]);
    from += s.source * x.strides[i];
    to += s.begin * out.strides[i];
  }
  copy_unless_there(*call.threads, box, bytes, advance(call.input<void>(0), from, bytes),
                    advance(call.output<void>(), to, bytes));
}

/// Sets everything outside the inner sections: per axis one slab before and one after, which spans the inner sections
/// of the axes before it and all of the axes behind it.
void fill_outside(const Invocation& call, const Section* sections, const void* value) {
  const TensorDesc& out = call.out();
  const std::int64_t bytes = element_size(out.type);
  for (int axis = 0; axis < out.rank; ++axis) {
    const Section& s = sections[axis];
    const std::int64_t ranges[2][2] = {{0, s.begin}, {s.end, out.dims[axis]}};
    for (const auto& [begin, end] : ranges) {
      std::int64_t first = begin * out.strides[axis];
      Box box;
      for (int i = 0; i < axis; ++i) {
        first += sections[i].begin * out.strides[i];
        box.add(sections[i].end - sections[i].begin, 0, out.strides[i]);
      }
      box.add(end - begin, 0, out.strides[axis]);
      for (int i = axis + 1; i < out.rank; ++i) box.add(out.dims[i], 0, out.strides[i]);
      fill_box(*call.threads, box, bytes, value, advance(call.output<void>(), first, bytes));
    }
  }
}

/// Pads an operand that is no scalar with repetitions of it: walks the result's axes down to the last padded one.
class Repeater {
 public:
  Repeater(const Invocation& call, const Section* sections)
      : params_(call.as<PadParams>()),
        x_(call.in(0)),
        out_(call.out()),
        sections_(sections),
        threads_(*call.threads),
        bytes_(element_size(x_.type)),
        from_(call.input<std::byte>(0)),
        to_(call.output<std::byte>()) {
    for (int i = 0; i < x_.rank; ++i)
      if (params_.before[i] != 0 || params_.after[i] != 0) last_padded_ = i;
  }

  void run() const { repeat(0, 0, 0); }

 private:
  /// The axes from `axis` on, at these element offsets. Recursion is at most kMaxRank deep.
  void repeat(int axis, std::int64_t from, std::int64_t to) const {
    const Section& s = sections_[axis];
    // What surrounds the operand comes last: where it lies within the result, it is all that is written.
    repeat_range(axis, s.begin, s.end, from, to);
    repeat_range(axis, 0, s.begin, from, to);
    repeat_range(axis, s.end, out_.dims[axis], from, to);
  }

  std::int64_t source_of(int axis, std::int64_t i) const {
    return padded_source(params_.mode, i - params_.before[axis], x_.dims[axis]);
  }

  /// Positions [begin, end) of `axis` in the result. Along the last padded one, positions whose sources lie evenly
  /// apart are copied at once.
  void repeat_range(int axis, std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to) const {
    while (begin < end) {
      const std::int64_t source = source_of(axis, begin);
      std::int64_t n = 1;
      std::int64_t step = 1;
      if (axis == last_padded_ && begin + 1 < end) {
        step = source_of(axis, begin + 1) - source;
        while (begin + n < end && source_of(axis, begin + n) == source + n * step) ++n;
      }
      const std::int64_t first = from + source * x_.strides[axis];
      if (axis == last_padded_) {
        copy_rest(axis, n, step, first, to + begin * out_.strides[axis]);
      } else {
        repeat(axis + 1, first, to + begin * out_.strides[axis]);
      }
      begin += n;
    }
  }

  /// `size` positions of `axis`, `step` apart, and all of the axes behind it, none of which is padded.
  void copy_rest(int axis, std::int64_t size, std::int64_t step, std::int64_t from, std::int64_t to) const {
    Box box;
    box.add(size, step * x_.strides[axis], out_.strides[axis]);
    for (int i = axis + 1; i < x_.rank; ++i) box.add(x_.dims[i], x_.strides[i], out_.strides[i]);
    copy_unless_there(threads_, box, bytes_, advance(from_, from, bytes_), advance(to_, to, bytes_));
  }

  const PadParams& params_;
  const TensorDesc& x_;
  const TensorDesc& out_;
  const Section* sections_;
  const Threads& threads_;
  std::int64_t bytes_;
  const std::byte* from_;
  std::byte* to_;
  int last_padded_ = 0;
};

}  // namespace

std::int64_t padded_source(PadMode mode, std::int64_t i, std::int64_t size) noexcept {
  switch (mode) {
    case PadMode::kReflect: {
      if (size == 1) return 0;
      const std::int64_t r = modulo(i, 2 * (size - 1));
      return std::min(r, 2 * (size - 1) - r);
    }
    case PadMode::kSymmetric: {
      const std::int64_t r = modulo(i, 2 * size);
      return std::min(r, 2 * size - 1 - r);
    }
    case PadMode::kWrap: return modulo(i, size);
    default: return std::clamp<std::int64_t>(i, 0, size - 1);
  }
}

Status run_pad(const Invocation& call) {
  const auto& p = call.as<PadParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  Section sections[kMaxRank];
  for (int i = 0; i < x.rank; ++i) sections[i] = inner_section(p, x, out, i);
  if (out.elements() == 0) return ok_status();
  if (p.mode != PadMode::kConstant && out.rank > 0) {
    Repeater(call, sections).run();
    return ok_status();
  }
  constexpr std::uint64_t kZero = 0;
  copy_inside(call, sections);
  fill_outside(call, sections, call.has(1) ? call.inputs[1].data : &kZero);
  return ok_status();
}

}  // namespace bantam::ops
