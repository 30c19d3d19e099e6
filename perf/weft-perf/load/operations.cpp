#include "load/operations.hpp"

#include <atomic>
#include <list>
#include <numeric>
#include <thread>
#include <utility>

#include "load/driver.hpp"

namespace weft::perf {
namespace {

/// How long what was cancelled is waited for.
constexpr auto draining_time = std::chrono::milliseconds(200);
/// Config::spin's default.
constexpr Nanoseconds spin_time = std::chrono::microseconds(100);

/// `manual`: is_manual(engine).
void wait_for_end(Engine& engine, bool manual, Ends& ends, Deadline deadline) {
  if (!manual) return ends.wait(deadline);
  Looks looks(engine);
  do looks.once();
  while (!ends.any() && !deadline.passed());
}

}  // namespace

Result<void> Fanned::begin(std::uint32_t operation, Ticket ticket) {
  ++begun_[operation % windows_.size()];
  return of(operation).begin(within(operation), std::move(ticket));
}

Result<void> Fanned::outcome(std::uint32_t operation) {
  return of(operation).outcome(within(operation));
}

void Fanned::wait(Ends& ends, Deadline deadline) {
  windows_.front()->wait(ends, deadline);
}

/// One operation's transfers, of which the last that ends tells.
struct Transfers::Slot {
  std::vector<Transfer> transfers;
  std::list<std::uint32_t>::iterator place{};  // in one of the lists of operations
  Ticket ticket;
  std::atomic<std::uint32_t> left{0};

  void one_ended() {
    // Once none is left the slot may be used again, or gone.
    if (left.load(std::memory_order_acquire) == 1) {
      const Ticket last = std::move(ticket);
      left.store(0, std::memory_order_release);
      return last.tell();
    }
    const Ticket last = ticket;
    if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) last.tell();
  }
};

Result<std::unique_ptr<Transfers>> Transfers::make(Engine& engine, const Work& work,
                                                   const Workload& load, const Segment& local,
                                                   const Remote& remote, std::uint64_t signal,
                                                   Nanoseconds timeout, bool in_order) {
  auto writes = engine.prepare(local, remote, Direction::write, load.pairs);
  if (!writes) return fail(std::move(writes.error()));
  auto reads = engine.prepare(local, remote, Direction::read, load.pairs);
  if (!reads) return fail(std::move(reads.error()));
  return std::unique_ptr<Transfers>(new Transfers(engine, work, load, std::move(*writes),
                                                  std::move(*reads), signal, timeout, in_order));
}

Transfers::Transfers(Engine& engine, const Work& work, const Workload& load, Prepared writes,
                     Prepared reads, std::uint64_t signal, Nanoseconds timeout, bool in_order)
    : engine_(engine),
      manual_(is_manual(engine)),
      work_(work),
      load_(load),
      writes_(std::move(writes)),
      reads_(std::move(reads)),
      signal_(signal),
      timeout_(timeout),
      in_order_(in_order && !manual_),
      picks_(load.pairs.size()),
      slots_(new Slot[work.window]) {
  std::iota(picks_.begin(), picks_.end(), 0);
  for (std::uint32_t i = 0; i < work.window; ++i) slots_[i].place = idle_.insert(idle_.end(), i);
}

Transfers::~Transfers() {
  const Deadline deadline = Deadline::in(draining_time);
  bool all_ended = true;
  for (std::uint32_t i = 0; i < work_.window; ++i) {
    for (Transfer& transfer : slots_[i].transfers) {
      transfer.cancel();
      (void)transfer.wait_quiescent(deadline);
    }
    while (slots_[i].left != 0 && !deadline.passed()) std::this_thread::yield();
    all_ended = all_ended && slots_[i].left == 0;
  }
  // What may still be told of an end must find where to note it.
  if (!all_ended) (void)slots_.release();
}

Result<void> Transfers::begin(std::uint32_t operation, Ticket ticket) {
  Slot& slot = slots_[operation];
  slot.transfers.clear();
  under_way_.splice(under_way_.end(), idle_, slot.place);
  slot.left.store(load_.parts, std::memory_order_relaxed);
  TransferOptions options;
  options.deadline = Deadline::at(ticket.begun + timeout_);
  options.priority = work_.priority;
  if (work_.operation == Operation::signal) options.signal = Signal{signal_, {}};
  options.on_end = [&slot](const Ended&) { slot.one_ended(); };
  slot.ticket = std::move(ticket);
  const Prepared& pieces = reads(work_, operation) ? reads_ : writes_;
  const std::size_t first = first_transfer(work_, load_, operation);
  for (std::uint32_t part = 0; part < load_.parts; ++part) {
    const std::size_t index = first + part;
    const auto picks = std::span<const std::uint32_t>(picks_).subspan(
        load_.first[index], load_.first[index + 1] - load_.first[index]);
    const bool last = part + 1 == load_.parts;
    TransferOptions its = last ? std::move(options) : options;
    // All of a list needs no picks, of which the engine would keep a copy.
    auto transfer = picks.size() == picks_.size() ? engine_.submit(pieces, std::move(its))
                                                  : engine_.submit(pieces, picks, std::move(its));
    if (!transfer) {
      slot.left -= load_.parts - part;
      return fail(std::move(transfer.error()));
    }
    slot.transfers.push_back(std::move(*transfer));
  }
  return {};
}

Result<void> Transfers::outcome(std::uint32_t operation) {
  idle_.splice(idle_.end(), under_way_, slots_[operation].place);
  for (Transfer& transfer : slots_[operation].transfers)
    if (transfer.state() != State::done)
      if (auto ended = transfer.wait(Deadline::now()); !ended) return ended;
  return {};
}

/// The wait for a transfer makes progress with all. Where they end in order, which others have
/// ended by the end of the oldest is seen then.
void Transfers::wait(Ends& ends, Deadline deadline) {
  if (!manual_ && !ends.any() && !under_way_.empty()) {
    std::vector<Transfer>& oldest = slots_[under_way_.front()].transfers;
    const Deadline until =
        in_order_ ? deadline : Deadline::in(std::min(deadline.left(), spin_time));
    if (!oldest.empty()) (void)oldest.back().wait(until);
  }
  wait_for_end(engine_, manual_, ends, deadline);
}

/// How an answer ended, written on the engine's threads before the ticket tells.
struct Messages::Slot {
  Ticket ticket;
  std::optional<Error> error;
};

Messages::Messages(Engine& engine, Peer peer, const Work& work, std::uint64_t seed,
                   Nanoseconds timeout)
    : engine_(engine),
      manual_(is_manual(engine)),
      peer_(std::move(peer)),
      timeout_(timeout),
      bytes_(work.window, Blob(work.size)),
      answers_(work.window),
      slots_(new Slot[work.window]) {
  for (std::uint32_t i = 0; i < work.window; ++i) tool::pattern(seed, i * work.size, bytes_[i]);
}

Result<void> Messages::begin(std::uint32_t operation, Ticket ticket) {
  const Deadline deadline = Deadline::at(ticket.begun + timeout_);
  slots_[operation].ticket = std::move(ticket);
  slots_[operation].error.reset();
  NotifyOptions options;
  options.on_end = [slots = slots_, operation](std::uint64_t, const Error* error) {
    if (error != nullptr) slots[operation].error = *error;
    const Ticket told = std::move(slots[operation].ticket);  // The slot may be used again at once.
    told.tell();
  };
  auto answer = peer_.receive(answer_tag | operation, whole_tag, std::move(options));
  if (!answer) return fail(std::move(answer.error()));
  answers_[operation].emplace(std::move(*answer));
  return peer_.send(operation, bytes_[operation], deadline);
}

Result<void> Messages::outcome(std::uint32_t operation) {
  if (slots_[operation].error) return fail(*slots_[operation].error);
  return {};
}

void Messages::wait(Ends& ends, Deadline deadline) {
  wait_for_end(engine_, manual_, ends, deadline);
}

}  // namespace weft::perf
