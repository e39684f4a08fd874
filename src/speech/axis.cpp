#include "speech/axis.h"

namespace bantam::speech {

void Axis::bind(Session& session, std::size_t input, int axis, bool pad) noexcept {
  session_ = &session;
  input_ = input;
  axis_ = axis;
  pad_ = pad;
  // A port does not name its dimensions: the one that moves the axis is the one.
  const std::int32_t before = present();
  for (std::size_t i = 0; i < session.dim_count() && dim_.empty(); ++i) {
    const std::string_view name = session.dim_name(i);
    const std::int64_t size = session.dim(name);
    const std::int64_t other = size > session.dim_least(i) ? size - 1 : size + 1;
    if (other > session.dim_bound(i) || !session.set_dim(name, other).ok()) continue;
    if (present() != before) {
      dim_ = name;
      least_ = static_cast<std::int32_t>(session.dim_least(i));
    }
    // What it was a moment ago is what it was verified at.
    static_cast<void>(session.set_dim(name, size));
  }
}

Status Axis::resize(std::int32_t size) noexcept {
  if (present() == size) return ok_status();
  if (!dim_.empty()) return session_->set_dim(dim_, pad_ && size < least_ ? least_ : size);
  if (pad_ && size < present()) return ok_status();
  return failure(StatusCode::kUnsupported, "an input was planned for one size only, and cannot be padded", size,
                 present());
}

}  // namespace bantam::speech
