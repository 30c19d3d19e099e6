// What Weft shares with the rest of a process: variables, and libfabrics.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <weft/engine.hpp>
#include <weft/process.hpp>

#include "device/file/io_channel.hpp"
#include "providers/libfabric/environment.hpp"
#include "providers/libfabric/libfabric.hpp"
#include "refused_calls.hpp"

namespace weft {
namespace {

using SetBy = ProcessVariable::SetBy;
using testing::Contains;
using testing::HasSubstr;

/// In a process of its own, since the variables are settled once for each.
template <typename Look>
bool in_child(const Look& look) {
  const pid_t child = fork();
  if (child == 0) _exit(look() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const ProcessVariable* find(const std::vector<ProcessVariable>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  return found != all.end() ? &*found : nullptr;
}

constexpr int standard[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

/// As if they were closed, but no other descriptor has their numbers.
bool take_no_place_but_their_own() {
  return std::all_of(std::begin(standard), std::end(standard), [](int each) {
    char byte = 0;
    return (fcntl(each, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(each, F_GETFL) & O_PATH) != 0 &&
           write(each, "x", 1) < 0 && errno == EBADF && read(each, &byte, 1) < 0 && errno == EBADF;
  });
}

/// A line that a library of the program prints must not go over memory or a file of Weft's.
TEST(Process, KeepsItsStandardDescriptorsEvenIfTheyAreClosed) {
  EXPECT_TRUE(in_child([] {
    for (const int each : standard) close(each);
    Config config;
    config.listen = "127.0.0.1:0";
    config.providers = {"shm", "tcp"};
    auto engine = Engine::open(config);
    if (!engine || !take_no_place_but_their_own()) return false;
    for (const int each : standard) close(each);
    // The engine's threads read a file now and then: for that moment a number may be taken.
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (!deadline.passed()) {
      const auto segment = engine->add(Memory::shared(4096));
      if (!segment) return false;
      if (take_no_place_but_their_own()) return true;
    }
    return false;
  }));
}

TEST(Process, IsPreparedOnceAndTellsWhoSetWhat) {
  EXPECT_TRUE(in_child([] {
    if (!process_info().variables.empty()) return false;
    unsetenv("FI_EFA_FORK_SAFE");
    setenv("FI_MR_CACHE_MONITOR", "memhooks", 1);
    prepare_process();
    const auto prepared = process_info().variables;
    const auto* theirs = find(prepared, "FI_MR_CACHE_MONITOR");
    const auto* ours = find(prepared, "FI_EFA_FORK_SAFE");
    if (theirs == nullptr || theirs->set_by != SetBy::application || theirs->value != "memhooks")
      return false;
    if (ours == nullptr || ours->set_by != SetBy::prepared) return false;
    if (std::getenv("FI_EFA_FORK_SAFE") != ours->value) return false;
    // Not again by the first use of libfabric, beside other threads.
    unsetenv("FI_EFA_FORK_SAFE");
    providers::settle_environment();
    return std::getenv("FI_EFA_FORK_SAFE") == nullptr;
  }));
}

TEST(Process, ThatIsNotPreparedIsAsLibfabricIsFirstUsed) {
  EXPECT_TRUE(in_child([] {
    unsetenv("FI_EFA_FORK_SAFE");
    providers::settle_environment();
    const auto all = process_info().variables;
    const auto* ours = find(all, "FI_EFA_FORK_SAFE");
    return ours != nullptr && ours->set_by == SetBy::late;
  }));
}

TEST(Process, HasNoLibfabricWhereAFileIsNamedThatIsNone) {
  EXPECT_TRUE(in_child([] {
    setenv("WEFT_LIBFABRIC", "/no/such/libfabric.so", 1);
    const auto found = providers::load_libfabric();
    const LibfabricInfo info = process_info().libfabric;
    return !found && found.error().message() == info.problem && info.file.empty() &&
           info.problem.find("/no/such/libfabric.so") != std::string::npos;
  }));
}

// Debian's libfabric brings a library along that installs its own as it is loaded.
TEST(Process, KeepsItsSignalHandlersAsLibfabricIsLoaded) {
  EXPECT_TRUE(in_child([] {
    constexpr int signals[] = {SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGTERM};
    for (const int number : signals) signal(number, SIG_IGN);
    if (!providers::load_libfabric()) return false;
    return std::all_of(std::begin(signals), std::end(signals),
                       [](int number) { return signal(number, SIG_DFL) == SIG_IGN; });
  }));
}

TEST(Process, TellsWhichLibfabricIsUsedAndWhichIsNot) {
  ASSERT_TRUE(providers::load_libfabric());
  const LibfabricInfo before = process_info().libfabric;
  if (before.file.find("libfabric") == std::string::npos)
    GTEST_SKIP() << "libfabric is a part of " << before.file;
  EXPECT_THAT(before.found, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(before.others, testing::IsEmpty());
  // As Python packages bring it along.
  const auto copy = std::filesystem::path(testing::TempDir()) /
                    ("libfabric-0a1b2c3d-" + std::to_string(getpid()) + ".so.1");
  std::filesystem::copy_file(before.file, copy);
  void* const second = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(second, nullptr) << dlerror();
  const LibfabricInfo both = process_info().libfabric;
  EXPECT_EQ(both.file, before.file);
  EXPECT_THAT(both.others, Contains(copy.string()));
  EXPECT_THAT(both.version, HasSubstr("."));
  std::filesystem::remove(copy);
}

/// A ring may be refused later than the first: for want of descriptors, or of locked memory.
TEST(Process, TellsThatSomeFilesGoByThreads) {
  if (core::io_channel_name() != "io_uring") GTEST_SKIP() << core::io_channel_name();
  const bool tried = test::where_refused({SYS_io_uring_setup, 0, 0, 0, EMFILE},
                                         [] { EXPECT_TRUE(core::open_io_channel()); });
  if (!tried) GTEST_SKIP() << "no system call can be refused here";
  EXPECT_THAT(core::io_channel_name(),
              testing::AllOf(HasSubstr("io_uring, and threads"), HasSubstr("RLIMIT_NOFILE")));
}

}  // namespace
}  // namespace weft
