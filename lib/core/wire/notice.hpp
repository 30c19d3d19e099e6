// Messages over a control connection that is up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "wire/grant_codec.hpp"
#include "wire/lent.hpp"

namespace weft::core {

/// Asks for a grant by name; the owner answers once it is published.
struct LookupRequest {
  std::uint64_t request = 0;
  std::string name;
};
/// The asker's deadline passed: no answer is wanted any more.
struct LookupAbandoned {
  std::uint64_t request = 0;
};
struct LookupReply {
  std::uint64_t request = 0;
  Blob grant;
};
/// A signal that the peer may expect will not come, and why.
struct SignalFailed {
  std::uint64_t signal = 0;
  Code code = Code::internal;
  std::string reason;
  bool reads = false;         // the transfer whose signal it was; else it writes
  std::uint64_t carried = 0;  // bytes of that transfer, as far as its side knows
};
/// Stop using a grant, drain what is posted under it, and confirm.
struct RevokeRequest {
  std::uint64_t lease = 0;
};
/// Nothing of the sender's is out under it, nor will be.
struct RevokeConfirmed {
  std::uint64_t lease = 0;
  bool strays = false;  // but something that it sent may still arrive
};

/// Whether a grant that was imported still holds. From the answer on, if it says so, the asker
/// holds the grant, and its owner has to ask it to stop.
struct GrantQuery {
  std::uint64_t request = 0;
  std::uint64_t lease = 0;
  bool maps = false;  // it would map memory of a GPU's that is lent to it
};
struct GrantStatus {
  std::uint64_t request = 0;
  bool held = false;
  Nanoseconds left = unlimited;  // of its time
  std::vector<RenewedKey> renewed = {};
  /// A GPU's memory, for the asker to map and hold until it confirms; or why it is not lent.
  std::optional<Lent> lent = {};
  std::string not_lent = {};
};

/// The grant holds for longer: a holder asks again for how long (GrantQuery).
struct LeaseRenewed {
  std::uint64_t lease = 0;
};

/// A rail of the sender's was closed and opened again: it has another address, and grants other
/// keys with it. Empty address: more keys are to come before it.
struct RailMoved {
  std::uint32_t rail = 0;
  Blob address;
  std::vector<RenewedKey> renewed;
};

/// Keys of the sender's grants are others from now on. The receiver answers once nothing that it
/// has posted with the old ones is out (0: not at all).
struct KeysReplaced {
  std::uint64_t request = 0;
  std::vector<RenewedKey> renewed;
};
struct KeysDrained {
  std::uint64_t request = 0;
};

/// Nothing more is posted to where that rail of the receiver's was before.
struct RailFollowed {
  std::uint32_t rail = 0;
};

/// A message that its NIC did not get to the peer, with its head (message.fbs).
struct FallbackMessage {
  Blob bytes;
};
/// The receiver has the oldest that it did not tell of yet.
struct FallbackTaken {};

/// The receiver's again: so many of the packets that it had promised to take (Messenger).
struct CreditsGivenBack {
  std::uint64_t count = 0;
};
/// Of requests through bounce buffers (transport/bounce_lanes.hpp).
struct BounceCredits {
  enum class Step : std::uint8_t { wanted = 1, given, wanted_back, given_back };
  Step step = Step::wanted;
  std::uint32_t giver = 0;  // the rail that has receives for them
  std::uint32_t user = 0;   // the rail that sends them
  std::uint32_t count = 0;  // given: 0 is a refusal
};

/// Asks for the XXH3 of ranges of a granted segment, in this order as if they were one.
struct CheckRequest {
  std::uint64_t request = 0;
  std::uint64_t lease = 0;
  std::vector<Range> ranges;
};
struct CheckReply {
  std::uint64_t request = 0;
  Code code = Code::internal;  // Code{}: the hash is known
  std::uint64_t hash = 0;
};

using Notice =
    std::variant<LookupRequest, LookupAbandoned, LookupReply, SignalFailed, RevokeRequest,
                 RevokeConfirmed, GrantQuery, GrantStatus, FallbackMessage, FallbackTaken,
                 CheckRequest, CheckReply, RailMoved, RailFollowed, LeaseRenewed, KeysReplaced,
                 KeysDrained, CreditsGivenBack, BounceCredits>;

}  // namespace weft::core
