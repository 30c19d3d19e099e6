// Forks are noticed in the child and only there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.hpp"

namespace weft::core {
namespace {

TEST(ForkGuard, ChangesInTheChildOnly) {
  const std::uint64_t before = fork_generation();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool noticed = fork_generation() != before;
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(fork_generation() == before + 2 ? 0 : 1);
    int status = 1;
    waitpid(grandchild, &status, 0);
    _exit(noticed && status == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(fork_generation(), before);
}

TEST(ForkGuard, TheErrorSaysWhatToDo) {
  EXPECT_EQ(forked_error().code(), Code::forked);
  EXPECT_NE(forked_error().message().find("must open its own"), std::string::npos);
}

}  // namespace
}  // namespace weft::core
