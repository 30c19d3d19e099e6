// Child processes of this program.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>
#include <weft/error.hpp>

namespace weft::tool {

/// One end of a pipe, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }
  void close();

 private:
  int fd_;
};

struct Pipe {
  Descriptor read, write;
  static Result<Pipe> make();
};

/// This program run again with other arguments. It is killed with this process, and killed and
/// reaped with this object. It is in a process group of its own, so that Ctrl-C at a terminal
/// reaches the parent alone.
class Child {
 public:
  /// Standard output goes to output(); `inherited`, if it is open, keeps its number in the child.
  /// `setting`: "NAME=VALUE" of its environment, besides this process's.
  static Result<Child> start(std::string name, const std::vector<std::string>& arguments,
                             const Descriptor& inherited, std::string setting = {});
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  const std::string& name() const noexcept { return name_; }
  pid_t pid() const noexcept { return pid_; }
  /// At its end the process has ended, or is about to.
  Descriptor& output() noexcept { return output_; }
  void signal(int number) const;
  /// Waits for its end. Call it at the end of its output.
  int reap();
  /// The status that reap() found, as waitpid reports it.
  int status() const noexcept { return status_; }

 private:
  Child(std::string name, pid_t pid, Descriptor output)
      : name_(std::move(name)), pid_(pid), output_(std::move(output)) {}
  std::string name_;
  pid_t pid_;  // -1: reaped
  Descriptor output_;
  int status_ = 0;
};

}  // namespace weft::tool
