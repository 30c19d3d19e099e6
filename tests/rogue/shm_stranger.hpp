// A process of the same user beside an engine's shm rail: it keeps to none of what Weft's shm
// provider does at the initiator, and copies by the kernel's calls.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "providers/endpoint.hpp"
#include "providers/shm/neighbour.hpp"
#include "rogue.hpp"

namespace weft::test {

class ShmStranger final : public Rogue {
 public:
  ShmStranger(const std::string& address, std::span<std::byte> memory);

  // The kernel asks for no key.
  Ending write(const Aim& aim, std::size_t length, Deadline deadline) override;
  Ending read(const Aim& aim, std::size_t length, Deadline deadline) override;
  /// As far as the ring is concerned the message is well formed.
  Ending send(Class type, std::size_t length, Deadline deadline) override;
  std::uint64_t base_of(std::uint64_t key) const override;
  void scribble(std::uint64_t count) override;

 private:
  providers::shm::Address victim_;
  const std::span<std::byte> memory_;
  std::unique_ptr<providers::Endpoint> endpoint_;
  providers::FabricAddress peer_ = 0;
};

}  // namespace weft::test
