// Proof that two engines run on one host and may copy across: each reads a nonce out of the
// other's memory and sends it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <weft/error.hpp>

#include "wire/control_codec.hpp"

namespace weft::core {

/// One page of shared memory with a random nonce. Only (pid, descriptor) go over the wire, so
/// a peer that knows the nonce has read it out of this process, or was told it by its socket.
class ProofPage {
 public:
  /// Never fails; without a page claim() is empty and no peer can prove anything.
  explicit ProofPage(std::uint64_t incarnation);
  ~ProofPage();
  ProofPage(const ProofPage&) = delete;
  ProofPage& operator=(const ProofPage&) = delete;

  /// The way to it.
  HostClaim claim() const;
  const HostNonce& nonce() const noexcept { return nonce_; }
  bool knows(const Proof& proof) const;

 private:
  int descriptor_ = -1;
  void* page_ = nullptr;
  HostNonce nonce_{};
};

/// Reads the nonce of the engine with this claim and incarnation: from its page, to prove that the
/// pid means the same process here, and again from its memory, to prove that this process may copy
/// from it. On failure the proof holds the reason.
Proof prove_same_host(const HostClaim& claim, std::uint64_t incarnation);

}  // namespace weft::core
