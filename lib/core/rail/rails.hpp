// The rails of an engine: opening one for each NIC that was found, and what is known of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include <weft/engine.hpp>

#include "rail/discovery.hpp"
#include "rail/hooks.hpp"
#include "rail/locality.hpp"
#include "rail/rail.hpp"
#include "wire/introduction.hpp"

namespace weft::core {

/// Opened by the thread that opens the engine, and closed by the one that closes it. In between it
/// is constant, and any thread reads it; a rail says itself which threads call it.
class Rails {
 public:
  explicit Rails(const Config& config) : config_(config) {}

  /// Opens all that are best, or asked for, and enters them into the introduction.
  Result<void> open(const Rail::Hooks& hooks, const EndpointDecorator& wrap, Introduction& self);

  std::size_t size() const noexcept { return rails_.size(); }
  auto begin() const noexcept { return rails_.begin(); }
  auto end() const noexcept { return rails_.end(); }
  Rail* operator[](std::size_t index) const noexcept { return rails_[index].get(); }
  /// Null if there is none.
  Rail* find(std::string_view name) const;
  /// Rails of one kind can stand in for each other.
  const RailKind& kind_of(const Rail& rail) const { return kinds_[rail.index()]; }
  /// The indices of some of them, by kind.
  std::map<RailKind, std::vector<std::size_t>> by_kind(const std::vector<Rail*>& rails) const;
  /// By index.
  const std::shared_ptr<const std::vector<std::string>>& names() const noexcept { return names_; }
  /// Indices of those that serve memory at a place.
  std::vector<std::size_t> serving(const Place& place) const;

  const Locality& locality() const noexcept { return locality_; }
  const std::vector<Candidate>& candidates() const noexcept { return candidates_; }
  /// As Info::fallback.
  const std::string& fallback() const noexcept { return fallback_; }

  // To close them, in this order, once no thread drives them any more.
  /// A descriptor for a peer of this host (Endpoint::show).
  Result<Descriptor> show(const DescriptorName& name) const;
  void shut();
  /// False if memory is still being copied at that time.
  bool settle(Deadline deadline);
  /// May block for ever in some providers.
  void clear() { rails_.clear(); }

 private:
  using Counts = std::map<std::string_view, unsigned>;  // by provider
  struct Opening {
    const Rail::Hooks& hooks;
    const EndpointDecorator& wrap;
    const providers::Wanted& wanted;
  };
  Result<void> open_nic(const providers::Nic& nic, unsigned& count, const Opening& opening);
  Result<void> check_named_are_had(const std::vector<providers::Taken>& taken,
                                   const Counts& opened) const;
  void introduce(Introduction& self);

  const Config& config_;
  Locality locality_;
  std::vector<Candidate> candidates_;
  std::string fallback_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<RailKind> kinds_;
  std::shared_ptr<const std::vector<std::string>> names_;
};

}  // namespace weft::core
