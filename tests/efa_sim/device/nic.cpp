// A NIC's own side: its queues, and operations from their posting to their completion.
#include "nic.hpp"

#include <algorithm>

#include "fabric.hpp"

namespace weft::efa_sim {
namespace {

// As an EFA device: few enough for tables that libfabric indexes by the number's low bits.
constexpr std::uint32_t most_queue_pairs = 256;
/// Operations of a queue pair that are under way at once.
constexpr std::size_t most_at_once = 64;

}  // namespace

Nic::Nic(Fabric& fabric, const NicDescription& description, const Gid& gid, std::uint64_t seed)
    : description(description), gid(gid), fabric_(fabric), random_(seed) {}

void Nic::configure(const NicSettings& changed) {
  settings = changed;
  fault_count_ = 0;
  const auto refused = static_cast<std::uint32_t>(settings[Setting::eagain] * 1'000'000);
  for (QueuePair& each : queue_pairs_) each.refused_posts().store(refused);
}

bool Nic::advance(Time now) {
  bool moved = fetch(now);
  while (!held_.empty() && held_.begin()->first <= now) {
    window_.add(std::move(held_.begin()->second));
    held_.erase(held_.begin());
  }
  fill_window();
  // Few enough that the other NICs get their turn soon.
  for (int i = 0; i < 64 && !window_.empty(); ++i) {
    carry(window_.take(random_), now);
    fill_window();
    moved = true;
  }
  moved |= replay(now);
  for (CompletionQueue& each : completion_queues_) moved |= each.advance(now);
  return moved;
}

bool Nic::busy() const {
  const auto waits = [](const CompletionQueue& each) { return !each.empty(); };
  return !sending_.empty() || !window_.empty() || !held_.empty() || !replays_.empty() ||
         std::ranges::any_of(completion_queues_, waits);
}

CompletionQueue& Nic::create_completion_queue(std::uint32_t size, Descriptor channel,
                                              std::uint64_t event) {
  return completion_queues_.emplace_back(size, std::move(channel), event);
}

void Nic::destroy(CompletionQueue& queue) {
  counters.full_queues += queue.times_full();
  completion_queues_.remove_if([&](const CompletionQueue& each) { return &each == &queue; });
}

QueuePair* Nic::create_queue_pair(const QueuePair::Attributes& attributes) {
  if (queue_pairs_.size() >= most_queue_pairs - 1) return nullptr;
  const auto taken = [&](std::uint32_t number) {
    return std::ranges::any_of(queue_pairs_, [&](const QueuePair& each) {
      return each.number % most_queue_pairs == number % most_queue_pairs;
    });
  };
  // Not the number of one that has just gone.
  do {
    ++queue_pairs_made_;
  } while (queue_pairs_made_ % most_queue_pairs == 0 || taken(queue_pairs_made_));
  QueuePair& made =
      queue_pairs_.emplace_back(*this, static_cast<std::uint16_t>(queue_pairs_made_), attributes);
  made.refused_posts().store(static_cast<std::uint32_t>(settings[Setting::eagain] * 1'000'000));
  return &made;
}

void Nic::destroy(QueuePair& queue_pair) {
  for (const auto& each : queue_pair.outstanding) each->ended = true;
  queue_pairs_.remove_if([&](const QueuePair& each) { return &each == &queue_pair; });
}

QueuePair* Nic::find(std::uint16_t number) {
  const auto found = std::ranges::find(queue_pairs_, number, &QueuePair::number);
  return found == queue_pairs_.end() ? nullptr : &*found;
}

void Nic::flush(QueuePair& queue_pair) {
  const auto waiting = queue_pair.outstanding;
  for (const auto& each : waiting) end(*each, Status::flushed, Clock::now());
}

bool Nic::uses(const CompletionQueue& queue) const {
  return std::ranges::any_of(queue_pairs_, [&](const QueuePair& each) {
    return each.attributes.send_completions == &queue ||
           each.attributes.receive_completions == &queue;
  });
}

bool Nic::is_dead(const QueuePair& queue_pair) const {
  return settings.on(Setting::nic_down) ||
         settings.number(Setting::dead_queue_pair) == queue_pair.number ||
         settings.number(Setting::dead_process) ==
             static_cast<std::uint32_t>(queue_pair.attributes.domain.process);
}

bool Nic::chance(Setting probability) {
  return settings.on(probability) &&
         std::uniform_real_distribution<>(0, 1)(random_) < settings[probability];
}

std::string_view Nic::limit_on(const RegionTable::Region& region) const {
  const auto over = [&](std::uint64_t count, Setting limit) {
    return static_cast<double>(count) > settings[limit];
  };
  const std::uint64_t pages = region.pages();
  if (over(pages, Setting::region_pages)) return "region_pages";
  if ((region.rights & remote_write) != 0 && over(pages, Setting::write_pages))
    return "write_pages";
  if (over(regions.pages() + pages, Setting::pages)) return "pages";
  if (over(regions.size() + 1, Setting::regions)) return "regions";
  return {};
}

std::chrono::nanoseconds Nic::time_for(const RegionTable::Region& region) const {
  const double wanted =
      static_cast<double>(region.pages()) * settings[Setting::register_cost] +
      static_cast<double>(regions.pages()) * settings[Setting::register_cost_held];
  const std::chrono::duration<double, std::nano> longest = std::chrono::minutes(1);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(wanted, longest.count())));
}

bool Nic::has_room_for(const Domain& domain, const Gid& address) const {
  return addresses.handle_of(domain, address) ||
         static_cast<double>(addresses.size()) < settings[Setting::address_handles];
}

bool Nic::fetch(Time now) {
  if (settings.on(Setting::stall)) return false;
  bool fetched = false;
  for (QueuePair& each : queue_pairs_) {
    while (each.outstanding.size() < most_at_once) {
      const auto operation = each.take_operation();
      if (operation == nullptr) break;
      begin(operation, now);
      fetched = true;
    }
  }
  return fetched;
}

void Nic::begin(const std::shared_ptr<Operation>& operation, Time now) {
  ++counters.operations;
  operation->owner->outstanding.insert(operation);
  if (const Status status = check(*operation); status != Status::ok) {
    ++counters.refused;
    return end(*operation, status, now);
  }
  operation->limit = operation->length;
  choose_faults(*operation);
  if (operation->failure != Status::ok && operation->limit == 0)
    return end(*operation, operation->failure, now);
  sending_.push_back(operation);
}

/// What the device finds wrong before anything moves.
Status Nic::check(Operation& operation) const {
  const QueuePair& owner = *operation.owner;
  const Domain& domain = owner.attributes.domain;
  if (owner.state == QueuePairState::error) return Status::flushed;
  const auto gid_there = addresses.find(domain, operation.address_handle);
  if (!gid_there) return Status::invalid_address_handle;
  operation.destination.gid = *gid_there;
  const bool able = operation.opcode == Opcode::send ||
                    (operation.opcode == Opcode::read && settings.on(Setting::read)) ||
                    (operation.opcode == Opcode::write && settings.on(Setting::write));
  if (!able) return Status::unsupported_operation;
  if (operation.opcode == Opcode::send && operation.length > settings.number(Setting::message))
    return Status::bad_length;
  const std::uint32_t rights = operation.opcode == Opcode::read ? Right::local_write : 0u;
  for (const auto& [key, piece] : operation.local) {
    if (piece.length > 0 && !regions.allows(domain, key, piece.address, piece.length, rights))
      return Status::invalid_local_key;
  }
  return Status::ok;
}

void Nic::choose_faults(Operation& operation) {
  // 0 means any, so an opcode's number is one more.
  const std::uint32_t chosen = settings.number(Setting::error_operation);
  const bool meant = chosen == 0 || chosen == static_cast<std::uint32_t>(operation.opcode) + 1;
  const bool counted = meant && ++fault_count_ == settings.number(Setting::error_nth);
  if (counted || (meant && chance(Setting::error))) {
    operation.failure = static_cast<Status>(settings.number(Setting::error_status));
    // A message has one packet: none of it arrives.
    operation.limit = operation.opcode == Opcode::send
                          ? 0
                          : static_cast<std::uint64_t>(static_cast<double>(operation.length) *
                                                       settings[Setting::error_part]);
  }
  operation.duplicated = operation.opcode == Opcode::write && chance(Setting::duplicate);
}

void Nic::end(Operation& operation, Status status, Time now) {
  if (operation.ended) return;
  operation.ended = true;
  QueuePair& owner = *operation.owner;
  CompletionEntry entry{};
  entry.request_id = operation.id;
  entry.status = status;
  entry.flags = completion_flags(CompletionSource::send_queue, operation.opcode);
  entry.queue_pair = owner.number;
  complete(*owner.attributes.send_completions, entry, now);
  std::erase_if(owner.outstanding, [&](const auto& each) { return each.get() == &operation; });
}

void Nic::complete(CompletionQueue& queue, const CompletionEntry& entry, Time now) {
  const double share = std::uniform_real_distribution<>(0, 1)(random_);
  const double delay = settings[Setting::delay_us] + settings[Setting::jitter_us] * share;
  queue.add(entry, now + std::chrono::microseconds(static_cast<std::int64_t>(delay)));
}

}  // namespace weft::efa_sim
