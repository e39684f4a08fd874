// Whether this build is instrumented or runs in an emulator: programs are many times slower there, so that tests of
// sheer number run fewer.
#pragma once

namespace bantam::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || BANTAM_EMULATED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace bantam::testing
