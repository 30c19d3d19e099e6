// The pause of a spin loop.
#pragma once

namespace weft::core {

/// Leaves the core's resources to its other thread for some ten nanoseconds.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft::core
