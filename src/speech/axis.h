// One axis of a session's input whose size changes from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bantam/runtime.h"

namespace bantam::speech {

class Axis {
 public:
  /// `pad`: a size that the model was not planned for may be padded to a larger one, because its results do not depend
  /// on the padding.
  void bind(Session& session, std::size_t input, int axis, bool pad) noexcept;

  /// Makes the axis this size; the port stays larger where it is padded.
  Status resize(std::int32_t size) noexcept;

 private:
  std::int32_t present() const noexcept { return session_->input_info(input_).desc->dims[axis_]; }

  Session* session_ = nullptr;
  std::size_t input_ = 0;
  int axis_ = 0;
  bool pad_ = false;
  std::string_view dim_;    ///< the session's dimension that the axis is; empty when its size is fixed
  std::int32_t least_ = 0;  ///< of the dimension
};

}  // namespace bantam::speech
