#include "endpoints.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "forwarding.hpp"

namespace weft::chaos {
namespace {

using namespace providers;

std::atomic<std::int64_t> live{0};

class CountedRegistration final : public Registration {
 public:
  explicit CountedRegistration(std::unique_ptr<Registration> real) : real_(std::move(real)) {
    ++live;
  }
  ~CountedRegistration() override { --live; }
  void* descriptor() const noexcept override { return real_->descriptor(); }
  std::uint64_t key() const noexcept override { return real_->key(); }
  bool close() override { return real_->close(); }
  void retire() noexcept override { real_->retire(); }
  const Error* lost() const noexcept override { return real_->lost(); }

 private:
  const std::unique_ptr<Registration> real_;
};

/// Its own operation stands before the endpoint that carries it out, which is the first to go.
struct Repeat {
  providers::Posted posted;
  Blob message;
  bool under_way = false;
  unsigned sent = 0;
};

class WatchedEndpoint final : private Repeat,
                              public test::ForwardingEndpoint,
                              private CompletionHandler {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;

  Result<std::unique_ptr<Registration>> register_memory(const Extent& memory,
                                                        Access access) override {
    return ForwardingEndpoint::register_memory(memory, access)
        .map([](std::unique_ptr<Registration>&& made) -> std::unique_ptr<Registration> {
          return std::make_unique<CountedRegistration>(std::move(made));
        });
  }
  Post send(Posted& posted, const Local& local, FabricAddress peer, MessageClass type) override {
    const Post post = ForwardingEndpoint::send(posted, local, peer, type);
    if (post.status == PostStatus::posted && type == MessageClass::message) repeat(local, peer);
    return post;
  }

 private:
  /// Every so often, and one at a time: the peer has receives to spare for no more.
  void repeat(const Local& local, FabricAddress peer) {
    constexpr unsigned every = 50;
    if (capability().local_registration || under_way || ++sent % every != 0) return;
    const auto* bytes = static_cast<const std::byte*>(local.address);
    message.assign(bytes, bytes + local.length);
    Repeat::posted.handler = this;
    const Local again{message.data(), message.size(), nullptr};
    under_way = inner().send(Repeat::posted, again, peer, MessageClass::message).status ==
                PostStatus::posted;
  }
  void completed(Posted&, const Completion&) override { under_way = false; }
};

}  // namespace

void watch_endpoints() {
  core::endpoint_decorator() = [](std::unique_ptr<Endpoint> real) {
    return std::make_unique<WatchedEndpoint>(std::move(real));
  };
}

std::int64_t live_registrations() {
  return live;
}

}  // namespace weft::chaos
