// The main() of tests that have processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string_view>

#include "kernel_symbols.hpp"
#include "process.hpp"
#include "subjects.hpp"

namespace weft::test {
namespace {

/// After each test: no process, no shared memory left behind.
class NothingLeft : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_TRUE(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) << "a child still runs";
    for (const std::string& region : regions_of(getpid()))
      ADD_FAILURE() << "/dev/shm/" << region << " was left behind";
  }
};

}  // namespace
}  // namespace weft::test

int main(int count, char** values) {
  using namespace weft::test;
  hide_kernel_symbols();
  if (is_role(count, values)) return run_role(count, values);
  signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleTest(&count, values);
  testing::UnitTest::GetInstance()->listeners().Append(new NothingLeft);
  constexpr std::string_view subjects_option = "--subjects=";
  try {
    for (int i = 1; i < count; ++i)
      if (const std::string_view value = values[i]; value.starts_with(subjects_option))
        run_subjects(value.substr(subjects_option.size()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", values[0], error.what());
    return 2;
  }
  return RUN_ALL_TESTS();
}
