// The shm provider between processes that see no common /proc: descriptors are shown, the kernel
// copies nothing, and the numbers of processes mean nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "device/allocation.hpp"
#include "providers/shm/neighbour.hpp"
#include "shm_pair.hpp"

namespace weft::providers::shm {
namespace {

/// This process, as if it could be asked by a socket only.
class Elsewhere final : public core::HostProcess {
 public:
  explicit Elsewhere(const Endpoint& endpoint)
      : HostProcess(core::Process::of(getpid()).value()), endpoint_(endpoint) {}
  Result<Descriptor> open(const core::Sought& sought) const override {
    ++asked;
    return endpoint_.show(sought.name).and_then([&](const Descriptor& shown) {
      return core::open_link(fmt::format("/proc/self/fd/{}", shown.get()), sought.kind,
                             sought.mode);
    });
  }
  bool waits() const noexcept override { return true; }
  std::int32_t pid() const noexcept override { return 0; }

  mutable int asked = 0;

 private:
  const Endpoint& endpoint_;
};

class ShmHosts : public ShmPair {
 protected:
  void SetUp() override {
    to_b = a->insert_of(b->address(), process).value();
    to_a = b->insert(a->address()).value();
  }
  Address address_of_b() const {
    Address address;
    std::memcpy(&address, b->address().data(), sizeof address);
    return address;
  }
  std::unique_ptr<Registration> grant(Access access = Access::remote_read_write) {
    Extent extent{shared.address(), 10'000};
    extent.file = {shared.fd(), shared.file_offset()};
    return b->register_memory(extent, access).value();
  }

  const std::shared_ptr<Elsewhere> process = std::make_shared<Elsewhere>(*b);
  core::Allocation shared = core::Allocation::make(Memory::shared(10'000)).value();
};

TEST_F(ShmHosts, MemoryIsMappedWhenItIsReached) {
  const auto granted = grant();
  EXPECT_EQ(write(0, 10'000, granted->key()).error, EOPNOTSUPP) << "posting asks nobody";
  EXPECT_EQ(process->asked, 2) << "for the region and the bell";
  ASSERT_TRUE(a->reach(to_b, granted->key()));
  EXPECT_EQ(process->asked, 3);
  const Operation written = write(0, 10'000, granted->key());
  EXPECT_TRUE(written.ok);
  EXPECT_TRUE(written.mapped);
  EXPECT_EQ(std::memcmp(shared.address(), here.data(), here.size()), 0);
  EXPECT_TRUE(a->reach(to_b, granted->key()));
  EXPECT_EQ(process->asked, 3) << "once";
}

TEST_F(ShmHosts, MemoryOfOneProcessIsOutOfReach) {
  const auto granted = b->register_memory({there.data(), there.size()}, Access::remote_write);
  const auto reached = a->reach(to_b, (*granted)->key());
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().code(), Code::unsupported);
  EXPECT_EQ(write(0, 100, (*granted)->key()).error, EOPNOTSUPP);
  EXPECT_EQ(there, Blob(10'000));
}

TEST_F(ShmHosts, OneThatIsMetAgainIsAskedInTheNewWay) {
  const auto again = std::make_shared<Elsewhere>(*b);
  ASSERT_EQ(a->insert_of(b->address(), again).value(), to_b);
  a->remove(to_b);  // the first meeting ends only now
  const auto granted = grant();
  EXPECT_TRUE(a->reach(to_b, granted->key()));
  EXPECT_EQ(process->asked, 2);
  EXPECT_EQ(again->asked, 1);
}

TEST_F(ShmHosts, MessagesGoBothWays) {
  Operation sent, got;
  b->receive(got, {there.data(), there.size(), nullptr}, MessageClass::message);
  a->send(sent, {here.data(), 1'000, nullptr}, to_b, MessageClass::message);
  for (int i = 0; i < 10 && got.ended + sent.ended < 2; ++i) b->poll(), a->poll();
  EXPECT_TRUE(sent.ok);
  EXPECT_TRUE(got.ok);
  EXPECT_EQ(std::memcmp(there.data(), here.data(), 1'000), 0);
}

TEST_F(ShmHosts, OnlyFilesOfOpenEntriesAreShown) {
  const std::uint64_t nonce = address_of_b().nonce;
  auto granted = grant(Access::remote_read);
  const auto own = b->register_memory({there.data(), there.size()}, Access::remote_read);
  const std::uint64_t key = granted->key();
  EXPECT_TRUE(b->show({nonce, key}));
  EXPECT_TRUE(b->show({nonce, region_number}));
  EXPECT_TRUE(b->show({nonce, bell_number}));
  EXPECT_FALSE(b->show({nonce, 0}));
  EXPECT_FALSE(b->show({nonce, key ^ entry_count})) << "another key of the same entry";
  EXPECT_FALSE(b->show({nonce, key + 1}));
  EXPECT_FALSE(b->show({nonce, (*own)->key()}));
  const auto elsewhere = b->show({nonce ^ 1, key});
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code(), Code::not_found);
  granted.reset();
  EXPECT_FALSE(b->show({nonce, key}));
}

/// A slot taken by a process that has ended, as far as its number says.
class Taken {
 public:
  Taken(const Address& of, std::uint64_t pid_namespace)
      : head_(map_head(Descriptor(dup(of.region))).value()), claim_(head_->claims[100]) {
    head_->claimed.store(101);
    claim_.owner.store(4711);
    claim_.pid_namespace.store(pid_namespace);
    claim_.pid.store(0x7fffffff);
  }
  ~Taken() { claim_.owner.store(0); }
  bool kept() const { return claim_.owner.load() == 4711; }

 private:
  const Mapped<Head> head_;
  Claim& claim_;
};

TEST_F(ShmHosts, NumbersOfOtherNamespacesSayNothing) {
  const auto look = [&] {
    b->remove(to_a);
    to_a = b->insert(a->address()).value();
    b->poll();
  };
  {
    const Taken near(address_of_b(), own_pid_namespace());
    look();
    EXPECT_FALSE(near.kept());
  }
  const Taken far(address_of_b(), own_pid_namespace() + 1);
  look();
  EXPECT_TRUE(far.kept());
}

}  // namespace
}  // namespace weft::providers::shm
