// What decorators of transports and endpoints do with everything that is not their subject.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "providers/endpoint.hpp"
#include "rail/hooks.hpp"
#include "transport/transport.hpp"

namespace weft::test {

class ForwardingTransport : public core::Transport {
 public:
  explicit ForwardingTransport(core::Transport& inner)
      : Transport(inner.properties()), inner_(inner) {}
  std::uint64_t chunk_limit(const core::Route& route) const override {
    return inner_.chunk_limit(route);
  }
  std::size_t most_chunks(const core::Route& route) const override {
    return inner_.most_chunks(route);
  }
  std::size_t room(const core::Route& route) const override { return inner_.room(route); }
  providers::Post post(core::Op& op) override { return inner_.post(op); }
  providers::BatchPost post_all(std::span<core::Op* const> ops) override {
    return inner_.post_all(ops);
  }
  bool went_out(const core::Op& op) const override { return inner_.went_out(op); }
  void give_up(core::Op& op) override { inner_.give_up(op); }
  std::size_t progress() override { return inner_.progress(); }
  void peer_died(core::Route& route) override { inner_.peer_died(route); }

 protected:
  core::Transport& inner() const noexcept { return inner_; }

 private:
  core::Transport& inner_;
};

/// Operations go one by one through post(), which may pass them on.
class ForwardingPosts : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  providers::BatchPost post_all(std::span<core::Op* const> ops) override {
    return Transport::post_all(ops);
  }

 protected:
  providers::Post pass_on(core::Op& op) {
    inner().set_sink(sink());
    return inner().post(op);
  }
};

/// Hooks of an engine whose transports are wrapped, each in a Wrapper made of it and `with`.
template <typename Wrapper, typename With>
core::EngineHooks hooks_wrapping(With with) {
  core::EngineHooks hooks;
  hooks.decorate = [with = std::move(with)](core::Transport& inner) {
    return std::make_unique<Wrapper>(inner, with);
  };
  return hooks;
}

class ForwardingEndpoint : public providers::Endpoint {
 public:
  explicit ForwardingEndpoint(std::unique_ptr<providers::Endpoint> inner)
      : inner_(std::move(inner)) {}
  const Capability& capability() const noexcept override { return inner_->capability(); }
  const Blob& address() const noexcept override { return inner_->address(); }
  Result<providers::FabricAddress> insert(Bytes address) override {
    return inner_->insert(address);
  }
  Result<providers::FabricAddress> insert_of(
      Bytes address, const std::shared_ptr<const core::HostProcess>& process) override {
    return inner_->insert_of(address, process);
  }
  void remove(providers::FabricAddress peer) override { inner_->remove(peer); }
  Result<std::unique_ptr<providers::Registration>> register_memory(
      const providers::Extent& memory, providers::Access access) override {
    return inner_->register_memory(memory, access);
  }
  providers::Post write(providers::Posted& posted, const providers::Local& local,
                        const providers::Target& target) override {
    return inner_->write(posted, local, target);
  }
  providers::Post read(providers::Posted& posted, const providers::Local& local,
                       const providers::Target& target) override {
    return inner_->read(posted, local, target);
  }
  providers::Post write_list(providers::Posted& posted,
                             std::span<const providers::RmaPiece> pieces) override {
    return inner_->write_list(posted, pieces);
  }
  providers::Post read_list(providers::Posted& posted,
                            std::span<const providers::RmaPiece> pieces) override {
    return inner_->read_list(posted, pieces);
  }
  providers::BatchPost post_all(bool writes, std::span<const providers::RmaPost> posts) override {
    return inner_->post_all(writes, posts);
  }
  providers::Post send(providers::Posted& posted, const providers::Local& local,
                       providers::FabricAddress peer, providers::MessageClass type) override {
    return inner_->send(posted, local, peer, type);
  }
  providers::Post receive(providers::Posted& posted, const providers::Local& local,
                          providers::MessageClass type) override {
    return inner_->receive(posted, local, type);
  }
  bool take_back(providers::Posted& posted, providers::MessageClass type) override {
    return inner_->take_back(posted, type);
  }
  std::size_t poll() override { return inner_->poll(); }
  void take_in_arrivals(Deadline deadline) override { inner_->take_in_arrivals(deadline); }
  bool copy_inline(bool writes, const providers::Local& local, const providers::Target& target,
                   providers::CopyBy by) override {
    return inner_->copy_inline(writes, local, target, by);
  }
  Result<void> check_mapped(providers::FabricAddress peer, std::uint64_t key) override {
    return inner_->check_mapped(peer, key);
  }
  Result<void> reach(providers::FabricAddress peer, std::uint64_t key) override {
    return inner_->reach(peer, key);
  }
  Result<core::Descriptor> show(const core::DescriptorName& name) const override {
    return inner_->show(name);
  }
  int wait_fd() const noexcept override { return inner_->wait_fd(); }
  bool may_sleep() override { return inner_->may_sleep(); }
  bool reopens() const noexcept override { return inner_->reopens(); }
  void suspend() override { inner_->suspend(); }
  Result<void> reopen() override { return inner_->reopen(); }
  void resume() override { inner_->resume(); }
  void shut() override { inner_->shut(); }

 protected:
  providers::Endpoint& inner() const noexcept { return *inner_; }

 private:
  const std::unique_ptr<providers::Endpoint> inner_;
};

/// What `open` opens, with each endpoint in a Wrapper. Not beside others that are being opened.
template <typename Wrapper, typename Open>
auto wrapped(Open open) {
  auto before = std::exchange(core::endpoint_decorator(),
                              [](auto real) { return std::make_unique<Wrapper>(std::move(real)); });
  auto opened = open();
  core::endpoint_decorator() = std::move(before);
  return opened;
}

template <typename Wrapper>
Result<Engine> open_wrapped(const Config& config) {
  return wrapped<Wrapper>([&] { return Engine::open(config); });
}

}  // namespace weft::test
