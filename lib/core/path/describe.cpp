#include "path/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::core {
namespace {

using EndReach = PathFacts::End::Reach;

bool out_of_reach(const PathFacts::End& end, const Capability& record) {
  if (end.reach != EndReach::as_recorded) return end.reach == EndReach::staged;
  return is_file(end.place.kind) || (end.place.kind == MemoryKind::device && !record.device_memory);
}

/// Of memory that is out of reach, or whose other side's is.
std::string why_not_direct(const PathFacts::End& end, const Capability& record) {
  if (end.reach == EndReach::staged) return end.why_staged;
  if (is_file(end.place.kind)) return "a file's bytes go through bounce buffers";
  if (end.reach == EndReach::direct || record.device_memory)
    return "NICs reach this side's memory, and not the other's";
  const std::string what =
      fmt::format("{} {} can't reach a GPU's memory", record.provider, record.domain);
  return record.device_memory_problem.empty()
             ? what
             : fmt::format("{}: {}", what, record.device_memory_problem);
}

/// A carriage seen from where the bytes come from.
struct Flow {
  bool source_copies = false, target_copies = false;
  Mover by = Mover::nic;
  Stop::Kind between = Stop::Kind::provider_buffer;
  bool through_nics = true;
};

Flow flow_of(const Carriage& carriage, bool from_initiator, const PathFacts& facts) {
  Flow flow;
  flow.source_copies = from_initiator ? carriage.initiator_copies : carriage.target_copies;
  flow.target_copies = from_initiator ? carriage.target_copies : carriage.initiator_copies;
  flow.by = carriage.by;
  const bool sockets = carriage.between == Carriage::Between::socket_buffer;
  if (sockets) flow.between = Stop::Kind::socket_buffer;
  // The kernel hands over from socket to socket within a host.
  flow.through_nics = !facts.record.same_host_only && !(sockets && facts.same_host);
  return flow;
}

/// Puts the hops of a path one behind the other.
class Track {
 public:
  Track(const PathFacts& facts, PathSide source)
      : facts_(facts),
        source_(source),
        target_(source == PathSide::local ? PathSide::remote : PathSide::local) {}

  std::vector<Hop> one_sided(const Carriage& carriage) {
    at_ = memory(source_);
    carry(flow_of(carriage, source_ == PathSide::local, facts_), memory(target_));
    return std::move(hops_);
  }

  std::vector<Hop> device_copy() {
    at_ = memory(source_);
    step(memory(target_), Mover::copy_engine, PathSide::local);
    return std::move(hops_);
  }

  std::vector<Hop> bounce(const Carriage& message) {
    at_ = memory(source_);
    if (needs_file_buffer(source_))
      step(buffer(Stop::Kind::file_buffer, source_), Mover::drive, source_);
    step(buffer(Stop::Kind::bounce_buffer, source_), stager(source_), source_);
    carry(flow_of(message, true, facts_), buffer(Stop::Kind::bounce_buffer, target_));
    if (needs_file_buffer(target_))
      step(buffer(Stop::Kind::file_buffer, target_), stager(target_), target_);
    step(memory(target_), on_drive(target_) ? Mover::drive : stager(target_), target_);
    return std::move(hops_);
  }

 private:
  const PathFacts::End& end(PathSide side) const {
    return side == PathSide::local ? facts_.local : facts_.remote;
  }
  Stop memory(PathSide side) const {
    const Place& place = end(side).place;
    const auto kind = is_file(place.kind)                ? Stop::Kind::file
                      : place.kind == MemoryKind::device ? Stop::Kind::device
                                                         : Stop::Kind::host;
    return {kind, side, place.numa_node, place.device};
  }
  /// It is a file whose drive reads and writes memory by itself.
  bool on_drive(PathSide side) const { return end(side).place.kind == MemoryKind::file; }
  /// The drive asks for whole pages. Answers have them, requests don't: a buffer in between does.
  bool needs_file_buffer(PathSide side) const {
    return on_drive(side) && facts_.direction == Direction::write;
  }
  static Stop buffer(Stop::Kind kind, PathSide side) { return {.kind = kind, .side = side}; }
  Stop nic(PathSide side) const {
    return {.kind = Stop::Kind::nic, .side = side, .name = end(side).nics};
  }
  /// The copier between memory, or the drive's buffer for it, and the bounce-buffer transport's
  /// buffers.
  Mover stager(PathSide side) const {
    switch (end(side).place.kind) {
      case MemoryKind::device:
        return Mover::copy_engine;
      case MemoryKind::buffered_file:
        return Mover::kernel;  // between its page cache and the buffer
      case MemoryKind::file:
        return needs_file_buffer(side) ? Mover::cpu : Mover::drive;
      case MemoryKind::host:
        break;
    }
    return Mover::cpu;
  }

  void step(Stop to, Mover by, PathSide side) {
    hops_.push_back({std::exchange(at_, to), to, by, side});
  }

  void carry(const Flow& flow, Stop to) {
    const bool one_copy = flow.source_copies != flow.target_copies;
    if (!flow.through_nics && one_copy)
      return step(std::move(to), flow.by, flow.source_copies ? source_ : target_);
    if (flow.source_copies) step(buffer(flow.between, source_), flow.by, source_);
    if (flow.through_nics) {
      step(nic(source_), Mover::nic, source_);
      if (!facts_.same_host)
        step({.kind = Stop::Kind::wire, .side = PathSide::between}, Mover::nic, source_);
      step(nic(target_), Mover::nic, target_);
      if (flow.target_copies) step(buffer(flow.between, target_), Mover::nic, target_);
    }
    step(std::move(to), flow.target_copies ? flow.by : Mover::nic, target_);
  }

  const PathFacts& facts_;
  const PathSide source_, target_;
  Stop at_;
  std::vector<Hop> hops_;
};

void count_copies(Path& path) {
  for (const Hop& hop : path.hops) {
    if (!hop.copies()) continue;
    ++path.copies;
    ++(hop.side == PathSide::local ? path.copies_local : path.copies_remote);
    if (hop.busies_cpu()) ++path.cpu_copies;
  }
}

void note_bounces(const Carriage& carriage, bool from_initiator, PathSide source, Path& path) {
  path.bounced_below = carriage.bounced_below;
  if (path.bounced_below == 0) return;
  const bool initiator_is_local = from_initiator == (source == PathSide::local);
  path.bounces_local = initiator_is_local ? carriage.initiator_bounces : carriage.target_bounces;
  path.bounces_remote = initiator_is_local ? carriage.target_bounces : carriage.initiator_bounces;
}

bool goes_through_nic(const Path& path, PathSide side) {
  return std::any_of(path.hops.begin(), path.hops.end(), [&](const Hop& hop) {
    return hop.to.kind == Stop::Kind::nic && hop.to.side == side;
  });
}

/// The links of known speed on one side of a path.
void add_links(const Path& path, const PathFacts::End& end, PathSide side,
               std::vector<std::pair<double, std::string>>& links) {
  const std::string whose = side == PathSide::remote ? "the peer's " : "";
  if (goes_through_nic(path, side) && end.nics_gbps > 0)
    links.emplace_back(end.nics_gbps, fmt::format("{}{}NIC {}", end.far_nics ? "the way to " : "",
                                                  whose, end.nics));
  if (end.place.kind == MemoryKind::device && end.gpu_gbps > 0)
    links.emplace_back(end.gpu_gbps,
                       fmt::format("the PCIe link of {}GPU {}", whose, end.place.device));
}

void find_limit(const PathFacts& facts, Path& path) {
  if (path.transport == TransportKind::device_copy) {
    path.limit = "not known: what is between the two GPUs, NVLink or PCIe, is not looked up";
    return;
  }
  std::vector<std::pair<double, std::string>> links;
  add_links(path, facts.local, PathSide::local, links);
  add_links(path, facts.remote, PathSide::remote, links);
  const auto slowest = std::min_element(links.begin(), links.end());
  if (slowest != links.end()) {
    path.gbps = slowest->first;
    path.limit = slowest->second;
    while (path.limit.ends_with(' ')) path.limit.pop_back();
    if (path.cpu_copies > 0) path.limit += ", if the CPUs copy as fast";
  } else {
    path.limit = path.cpu_copies > 0 ? "not known: CPUs copy, as fast as they and their memory are"
                                     : "not known: no link on it tells its speed";
  }
  if (!goes_through_nic(path, PathSide::local)) return;
  for (const std::string& note : facts.local.link_notes) path.limit += "; " + note;
}

void pass_over(const PathFacts& facts, Path& path) {
  path.not_used = facts.not_used;
  if (path.transport == TransportKind::device_copy) return;
  const bool asked = facts.asked == TransportKind::bounce;
  if (asked) path.not_used.push_back("one-sided: bounce buffers were asked for");
  const auto staged = [&](const PathFacts::End& end, bool direct, const char* where) {
    if (end.place.kind == MemoryKind::device && !direct &&
        (!asked || out_of_reach(end, facts.record)))
      path.not_used.push_back(
          fmt::format("GPUDirect{}: {}", where, why_not_direct(end, facts.record)));
    if (end.place.kind != MemoryKind::device && out_of_reach(end, facts.record))
      path.not_used.push_back(fmt::format("one-sided: {}", why_not_direct(end, facts.record)));
  };
  staged(facts.local, path.gpudirect_local, "");
  staged(facts.remote, path.gpudirect_remote, " at the peer");
  if (path.transport == TransportKind::one_sided && !facts.mapping.mapped &&
      !facts.mapping.reason.empty())
    path.not_used.push_back(fmt::format("mapped: {}", facts.mapping.reason));
  const bool gpus =
      facts.local.place.kind == MemoryKind::device && facts.remote.place.kind == MemoryKind::device;
  if (gpus && !facts.lending.lent && !facts.lending.reason.empty())
    path.not_used.push_back(fmt::format("from GPU to GPU: {}", facts.lending.reason));
}

Result<TransportKind> transport_between(const PathFacts& facts) {
  const TransportKind asked = facts.asked;
  const Lending& lending = facts.lending;
  if (asked == TransportKind::device_copy && !lending.lent)
    return fail(
        Code::unsupported,
        fmt::format("copies from GPU to GPU were asked for: {}",
                    lending.reason.empty() ? "one of the memories is no GPU's" : lending.reason));
  if (asked == TransportKind::automatic && lending.lent) return TransportKind::device_copy;
  const bool local_beyond = out_of_reach(facts.local, facts.record);
  const bool reached = !local_beyond && !out_of_reach(facts.remote, facts.record);
  if (asked == TransportKind::one_sided && !reached)
    return fail(
        Code::unsupported,
        fmt::format("one-sided transfers were asked for, and {}",
                    why_not_direct(local_beyond ? facts.local : facts.remote, facts.record)));
  if (asked != TransportKind::automatic) return asked;
  return reached ? TransportKind::one_sided : TransportKind::bounce;
}

}  // namespace

Result<Path> describe_path(const PathFacts& facts) {
  const auto transport = transport_between(facts);
  if (!transport) return fail(transport.error());
  Path path;
  path.direction = facts.direction;
  path.transport = *transport;
  path.provider = facts.provider;
  path.rails = facts.rails;
  path.same_host = facts.same_host;
  const bool write = facts.direction == Direction::write;
  const PathSide source = write ? PathSide::local : PathSide::remote;
  const bool bounced = *transport == TransportKind::bounce;
  const bool copied = *transport == TransportKind::device_copy;
  Carriage carriage = bounced ? facts.record.message_carriage
                      : write ? facts.record.write_carriage
                              : facts.record.read_carriage;
  if (!bounced && facts.mapping.mapped) carriage.by = Mover::cpu;
  Track track(facts, source);
  path.hops = copied    ? track.device_copy()
              : bounced ? track.bounce(carriage)
                        : track.one_sided(carriage);
  count_copies(path);
  // A message's initiator is its sender: of a read by the bounce-buffer transport, the
  // peer.
  if (!copied) note_bounces(carriage, bounced || write, source, path);
  const auto direct = [&](const PathFacts::End& end) {
    return end.place.kind == MemoryKind::device && !bounced && !copied;
  };
  path.gpudirect_local = direct(facts.local);
  path.gpudirect_remote = direct(facts.remote);
  find_limit(facts, path);
  pass_over(facts, path);
  return path;
}

}  // namespace weft::core
