// A rank among others: one thread on which everything happens, and messages to and from the others.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <weft/engine.hpp>

#include "base/process.hpp"
#include "base/sync.hpp"
#include "weights/note.hpp"

namespace weft::weights {

/// Another rank, for as long as one connection lasts.
struct Contact {
  std::optional<Peer> peer;  // none: this rank itself
  std::optional<Receive> receive = {};
  Blob partial = {};
  bool down = false;
};
using ContactPtr = std::shared_ptr<Contact>;

/// What a rank does. All calls come from the member's thread.
class Role {
 public:
  Role() = default;
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  virtual ~Role() = default;
  virtual void hear(const ContactPtr& from, const Note& note) = 0;
  virtual void lost(const ContactPtr& contact) = 0;
  /// Does what can be done now. Returns when to look again, if nothing happens before.
  virtual Clock::time_point advance(Clock::time_point now) = 0;
};

/// Tasks for the member's thread. Outlives it, for callbacks that come late.
class Inbox {
 public:
  void post(std::function<void()> task) WEFT_EXCLUDES(mutex_);
  /// Waits for tasks; false once it is stopped.
  bool take(std::deque<std::function<void()>>& tasks, Clock::time_point until)
      WEFT_EXCLUDES(mutex_);
  void stop() WEFT_EXCLUDES(mutex_);
  bool stopped() const WEFT_EXCLUDES(mutex_);

 private:
  mutable core::Mutex mutex_;
  core::Condition changed_;
  std::deque<std::function<void()>> tasks_ WEFT_GUARDED_BY(mutex_);
  bool stopped_ WEFT_GUARDED_BY(mutex_) = false;
};

class Member {
 public:
  explicit Member(Engine& engine) : engine_(engine) {}
  ~Member() { stop(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// The roles outlive the threads that begin here.
  Result<void> start(std::vector<Role*> roles);
  void stop();
  /// Whether this is a forked child, in which the threads are not.
  bool forked() const noexcept { return core::fork_generation() != generation_; }

  Engine& engine() noexcept { return engine_; }
  const std::shared_ptr<Inbox>& inbox() const noexcept { return inbox_; }
  const ContactPtr& self() const noexcept { return self_; }

  // For roles.

  /// Meets the rank at that address, or finds that it has met it.
  Result<ContactPtr> meet(const std::string& address, Deadline deadline);
  /// A contact that can't be sent to is lost a little later.
  void send(const ContactPtr& to, const Note& note);

 private:
  void run();
  void accept();
  ContactPtr adopt(const Peer& peer);
  void listen(const ContactPtr& contact);
  void arrived(const ContactPtr& contact);
  void hang_up(const ContactPtr& contact);
  void lose(const ContactPtr& contact);
  void hear(const ContactPtr& from, const Note& note);

  Engine& engine_;
  const std::uint64_t generation_ = core::fork_generation();
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  const ContactPtr self_ = std::make_shared<Contact>();
  std::vector<ContactPtr> contacts_;
  std::vector<Role*> roles_;
  std::thread thread_, acceptor_;
};

/// Ends a rank's life. In a forked child the threads to be joined are not there: everything stays
/// as it is.
template <typename State>
void leave(std::shared_ptr<State> state) {
  if (state && state->forked()) new std::shared_ptr<State>(std::move(state));
}

/// Keeps a rank in touch with the leader.
class LeaderLink {
 public:
  /// An empty address: the leader is this rank.
  LeaderLink(Member& member, std::string address) : member_(member), address_(std::move(address)) {}

  const ContactPtr& contact() const noexcept { return contact_; }
  bool is(const ContactPtr& contact) const noexcept { return contact_ && contact == contact_; }
  void lost() { contact_ = nullptr; }
  /// Tries to meet it, if it is time to. True if it has just been met.
  bool advance(Clock::time_point now);
  /// When to try again.
  Clock::time_point next() const noexcept { return contact_ ? Clock::time_point::max() : next_; }
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  Member& member_;
  const std::string address_;
  ContactPtr contact_;
  Clock::time_point next_ = {};
  std::string trouble_;
};

}  // namespace weft::weights
