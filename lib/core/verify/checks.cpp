#include "verify/checks.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lease/grant_state.hpp"
#include "peer/peer_state.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {

Result<void> answerable(const CheckRequest& question, std::span<const Range> granted) {
  std::uint64_t bytes = 0;
  for (const Range& range : question.ranges) {
    if (!covered_by(granted, range.offset, range.length))
      return fail(Code::permission_denied, "it asks for more than was granted");
    if (__builtin_add_overflow(bytes, range.length, &bytes) || bytes > Checks::part)
      return fail(Code::invalid_argument, "it asks for too much at a time");
  }
  return {};
}

void Checks::start(const std::shared_ptr<TransferState>& transfer) {
  const Lock lock(mutex_);
  Peer& peer = peers_[transfer->peer().link];
  if (peer.under_way >= at_a_time) return peer.waiting.push_back(transfer);
  ++peer.under_way;
  begin(transfer);
}

void Checks::begin(const std::shared_ptr<TransferState>& transfer) {
  const Submission& submission = transfer->submission();
  Check check{transfer, Cursor(transfer->prepared().pieces, submission.picked())};
  next_part(checks_.insert_or_assign(transfer.get(), std::move(check)).first->second);
}

/// Has the next part hashed at both ends. Its runs are in the order of the transfer's pieces.
void Checks::next_part(Check& check) {
  const auto transfer = check.transfer;
  const PreparedState& prepared = transfer->prepared();
  CheckRequest question{next_request_++, prepared.remote->description().lease, {}};
  std::vector<Range> ours;
  check.begin += check.length;
  check.length = 0;
  while (check.length < part && ours.size() < limits::checked_ranges) {
    const auto run = check.cursor.next(part - check.length);
    if (!run) break;
    ours.push_back({run->local, run->length});
    question.ranges.push_back({run->remote, run->length});
    check.length += run->length;
  }
  check.request = question.request;
  check.ours = check.theirs = std::nullopt;
  requests_[check.request] = transfer.get();
  // It ended before it came here, or ends now: then nothing else calls end().
  if (!transfer->hold()) return post_(*transfer, [this, transfer] { end(*transfer); });
  Hasher::Job job;
  job.device = &prepared.local->device();
  job.base = prepared.local->address();
  job.ranges = std::move(ours);
  job.wanted = [transfer] { return !transfer->stopped(); };
  job.done = [this, transfer, request = check.request](const Result<std::uint64_t>& hash) {
    hashed(transfer, request, hash);
    post_(*transfer, [transfer] { transfer->let_go(); });
  };
  if (auto added = hasher_.add(std::move(job)); !added) {
    post_(*transfer, [transfer] { transfer->let_go(); });
    return finish(check, added.error());
  }
  ask_(transfer->peer().link, std::move(question));
}

void Checks::compare(Check& check) {
  if (!check.ours || !check.theirs) return;
  requests_.erase(check.request);
  if (*check.ours != *check.theirs)
    return finish(
        check, Error(Code::corrupt, fmt::format("the bytes at the two ends differ, somewhere in {} "
                                                "bytes from byte {} of the transfer on",
                                                check.length, check.begin)));
  if (check.cursor.exhausted()) return finish(check, std::nullopt);
  next_part(check);
}

/// Is told later, without the lock: it may end the transfer.
void Checks::finish(const Check& check, std::optional<Error> error) {
  const PeerState& peer = check.transfer->peer();
  if (error) error->with_peer(peer.introduction.name).with_operation("verify");
  post_(*check.transfer, [this, transfer = check.transfer, error = std::move(error)] {
    end(*transfer);
    transfer->verified(error);
  });
}

void Checks::hashed(const std::shared_ptr<TransferState>& transfer, std::uint64_t request,
                    const Result<std::uint64_t>& hash) {
  // A transfer that does not want it any more has ended.
  if (!hash && hash.error().code() == Code::stale) return;
  const Lock lock(mutex_);
  const auto check = checks_.find(transfer.get());
  if (check == checks_.end() || check->second.request != request) return;
  if (!hash) {
    requests_.erase(request);
    return finish(check->second, hash.error());
  }
  check->second.ours = *hash;
  compare(check->second);
}

void Checks::answered(LinkId link, const CheckReply& reply) {
  const Lock lock(mutex_);
  const auto asked = requests_.find(reply.request);
  if (asked == requests_.end() || asked->second->peer().link != link) return;
  Check& check = checks_.at(asked->second);
  if (check.theirs) return;
  if (reply.code != Code{}) {
    requests_.erase(asked);
    return finish(check,
                  Error(reply.code, "the peer could not say what its end of the transfer holds"));
  }
  check.theirs = reply.hash;
  compare(check);
}

void Checks::end(const TransferState& transfer) {
  // Destroyed without the lock: it may hold the transfer's last reference.
  decltype(checks_)::node_type gone;
  const Lock lock(mutex_);
  gone = checks_.extract(&transfer);
  if (!gone) return;
  requests_.erase(gone.mapped().request);
  const auto peer = peers_.find(transfer.peer().link);
  --peer->second.under_way;
  while (!peer->second.waiting.empty() && peer->second.under_way < at_a_time) {
    const auto next = peer->second.waiting.front().lock();
    peer->second.waiting.pop_front();
    if (!next || next->stopped()) continue;
    ++peer->second.under_way;
    begin(next);
  }
  if (peer->second.under_way == 0 && peer->second.waiting.empty()) peers_.erase(peer);
}

}  // namespace weft::core
