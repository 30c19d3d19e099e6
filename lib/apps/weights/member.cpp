#include "weights/member.hpp"

#include <algorithm>
#include <utility>
#include <weft/weights.hpp>

#include "base/log.hpp"
#include "base/thread.hpp"

namespace weft::weights {
namespace {

using namespace std::chrono_literals;

// Notes go in parts that every engine takes: Config::max_message is 8 KiB unless it was set.
constexpr std::size_t part = 4'000;
// No description of a rank comes near it; a guess.
constexpr std::size_t most_note = std::size_t{1} << 30;
// A rank that takes nothing for so long is as good as gone. A guess.
constexpr auto send_time = 1s;
// How long a destructor may wait for the thread in accept().
constexpr auto accept_time = 100ms;
// Between two tries to meet the leader, and for each. Guesses.
constexpr auto retry_after = 100ms;
constexpr auto meeting_time = 500ms;

}  // namespace

void Inbox::post(std::function<void()> task) {
  {
    const core::Lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

bool Inbox::take(std::deque<std::function<void()>>& tasks, Clock::time_point until) {
  core::Lock lock(mutex_);
  changed_.wait(mutex_, Deadline::at(until),
                [&]() WEFT_REQUIRES(mutex_) { return stopped_ || !tasks_.empty(); });
  tasks.clear();
  tasks.swap(tasks_);
  return !stopped_;
}

void Inbox::stop() {
  {
    const core::Lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool Inbox::stopped() const {
  const core::Lock lock(mutex_);
  return stopped_;
}

Result<void> Member::start(std::vector<Role*> roles) {
  roles_ = std::move(roles);
  auto thread = core::start_thread([this] { run(); });
  if (!thread) return fail(std::move(thread.error()));
  thread_ = std::move(*thread);
  auto acceptor = core::start_thread([this] { accept(); });
  if (!acceptor) {
    stop();
    return fail(std::move(acceptor.error()));
  }
  acceptor_ = std::move(*acceptor);
  return {};
}

void Member::stop() {
  inbox_->stop();
  if (acceptor_.joinable()) acceptor_.join();
  if (thread_.joinable()) thread_.join();
  // The others have no other way to learn that this rank has left: its engine lives on.
  for (const ContactPtr& each : std::exchange(contacts_, {})) {
    each->receive.reset();
    const auto done = each->peer->disconnect();
    if (!done) core::log(LogLevel::info, "weights: {}", done.error().to_string());
  }
}

void Member::run() {
  std::deque<std::function<void()>> tasks;
  while (true) {
    const auto now = Clock::now();
    auto next = now + 1h;
    for (Role* role : roles_) next = std::min(next, role->advance(now));
    if (!inbox_->take(tasks, next)) return;
    for (auto& task : tasks) task();
  }
}

void Member::accept() {
  while (!inbox_->stopped()) {
    auto peer = engine_.accept(Deadline::in(accept_time));
    if (peer)
      inbox_->post([this, peer = std::move(*peer)] { adopt(peer); });
    else if (peer.error().code() != Code::timed_out)
      return;
  }
}

Result<ContactPtr> Member::meet(const std::string& address, Deadline deadline) {
  auto peer = engine_.connect(address, deadline);
  if (!peer) return fail(std::move(peer.error()));
  return adopt(*peer);
}

ContactPtr Member::adopt(const Peer& peer) {
  for (const ContactPtr& each : contacts_)
    if (!each->down && each->peer->name() == peer.name() &&
        each->peer->incarnation() == peer.incarnation() && each->peer->up())
      return each;
  auto contact = std::make_shared<Contact>(Contact{.peer = peer});
  contacts_.push_back(contact);
  listen(contact);
  return contact;
}

void Member::listen(const ContactPtr& contact) {
  auto receive = contact->peer->receive(
      tag, ~std::uint64_t{0},
      {.on_end = [this, inbox = inbox_, weak = std::weak_ptr(contact)](auto, const Error*) {
        inbox->post([this, weak] {
          if (const auto alive = weak.lock()) arrived(alive);
        });
      }});
  if (receive)
    contact->receive.emplace(std::move(*receive));
  else
    inbox_->post([this, contact] { lose(contact); });
}

void Member::arrived(const ContactPtr& contact) {
  if (contact->down) return;
  // The callback comes a moment before the message can be taken.
  auto message = contact->receive->wait(Deadline::in(send_time));
  if (!message) return lose(contact);
  const Bytes bytes = message->bytes;
  if (bytes.empty() || contact->partial.size() > most_note) return hang_up(contact);
  contact->partial.insert(contact->partial.end(), bytes.begin() + 1, bytes.end());
  const bool last = bytes[0] != std::byte{0};
  listen(contact);
  if (!last) return;
  const auto note = decode(std::exchange(contact->partial, {}));
  if (note) return hear(contact, *note);
  core::log(LogLevel::warning, "weights: {} sent what is no note", contact->peer->name());
  hang_up(contact);
}

void Member::hang_up(const ContactPtr& contact) {
  const auto done = contact->peer->disconnect();
  if (!done) core::log(LogLevel::info, "weights: {}", done.error().to_string());
  inbox_->post([this, contact] { lose(contact); });
}

void Member::lose(const ContactPtr& contact) {
  if (std::exchange(contact->down, true)) return;
  std::erase(contacts_, contact);
  contact->receive.reset();
  for (Role* role : roles_) role->lost(contact);
}

void Member::hear(const ContactPtr& from, const Note& note) {
  for (Role* role : roles_) role->hear(from, note);
}

void Member::send(const ContactPtr& to, const Note& note) {
  if (!to || to->down) return;
  if (!to->peer) return inbox_->post([this, to, note] { hear(to, note); });
  const Blob bytes = encode(note);
  Blob message;
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    const std::size_t length = std::min(part, bytes.size() - at);
    message.assign(1, std::byte{at + length == bytes.size()});
    message.insert(message.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    const auto sent = to->peer->send(tag, message, Deadline::in(send_time));
    if (sent) continue;
    core::log(LogLevel::info, "weights: {}", sent.error().to_string());
    return hang_up(to);  // Half a note is worse than none.
  }
}

bool LeaderLink::advance(Clock::time_point now) {
  if (contact_ || now < next_) return false;
  if (address_.empty()) {
    contact_ = member_.self();
    return true;
  }
  auto met = member_.meet(address_, Deadline::in(meeting_time));
  next_ = Clock::now() + retry_after;
  if (!met) {
    trouble_ = met.error().to_string();
    return false;
  }
  contact_ = std::move(*met);
  return true;
}

}  // namespace weft::weights
