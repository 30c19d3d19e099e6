// A NIC's packets: from being cut to their arrival in another process's memory.
#include <algorithm>

#include "fabric.hpp"
#include "nic.hpp"

namespace weft::efa_sim {
namespace {

/// Packets of one operation in flight, so that one whose peer is silent doesn't take all the room.
constexpr std::uint64_t most_in_flight = 64;
constexpr std::chrono::microseconds pause(200);

/// What a copy at the target says of the operation. Nobody may have told the device yet that the
/// process has ended; with it ends its queue pair.
Status status_of(Copied copied_there) {
  switch (copied_there) {
    case Copied::all:
      return Status::ok;
    case Copied::not_all:
      return Status::remote_bad_address;
    case Copied::process_gone:
      return Status::remote_bad_queue_pair;
  }
  return Status::remote_abort;
}

}  // namespace

void Nic::fill_window() {
  const std::size_t room = std::max<std::size_t>(1, settings.number(Setting::reorder));
  // Once around at most: those that have too much in flight stand back.
  for (std::size_t left = sending_.size(); left > 0 && window_.size() < room;) {
    const std::shared_ptr<Operation> operation = sending_.front();
    const bool crowded = operation->in_flight >= most_in_flight;
    if (!operation->ended && !crowded) {
      const std::uint64_t most = operation->opcode == Opcode::send
                                     ? operation->length
                                     : std::max(1u, settings.number(Setting::mtu));
      const std::uint64_t length = std::min(most, operation->limit - operation->cut);
      window_.add({operation, operation->cut, length});
      operation->cut += length;
      ++operation->in_flight;
    }
    const bool done = operation->ended || operation->cut == operation->limit;
    if (done || crowded) {
      sending_.pop_front();
      --left;
      if (!done) sending_.push_back(operation);
    }
  }
}

void Nic::hold(Packet packet, Time until) {
  held_.emplace(until, std::move(packet));
}

void Nic::carry(Packet packet, Time now) {
  Operation& operation = *packet.operation;
  if (operation.ended) return;
  Nic* const target_nic = fabric_.find(operation.destination.gid);
  QueuePair* const target =
      target_nic == nullptr ? nullptr : target_nic->find(operation.destination.queue_pair);
  if (is_silent(operation, target_nic, target, now)) {
    if (!operation.ended) hold(std::move(packet), now + pause * 5);
    return;
  }
  if (target == nullptr || target->queue_key != operation.queue_key ||
      target->state == QueuePairState::error) {
    ++counters.refused;
    return end(operation, Status::remote_bad_queue_pair, now);
  }
  operation.owner->responsive.insert(operation.destination);
  if (!packet.carried && operation.opcode != Opcode::send) {
    if (const Status status = move(packet, *target); status != Status::ok) {
      ++counters.refused;
      return end(operation, status, now);
    }
    operation.carried += packet.length;
    --operation.in_flight;
    packet.carried = true;
  }
  if (operation.failure != Status::ok) {
    if (operation.carried == operation.limit) end(operation, operation.failure, now);
    return;
  }
  if (operation.opcode == Opcode::send || operation.carried == operation.length) {
    switch (deliver(operation, *target, now)) {
      case Delivery::later:
        return hold(std::move(packet), now + pause);
      case Delivery::failed:
        return;
      case Delivery::done:
        end(operation, Status::ok, now);
    }
    if (!operation.duplicate.empty()) {
      const std::chrono::microseconds after(settings.number(Setting::duplicate_us));
      replays_.emplace(now + after,
                       Replay{packet.operation, target->attributes.domain, target_nic});
    }
  }
}

bool Nic::is_silent(Operation& operation, const Nic* target_nic, const QueuePair* target,
                    Time now) {
  const bool silent = is_dead(*operation.owner) || target_nic == nullptr ||
                      target_nic->settings.on(Setting::nic_down) ||
                      (target != nullptr && target_nic->is_dead(*target));
  if (!silent) {
    operation.silent_since = {};
    return false;
  }
  if (operation.silent_since == Time{}) operation.silent_since = now;
  const std::chrono::milliseconds patience(settings.number(Setting::peer_timeout_ms));
  if (now - operation.silent_since >= patience) {
    const bool answered = operation.owner->responsive.contains(operation.destination);
    end(operation, answered ? Status::unresponsive_remote : Status::unreachable_remote, now);
  }
  return true;
}

/// A packet of a read or write.
Status Nic::move(const Packet& packet, QueuePair& target) {
  Operation& operation = *packet.operation;
  const Domain& domain = target.attributes.domain;
  if (target.nic.settings.on(Setting::require_address) &&
      !target.nic.addresses.handle_of(domain, gid))
    return Status::remote_unknown_peer;
  const std::uint32_t rights = operation.opcode == Opcode::read ? remote_read : remote_write;
  const std::uint64_t there = operation.remote_address + packet.offset;
  // A read or write of nothing needs no key.
  if (packet.length > 0 &&
      !target.nic.regions.allows(domain, operation.remote_key, there, packet.length, rights))
    return Status::remote_bad_address;
  ++counters.packets;
  if (packet.offset < operation.last_carried) ++counters.overtakes;
  operation.last_carried = packet.offset;
  return operation.opcode == Opcode::read ? read(packet, target) : write(packet, target);
}

Status Nic::read(const Packet& packet, QueuePair& target) {
  const Operation& operation = *packet.operation;
  const Domain& own = operation.owner->attributes.domain;
  bytes_.resize(packet.length);
  const std::uint64_t there = operation.remote_address + packet.offset;
  const Copied copied =
      read_from(target.attributes.domain.process, {{there, packet.length}}, bytes_.data());
  if (copied != Copied::all) return status_of(copied);
  // The memory may have been deregistered since the operation began.
  for (const auto& [key, piece] : operation.local) {
    if (!regions.allows(own, key, piece.address, piece.length, local_write))
      return Status::invalid_local_key;
  }
  const auto here = part_of(operation.local_pieces(), packet.offset, packet.length);
  const bool moved = write_to(own.process, here, bytes_.data()) == Copied::all;
  return moved ? Status::ok : Status::invalid_local_key;
}

Status Nic::write(const Packet& packet, QueuePair& target) {
  Operation& operation = *packet.operation;
  if (!gather(operation, packet.offset, packet.length)) return Status::invalid_local_key;
  const std::uint64_t there = operation.remote_address + packet.offset;
  const Copied copied =
      write_to(target.attributes.domain.process, {{there, packet.length}}, bytes_.data());
  if (copied != Copied::all) return status_of(copied);
  if (operation.duplicated && operation.duplicate.empty()) {
    operation.duplicate = bytes_;
    operation.duplicate_offset = packet.offset;
  }
  return Status::ok;
}

/// A part of the operation's bytes, from the process that posted it.
bool Nic::gather(const Operation& operation, std::uint64_t offset, std::uint64_t length) {
  if (operation.is_inline) {
    bytes_ = operation.inlined;
    return true;
  }
  const Domain& own = operation.owner->attributes.domain;
  for (const auto& [key, piece] : operation.local) {
    if (piece.length > 0 && !regions.allows(own, key, piece.address, piece.length, 0)) return false;
  }
  bytes_.resize(length);
  const auto here = part_of(operation.local_pieces(), offset, length);
  return read_from(own.process, here, bytes_.data()) == Copied::all;
}

Nic::Delivery Nic::deliver(Operation& operation, QueuePair& target, Time now) {
  const bool is_write = operation.opcode == Opcode::write;
  if (operation.opcode == Opcode::read || (is_write && !operation.has_immediate))
    return Delivery::done;
  // The data is there, but nobody is told.
  if (is_write && target.nic.chance(Setting::drop_data)) return Delivery::done;
  CompletionEntry entry{};
  entry.flags = completion_flags(CompletionSource::receive_queue, operation.opcode);
  entry.queue_pair = target.number;
  entry.length = static_cast<std::uint16_t>(operation.length);
  entry.source_queue_pair = operation.owner->number;
  if (operation.has_immediate) {
    entry.flags |= completion_has_immediate;
    entry.immediate = operation.immediate;
  }
  const auto handle = target.nic.addresses.handle_of(target.attributes.domain, gid);
  entry.address_handle = handle.value_or(no_address_handle);
  if (is_write) {
    entry.length_high = static_cast<std::uint16_t>(operation.length >> 16);
  } else if (!handle) {
    std::ranges::copy(gid, entry.source);
  }
  Status status = Status::ok;
  if (is_write && target.attributes.unsolicited) {
    entry.flags |= completion_unsolicited;
  } else {
    const Delivery delivery = wait_for_receive(operation, target, now);
    if (delivery != Delivery::done) return delivery;
    status = fill_receive(operation, target, entry);
  }
  target.nic.complete(*target.attributes.receive_completions, entry, now);
  if (status == Status::ok) return Delivery::done;
  end(operation, status, now);
  return Delivery::failed;
}

/// Whether there is a receive, and the target is ready as far as the settings go.
Nic::Delivery Nic::wait_for_receive(Operation& operation, QueuePair& target, Time now) {
  NicSettings& there = target.nic.settings;
  if (!operation.not_ready_decided) {
    operation.not_ready_decided = true;
    if (target.nic.chance(Setting::rnr_fail)) {
      end(operation, Status::remote_not_ready, now);
      return Delivery::failed;
    }
    if (target.nic.chance(Setting::rnr)) {
      ++counters.not_ready;
      const std::chrono::microseconds time(there.number(Setting::rnr_us));
      operation.not_ready_until = time.count() == 0 ? Time::max() : now + time;
    }
  }
  // Without a time, it lasts as long as the setting.
  if (operation.not_ready_until == Time::max() && !there.on(Setting::rnr))
    operation.not_ready_until = {};
  if (operation.not_ready_until > now) return Delivery::later;
  if (target.has_receive()) return Delivery::done;
  if (operation.tries++ == 0) ++counters.not_ready;
  if (operation.owner->retries < 7 && operation.tries > operation.owner->retries) {
    end(operation, Status::remote_not_ready, now);
    return Delivery::failed;
  }
  return Delivery::later;
}

/// Takes a receive for the message, and puts the message's bytes (if any) into its buffers.
Status Nic::fill_receive(Operation& operation, QueuePair& target, CompletionEntry& entry) {
  const Receive receive = target.take_receive();
  entry.request_id = receive.id;
  if (operation.opcode != Opcode::send) return Status::ok;
  ++counters.packets;
  const Domain& domain = target.attributes.domain;
  std::vector<Piece> pieces;
  std::uint64_t room = 0;
  for (const auto& [key, piece] : receive.pieces) {
    if (!target.nic.regions.allows(domain, key, piece.address, piece.length, local_write))
      entry.status = Status::invalid_local_key;
    pieces.push_back(piece);
    room += piece.length;
  }
  if (entry.status != Status::ok) return Status::remote_abort;
  if (room < operation.length) {
    entry.status = Status::bad_length;
    return Status::remote_bad_length;
  }
  Copied copied = Copied::not_all;
  if (gather(operation, 0, operation.length))
    copied = write_to(domain.process, part_of(pieces, 0, operation.length), bytes_.data());
  if (copied == Copied::all) return Status::ok;
  entry.status = Status::remote_abort;
  return copied == Copied::process_gone ? status_of(copied) : Status::remote_abort;
}

bool Nic::replay(Time now) {
  bool replayed = false;
  while (!replays_.empty() && replays_.begin()->first <= now) {
    const Replay& due = replays_.begin()->second;
    const Operation& operation = *due.operation;
    const std::uint64_t there = operation.remote_address + operation.duplicate_offset;
    const std::uint64_t length = operation.duplicate.size();
    if (due.nic->regions.allows(due.domain, operation.remote_key, there, length, remote_write) &&
        write_to(due.domain.process, {{there, length}}, operation.duplicate.data()) == Copied::all)
      ++counters.duplicates;
    replays_.erase(replays_.begin());
    replayed = true;
  }
  return replayed;
}

}  // namespace weft::efa_sim
