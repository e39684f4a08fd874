// Whether this build is instrumented: programs run many times slower there, so that tests of sheer number run fewer.
#ifndef BANTAM_TESTS_SUPPORT_SANITIZERS_H_
#define BANTAM_TESTS_SUPPORT_SANITIZERS_H_

namespace bantam::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace bantam::testing

#endif  // BANTAM_TESTS_SUPPORT_SANITIZERS_H_
