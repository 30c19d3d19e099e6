// Child processes of this program that it asks for one thing after the other, in JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "common/child.hpp"

namespace weft::tool {

/// One end of what the two say to each other. A document has 128 KiB at most.
class Talk {
 public:
  explicit Talk(Descriptor socket) : socket_(std::move(socket)) {}
  /// A helper's end. Nothing if this process is no helper of that role.
  static std::optional<Talk> of_helper(const char* role, int count, char** words);

  /// Where the other side has ended, hear() says so.
  Result<void> say(const nlohmann::json& document) const;
  /// `timed_out`, and `unavailable` where the other side has ended.
  Result<nlohmann::json> hear(Deadline deadline) const;
  /// From any thread: hear() returns as if the other side had ended; say() goes on.
  void end() const;

 private:
  Descriptor socket_;
};

/// Killed with this object.
class Helper {
 public:
  /// It hears `task` first. `setting`: as Child::start() has it.
  static Result<Helper> start(const std::string& name, const char* role, const nlohmann::json& task,
                              std::string setting = {});

  void say(const nlohmann::json& question) const { (void)talk_.say(question); }
  /// Its answer, or what it says in {"error"}: `remote_failed`. Errors begin with its name.
  Result<nlohmann::json> hear(Deadline deadline) const;
  Result<nlohmann::json> ask(const nlohmann::json& question, Deadline deadline) const;
  /// From any thread: hear() returns as if it had ended.
  void give_up() const { talk_.end(); }
  /// Until the deadline it may end by itself, which closes what it has.
  void end(Deadline deadline);
  pid_t pid() const noexcept { return child_.pid(); }

 private:
  Helper(Child child, Talk talk) : child_(std::move(child)), talk_(std::move(talk)) {}
  Child child_;
  Talk talk_;
};

}  // namespace weft::tool
