// Which sanitizer this is built with. And what libfabric hands from one thread to another, told to
// the thread sanitizer, which does not see into libfabric: without it every byte that arrives by a
// message looks like a race.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_THREAD_SANITIZER
#endif
#if __has_feature(address_sanitizer)
#define WEFT_ADDRESS_SANITIZER
#endif
#else
#if defined(__SANITIZE_THREAD__)
#define WEFT_THREAD_SANITIZER
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ADDRESS_SANITIZER
#endif
#endif

#ifdef WEFT_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace weft::providers {

#if defined(WEFT_THREAD_SANITIZER) || defined(WEFT_ADDRESS_SANITIZER)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// All endpoints of the process hand over to each other, as far as the sanitizer is concerned.
inline char every_endpoint;

/// The receiving thread may see everything that this thread did so far.
inline void handing_over([[maybe_unused]] void* channel) {
#ifdef WEFT_THREAD_SANITIZER
  __tsan_release(channel);
#endif
}

/// This thread sees everything that the posting threads did before.
inline void handed_over([[maybe_unused]] void* channel) {
#ifdef WEFT_THREAD_SANITIZER
  __tsan_acquire(channel);
#endif
}

}  // namespace weft::providers
