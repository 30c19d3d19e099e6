// Log lines go where they are sent, and only those that are wanted are made.
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft::core {
namespace {

using testing::ElementsAre;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    set_log_sink(
        [this](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  }
  ~LogTest() override {
    set_log_sink({});
    set_log_level(LogLevel::warning);
  }
  std::vector<std::pair<LogLevel, std::string>> lines;
};

TEST_F(LogTest, OnlyWantedLevelsAreMade) {
  set_log_level(LogLevel::warning);
  log(LogLevel::info, "{}", 1);
  log(LogLevel::warning, "{} and {}", 2, "three");
  log(LogLevel::error, "four");
  EXPECT_THAT(lines, ElementsAre(testing::Pair(LogLevel::warning, "2 and three"),
                                 testing::Pair(LogLevel::error, "four")));
  set_log_level(LogLevel::debug);
  log(LogLevel::debug, "five");
  EXPECT_EQ(lines.size(), 3U);
}

TEST_F(LogTest, OffMakesNothing) {
  set_log_level(LogLevel::off);
  log(LogLevel::error, "x");
  log(LogLevel::off, "x");
  EXPECT_TRUE(lines.empty());
  set_log_level(LogLevel::debug);
  log(LogLevel::off, "x");
  EXPECT_TRUE(lines.empty());
}

TEST_F(LogTest, WithoutASinkLinesGoToStandardErrorAsTheyAre) {
  set_log_sink({});
  set_log_level(LogLevel::info);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  log(LogLevel::info, "a brace {} stays", "{}");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("weft info: a brace {} stays\n"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_TRUE(lines.empty());
}

TEST_F(LogTest, TheSinkIsCalledByOneThreadAtATime) {
  set_log_level(LogLevel::info);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int line = 0; line < 200; ++line) log(LogLevel::info, "{} {}", i, line);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.size(), 800U);
}

}  // namespace
}  // namespace weft::core
