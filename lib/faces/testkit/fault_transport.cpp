#include "testkit/fault_transport.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

namespace weft::core {

using providers::Completion;
using providers::Post;
using providers::PostStatus;

namespace {

constexpr std::int64_t longest_burst = 5;  // refusals for want of room in a row

}  // namespace

FaultTransport::FaultTransport(Transport& inner, std::shared_ptr<FaultSwitch> faults,
                               std::size_t wrapped)
    : Transport(inner.properties()),
      inner_(inner),
      switch_(std::move(faults)),
      counts_(switch_->counts),
      wrapped_(wrapped) {
  inner_.set_sink(*this);
}

void FaultTransport::follow_switch() {
  const std::uint64_t version = switch_->version();
  if (version == version_) return;
  version_ = version;
  fault_ = switch_->of(wrapped_ / 2);
  constexpr std::uint64_t apart = 7919;  // each transport draws its own
  random_.seed(fault_.seed + wrapped_ * apart);
  burst_left_ = 0;
  // What is held back ends, with the next call of progress().
  for (Flight& each : waiting_) each.due = Clock::time_point::min();
  given_up_.insert(given_up_.end(), dropped_.begin(), dropped_.end());
  dropped_.clear();
}

bool FaultTransport::happens(double share) {
  return share > 0 && std::bernoulli_distribution(std::min(share, 1.0))(random_);
}

std::int64_t FaultTransport::up_to(std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(1, std::max<std::int64_t>(1, most))(random_);
}

std::uint64_t FaultTransport::chunk_limit(const Route& route) const {
  return inner_.chunk_limit(route);
}

std::size_t FaultTransport::most_chunks(const Route& route) const {
  return inner_.most_chunks(route);
}

std::size_t FaultTransport::room(const Route& route) const {
  const std::size_t room = inner_.room(route);
  return fault_.duplicate > 0 ? room / 2 : room;
}

Post FaultTransport::post_copy(Flight& flight, unsigned copy) {
  Op& op = flight.copies[copy];
  op.transfer = flight.original->transfer;
  op.route = flight.original->route;
  op.chunk = flight.original->chunk;
  op.others = flight.original->others;
  ++flight.outstanding;
  const Post post = inner_.post(op);
  if (post.status == PostStatus::posted) return post;
  inner_.give_up(op);
  --flight.outstanding;
  return post;
}

Post FaultTransport::post(Op& op) {
  follow_switch();
  if (burst_left_ == 0 && happens(fault_.again)) burst_left_ = up_to(longest_burst);
  if (burst_left_ > 0) {
    --burst_left_;
    ++counts_.again;
    return {PostStatus::again, 0};
  }
  const bool spared = std::exchange(spared_, nullptr) == &op;
  if (!spared && happens(fault_.refuse)) {
    ++counts_.refused;
    return {PostStatus::failed, FI_EIO};
  }
  if (!spared && happens(fault_.drop)) {
    ++counts_.dropped;
    dropped_.push_back(&op);
    return {};
  }
  Flight& flight = flights_.emplace_back();
  flight.original = &op;
  // Posting may complete the chunk before it returns: one more keeps the flight until it is set up.
  flight.outstanding = 1;
  const auto self = std::prev(flights_.end());
  const Post first = post_copy(flight, 0);
  if (first.status != PostStatus::posted) {
    flights_.erase(self);
    if (first.status == PostStatus::again) spared_ = &op;
    return first;
  }
  if (happens(fault_.duplicate) && post_copy(flight, 1).status == PostStatus::posted)
    ++counts_.duplicated;
  if (--flight.outstanding == 0) home(self);
  return first;
}

void FaultTransport::chunk_ended(Op& op, const Completion& completion) {
  const auto flight = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& each) {
    return &op == &each.copies[0] || &op == &each.copies[1];
  });
  if (!completion.ok && flight->completion.ok) {
    flight->completion = completion;
    flight->text = completion.text;
  }
  if (--flight->outstanding == 0) home(flight);
}

/// All copies have ended: deliver the completion now or later.
void FaultTransport::home(Flights::iterator flight) {
  if (flight->completion.ok && happens(fault_.fail)) {
    flight->completion.ok = false;
    flight->completion.fabric_code = FI_EIO;
    flight->text = "injected";
    ++counts_.failed;
  }
  const bool dead = flight->original->route->dead;
  if (!dead && happens(fault_.delay)) {
    flight->due = Clock::now() + Nanoseconds(up_to(fault_.delay_by.count()));
    ++counts_.delayed;
    return waiting_.splice(waiting_.end(), flights_, flight);
  }
  if (!dead && happens(fault_.reorder)) {
    // If nothing comes to overtake it, it goes on by itself.
    flight->due = Clock::now() + fault_.delay_by;
    flight->overtaken = true;
    ++counts_.reordered;
    return waiting_.splice(waiting_.end(), flights_, flight);
  }
  waiting_.splice(waiting_.end(), flights_, flight);
  deliver(flight);
  // Those it has overtaken may follow, the last one first.
  while (true) {
    const auto next = std::find_if(waiting_.rbegin(), waiting_.rend(),
                                   [](const Flight& each) { return each.overtaken; });
    if (next == waiting_.rend()) break;
    deliver(std::prev(next.base()));
  }
}

void FaultTransport::deliver(Flights::iterator flight) {
  Flights over;
  over.splice(over.begin(), waiting_, flight);
  flight->completion.text = flight->text;
  sink().chunk_ended(*flight->original, flight->completion);
  if (!flight->completion.ok) failed_.splice(failed_.end(), over);
}

std::size_t FaultTransport::progress() {
  follow_switch();
  std::size_t done = inner_.progress() + end_given_up();
  if (waiting_.empty()) return done;
  const auto now = Clock::now();
  while (true) {
    const auto due = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Flight& each) { return each.due <= now; });
    if (due == waiting_.end()) break;
    deliver(due);
    ++done;
  }
  return done;
}

std::size_t FaultTransport::end_given_up() {
  const std::vector<Op*> ended = std::exchange(given_up_, {});
  Completion completion;
  completion.ok = false;
  completion.fabric_code = FI_EIO;
  completion.text = "dropped";
  for (Op* each : ended) sink().chunk_ended(*each, completion);
  return ended.size();
}

void FaultTransport::peer_died(Route& route) {
  inner_.peer_died(route);
  while (true) {
    const auto held = std::find_if(waiting_.begin(), waiting_.end(), [&](const Flight& each) {
      return each.original->route == &route;
    });
    if (held == waiting_.end()) break;
    deliver(held);
  }
}

}  // namespace weft::core
