// Other processes for tests: the test's own program, started anew in a named role and led through
// pipes. Nothing is left behind: a child dies with its parent, and every wait has a deadline.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/place.hpp>

namespace weft::test {

/// Lines over a pair of pipes. Throws std::runtime_error when the other side is gone or a deadline
/// passes.
class Line {
 public:
  Line(int in, int out) : in_(in), out_(out) {}
  std::string hear(Deadline deadline);
  void say(const std::string& text);

 private:
  const int in_, out_;
  std::string heard_;
};

/// A child process. Killed, if it still runs, when destroyed.
class Child {
 public:
  explicit Child(const std::string& role, const std::vector<std::string>& arguments = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Whether it runs no more, joined or not.
  bool ended() const;
  std::string hear();
  void say(const std::string& text) { line_->say(text); }
  /// Says something and returns what is said in return.
  std::string ask(const std::string& text);
  void signal(int number) const;
  /// SIGSTOP, and none of its threads runs when it returns; SIGCONT ends it.
  void freeze() const;
  /// SIGKILL, and gone when it returns.
  void kill();
  /// Waits for its end and returns its exit status; negative is the signal it died of.
  int join();

 private:
  pid_t pid_ = -1;
  int pidfd_ = -1, in_ = -1, out_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  std::optional<Line> line_;
};

/// What a child does; its result is the exit status. An exception is printed and means 1.
using Role = std::function<int(Line& parent, const std::vector<std::string>& arguments)>;
struct RoleEntry {
  RoleEntry(const std::string& name, Role role);
};
/// Of main(): whether it was called to play a role, and to do so. The result is the exit status.
bool is_role(int count, char** values);
int run_role(int count, char** values);

/// Names of the shared-memory regions in /dev/shm that Weft made for a process.
std::vector<std::string> regions_of(pid_t process);
/// Numbers from /proc/self.
std::size_t count_descriptors();
std::size_t count_threads();
/// Names of the threads, as soon as there are no more than `expected`, or after some seconds: the
/// kernel lists one that was joined until it is done with it.
std::vector<std::string> threads_down_to(std::size_t expected);
/// What descriptors lead to, likewise: sockets of peers that are gone close a little later.
std::vector<std::string> descriptors_down_to(std::size_t expected);
std::size_t resident_bytes();

/// For grants that travel as lines.
std::string to_hex(Bytes bytes);
Blob from_hex(const std::string& text);

}  // namespace weft::test

/// WEFT_ROLE(name) { ... uses parent and arguments, returns the exit status ... }
#define WEFT_ROLE(name)                                                                        \
  static int role_##name(weft::test::Line& parent, const std::vector<std::string>& arguments); \
  static const weft::test::RoleEntry entry_##name(#name, role_##name);                         \
  static int role_##name([[maybe_unused]] weft::test::Line& parent,                            \
                         [[maybe_unused]] const std::vector<std::string>& arguments)
