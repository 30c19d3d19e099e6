// Sleeping on descriptors that stay readable.
#include "providers/libfabric/edges.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <memory>

#include "providers/libfabric/inner_epoll.hpp"

namespace weft::providers {
namespace {

bool readable(int fd) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, 0) == 1;
}

void happen(const core::Descriptor& event) {
  ASSERT_EQ(::eventfd_write(event.get(), 1), 0);
}

/// As libfabric makes them: an epoll descriptor over what completions and sockets set.
struct Nested {
  Nested() {
    for (const core::Descriptor* each : {&signal, &inner}) add(outer, *each);
    add(inner, socket);
  }
  static void add(const core::Descriptor& epoll, const core::Descriptor& fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event), 0);
  }
  core::Descriptor signal{::eventfd(0, EFD_NONBLOCK)}, socket{::eventfd(0, EFD_NONBLOCK)};
  core::Descriptor inner{::epoll_create1(0)}, outer{::epoll_create1(0)};
};

TEST(Edges, AreToldOnce) {
  const core::Descriptor event(::eventfd(0, EFD_NONBLOCK));
  const Edges edges(event.get());
  ASSERT_GE(edges.fd(), 0);
  EXPECT_FALSE(readable(edges.fd()));
  happen(event);
  EXPECT_TRUE(readable(edges.fd()));
  EXPECT_TRUE(readable(edges.fd())) << "until it is forgotten";
  edges.forget();
  EXPECT_TRUE(readable(event.get()));
  EXPECT_FALSE(readable(edges.fd()));
  edges.forget();
  happen(event);
  EXPECT_TRUE(readable(edges.fd())) << "once more";
}

TEST(Edges, ComeThroughADescriptorThatIsReadableForEver) {
  const Nested nested;
  const Edges edges(nested.outer.get());
  happen(nested.signal);  // and nobody takes it back
  edges.forget();
  EXPECT_TRUE(readable(nested.outer.get()));
  EXPECT_FALSE(readable(edges.fd()));
  for (int i = 0; i < 3; ++i) {
    happen(nested.socket);
    EXPECT_TRUE(readable(edges.fd()));
    edges.forget();
    EXPECT_FALSE(readable(edges.fd())) << "though nobody has read it";
  }
}

TEST(Edges, SurviveTheOtherOnesEnd) {
  auto nested = std::make_unique<Nested>();
  const Edges edges(nested->outer.get());
  nested.reset();
  edges.forget();
  EXPECT_FALSE(readable(edges.fd()));
}

TEST(Edges, ThereAreNoneOfWhatIsNoDescriptor) {
  EXPECT_LT(Edges(-1).fd(), 0);
  Edges(-1).forget();
}

TEST(InnerEpoll, IsTheOneAmongTheOthers) {
  const Nested nested;
  EXPECT_EQ(inner_epoll(nested.outer.get()), nested.inner.get());
  happen(nested.signal);
  EXPECT_TRUE(readable(nested.outer.get()));
  EXPECT_FALSE(readable(nested.inner.get()));
  happen(nested.socket);
  EXPECT_TRUE(readable(nested.inner.get())) << "as long as nobody reads it";
}

TEST(InnerEpoll, ThereIsNoneOfSeveralOrOfNone) {
  const Nested nested;
  EXPECT_EQ(inner_epoll(nested.inner.get()), std::nullopt);
  EXPECT_EQ(inner_epoll(nested.socket.get()), std::nullopt);
  EXPECT_EQ(inner_epoll(-1), std::nullopt);
  const core::Descriptor second(::epoll_create1(0));
  Nested::add(nested.outer, second);
  EXPECT_EQ(inner_epoll(nested.outer.get()), std::nullopt);
}

}  // namespace
}  // namespace weft::providers
