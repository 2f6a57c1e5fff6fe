#pragma once

namespace zeus::testing {

// Whether a sanitizer watches this program, which makes it ten to twenty times as slow: tests that
// repeat something often repeat it less often then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// The thread sanitizer holds signals back in a child that was forked beside other threads, and does
// not let it start threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kForksBesideThreads = false;
#else
inline constexpr bool kForksBesideThreads = true;
#endif

}  // namespace zeus::testing
