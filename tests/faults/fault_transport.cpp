#include "fault_transport.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

namespace weft::test {

using core::Op;
using core::Route;
using providers::Completion;
using providers::Post;
using providers::PostStatus;

FaultTransport::FaultTransport(core::Transport& inner, const FaultPlan& plan,
                               std::shared_ptr<FaultCounts> counts)
    : Transport(inner.properties()),
      inner_(inner),
      plan_(plan),
      counts_(std::move(counts)),
      random_(plan.seed) {
  inner_.set_sink(*this);
}

bool FaultTransport::happens(double probability) {
  return probability > 0 && std::bernoulli_distribution(probability)(random_);
}

std::uint64_t FaultTransport::up_to(unsigned most) {
  return std::uniform_int_distribution<std::uint64_t>(1, std::max(1U, most))(random_);
}

std::uint64_t FaultTransport::chunk_limit(const Route& route) const {
  return inner_.chunk_limit(route);
}

std::size_t FaultTransport::most_chunks(const Route& route) const {
  return inner_.most_chunks(route);
}

std::size_t FaultTransport::room(const Route& route) const {
  const std::size_t room = inner_.room(route);
  return plan_.duplicate > 0 ? room / 2 : room;
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
  if (burst_left_ == 0 && happens(plan_.again))
    burst_left_ = static_cast<unsigned>(up_to(plan_.again_burst));
  if (burst_left_ > 0) {
    --burst_left_;
    ++counts_->again;
    return {PostStatus::again, 0};
  }
  const bool spared = std::exchange(spared_, nullptr) == &op;
  if (!spared && happens(plan_.refuse)) {
    ++counts_->refused;
    return {PostStatus::failed, FI_EIO};
  }
  if (!spared && happens(plan_.drop)) {
    ++counts_->dropped;
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
  if (happens(plan_.duplicate) && post_copy(flight, 1).status == PostStatus::posted)
    ++counts_->duplicated;
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
  if (flight->completion.ok && happens(plan_.fail)) {
    flight->completion.ok = false;
    flight->completion.fabric_code = FI_EIO;
    flight->text = "injected";
    ++counts_->failed;
  }
  const bool dead = flight->original->route->dead;
  if (!dead && happens(plan_.delay)) {
    flight->due = now_ + up_to(plan_.delay_ticks);
    ++counts_->delayed;
    return waiting_.splice(waiting_.end(), flights_, flight);
  }
  if (!dead && happens(plan_.reorder)) {
    // If nothing comes to overtake it, it goes on by itself.
    flight->due = now_ + plan_.delay_ticks;
    flight->overtaken = true;
    ++counts_->reordered;
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
  ++now_;
  std::size_t done = inner_.progress();
  while (true) {
    const auto due = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Flight& each) { return each.due <= now_; });
    if (due == waiting_.end()) break;
    deliver(due);
    ++done;
  }
  return done;
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

core::EngineHooks Faults::hooks() const {
  core::EngineHooks hooks;
  // Each rail has its two transports wrapped one after the other.
  hooks.decorate = [plans = plans_, counts = counts_,
                    wrapped =
                        std::make_shared<std::atomic<std::size_t>>(0)](core::Transport& inner) {
    const std::size_t turn = wrapped->fetch_add(1);
    FaultPlan plan = plans[std::min(turn / 2, plans.size() - 1)];
    plan.seed += turn * 7919;
    return std::make_unique<FaultTransport>(inner, plan, counts);
  };
  return hooks;
}

}  // namespace weft::test
