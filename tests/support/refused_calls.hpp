// System calls that the kernel refuses, as other kernels or file systems do.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <thread>

namespace weft::test {

/// Calls of this number whose argument has these bits.
struct RefusedCall {
  std::uint32_t number;
  unsigned argument;          // 0: the first
  std::uint32_t mask, value;  // of its lower half
  std::uint32_t error;        // 0: the call does nothing, and says that it has succeeded
};

/// Does `work` in a thread, and threads that it starts, whose calls of that kind are refused.
/// False: the system lets no filter be set, and nothing was done.
template <typename Work>
bool where_refused(const RefusedCall& call, Work&& work) {
  bool set = false;
  std::thread([&] {
    constexpr auto low_half =
        static_cast<std::uint32_t>(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
    const auto argument = static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                                     call.argument * sizeof(std::uint64_t));
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument + low_half),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | call.error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof *program, program};
    set = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
          prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    if (set) work();
  }).join();
  return set;
}

}  // namespace weft::test
