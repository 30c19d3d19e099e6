// An endpoint that carries nothing: tests see what is sent, and say what arrives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "providers/endpoint.hpp"

namespace weft::core::test {

class ScriptedEndpoint : public providers::Endpoint {
 public:
  struct Sent {
    providers::Posted* posted;
    Blob message;
    providers::FabricAddress to;
  };

  const Capability& capability() const noexcept override { return record; }
  const Blob& address() const noexcept override { return nowhere; }
  Result<providers::FabricAddress> insert(Bytes) override { return 0; }
  void remove(providers::FabricAddress) override {}
  Result<std::unique_ptr<providers::Registration>> register_memory(const providers::Extent&,
                                                                   providers::Access) override {
    return fail(Code::internal, "nothing needs to be registered here");
  }
  providers::Post write(providers::Posted&, const providers::Local&,
                        const providers::Target&) override {
    return {providers::PostStatus::failed, 1};
  }
  providers::Post read(providers::Posted&, const providers::Local&,
                       const providers::Target&) override {
    return {providers::PostStatus::failed, 1};
  }
  providers::Post send(providers::Posted& posted, const providers::Local& local,
                       providers::FabricAddress to, providers::MessageClass) override {
    if (answer.status != providers::PostStatus::posted) return answer;
    if (full.contains(to)) return {providers::PostStatus::again, 0};
    const auto* bytes = static_cast<const std::byte*>(local.address);
    sent.push_back({&posted, Blob(bytes, bytes + local.length), to});
    return answer;
  }
  providers::Post receive(providers::Posted& posted, const providers::Local& local,
                          providers::MessageClass) override {
    receives.emplace_back(&posted, local);
    return {};
  }
  bool take_back(providers::Posted& posted, providers::MessageClass) override {
    return std::erase_if(receives, [&](const auto& each) { return each.first == &posted; }) > 0;
  }
  std::size_t poll() override { return 0; }
  int wait_fd() const noexcept override { return -1; }
  bool may_sleep() override { return true; }

  void arrive(Bytes message) {
    ASSERT_FALSE(receives.empty()) << "a message found no receive";
    const auto [posted, local] = receives.front();
    receives.pop_front();
    ASSERT_LE(message.size(), local.length);
    std::copy(message.begin(), message.end(), static_cast<std::byte*>(local.address));
    providers::Completion completion;
    completion.length = message.size();
    posted->handler->completed(*posted, completion);
  }

  Capability record;
  Blob nowhere;
  providers::Post answer;                   // to whoever sends
  std::set<providers::FabricAddress> full;  // there is no room for what goes there
  std::deque<Sent> sent;
  std::deque<std::pair<providers::Posted*, providers::Local>> receives;
};

}  // namespace weft::core::test
