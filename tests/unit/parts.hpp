// Segments, peers, remotes and transfers without an engine or a fabric around them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "lease/grant_state.hpp"
#include "peer/peer_state.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core::test {

using namespace std::chrono_literals;

/// Long enough for anything that has to happen, on any loaded machine.
inline Deadline soon() {
  return Deadline::in(30s);
}

inline std::shared_ptr<SegmentState> make_segment(std::size_t bytes = 4096,
                                                  const Device& device = host_device()) {
  auto allocation = Allocation::make(Memory::own(bytes));
  EXPECT_TRUE(allocation.has_value());
  return std::make_shared<SegmentState>(1, nullptr, std::move(*allocation), Place{device.kind()},
                                        device);
}

inline std::shared_ptr<GrantState> make_grant(const std::shared_ptr<SegmentState>& segment,
                                              std::uint64_t lease = 1, Rights rights = Rights::read,
                                              std::vector<Range> ranges = {{0, 4096}}) {
  GrantDescription description;
  description.engine = "owner";
  description.segment_size = segment->size();
  description.lease = lease;
  description.rights = rights;
  description.ranges = std::move(ranges);
  GrantState::Parts parts;
  parts.segment = segment;
  parts.description = std::move(description);
  parts.unfenced = {0};
  return std::make_shared<GrantState>(std::move(parts));
}

/// A peer that is up, with one route for each of `rails` local rails.
inline std::shared_ptr<PeerState> make_peer(std::size_t rails, const std::string& name = "peer",
                                            LinkId link = 1) {
  Introduction introduction;
  introduction.name = name;
  auto peer = std::make_shared<PeerState>(nullptr, link, introduction, true,
                                          PeerState::Limits{std::size_t{1} << 20, 16});
  for (std::size_t i = 0; i < rails; ++i) {
    auto route = std::make_unique<Route>();
    const auto index = static_cast<std::uint32_t>(i);
    route->targets.add({index, &route->addresses.try_emplace(index, i).first->second});
    peer->route_by_rail.push_back(route.get());
    peer->routes.push_back(std::move(route));
  }
  peer->set_up();
  return peer;
}

inline std::shared_ptr<RemoteState> make_remote(const std::shared_ptr<PeerState>& peer,
                                                std::uint64_t bytes = 4096) {
  GrantDescription grant;
  grant.engine = peer->introduction.name;
  grant.segment_size = bytes;
  grant.rights = Rights::read_write;
  grant.ranges = {{0, bytes}};
  return std::make_shared<RemoteState>(peer, std::move(grant));
}

inline std::shared_ptr<RailSet> make_rail_set(const PeerState& peer,
                                              std::span<const std::size_t> rails) {
  auto set = std::make_shared<RailSet>();
  for (const std::size_t rail : rails)
    if (Route* route = peer.route_by_rail[rail]) set->add(rail, {route, route->targets});
  return set;
}
/// Over all routes.
inline std::shared_ptr<RailSet> make_rail_set(const PeerState& peer) {
  std::vector<std::size_t> rails(peer.route_by_rail.size());
  std::iota(rails.begin(), rails.end(), std::size_t{0});
  return make_rail_set(peer, rails);
}

inline std::shared_ptr<const std::vector<std::string>> make_rail_names(std::size_t rails) {
  auto names = std::make_shared<std::vector<std::string>>();
  for (std::size_t i = 0; i < rails; ++i) names->push_back("rail:" + std::to_string(i));
  return names;
}

inline std::shared_ptr<PreparedState> make_prepared(const std::shared_ptr<PeerState>& peer,
                                                    PieceList pieces,
                                                    Direction direction = Direction::write,
                                                    std::size_t rails = 1) {
  auto prepared = std::make_shared<PreparedState>();
  prepared->rail_names = make_rail_names(rails);
  prepared->local = make_segment();
  prepared->remote = make_remote(peer);
  prepared->path = make_rail_set(*peer);
  prepared->direction = direction;
  prepared->pieces = std::move(pieces);
  for (std::size_t i = 0; i < prepared->pieces.size(); ++i)
    prepared->bytes += prepared->pieces[i].length;
  return prepared;
}

/// `count` pieces of `length` bytes that are no neighbours.
inline PieceList scattered(std::size_t count, std::uint64_t length) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = i * (length + 1);
    pairs.push_back({at, at, length});
  }
  return PieceList(pairs);
}

/// SideExtents of so many bytes, each reached by the rails whose bits are set, of so many.
inline SideExtents make_extents(std::uint64_t bytes, std::vector<RailBits> by_extent,
                                std::size_t rails) {
  const std::uint64_t size = bytes * by_extent.size();
  return {"memory", Extents(size, bytes), [=, masks = std::move(by_extent)](std::uint64_t offset) {
            const RailBits bits = masks.at(offset / bytes);
            const bool all = static_cast<std::size_t>(std::popcount(bits)) == rails;
            return SideExtents::Reached{bits, all, all};
          }};
}

/// Over rails 0 to `rails` - 1, between extents of so many bytes on both sides.
inline Reach make_reach(const PieceList& pieces, std::uint64_t extent, std::vector<RailBits> local,
                        std::vector<RailBits> remote, std::size_t rails) {
  std::vector<std::size_t> path(rails);
  std::iota(path.begin(), path.end(), std::size_t{0});
  auto reach = Reach::find(pieces, path, make_extents(extent, std::move(local), rails),
                           make_extents(extent, std::move(remote), rails));
  EXPECT_TRUE(reach.has_value());
  return reach.value_or(Reach());
}

/// For transfers of which nobody is told.
class NoHost final : public TransferHost {
 public:
  void raise_signal(const std::shared_ptr<TransferState>&) override {}
  void offer_again(const std::shared_ptr<TransferState>&) override {}
  void transfer_ended(TransferState&) override {}
};

inline Submission make_submission(std::shared_ptr<const PreparedState> prepared,
                                  TransferOptions options = {}) {
  Submission submission(Clock::now());
  submission.bytes = prepared->bytes;
  submission.local_use = Entered(prepared->local->users());
  submission.remote_use = prepared->remote->users().enter();
  submission.prepared = std::move(prepared);
  submission.take(std::move(options));
  submission.deadline = soon().when();
  return submission;
}

}  // namespace weft::core::test
