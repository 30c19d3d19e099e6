// The holder's half of the protocol of leases.
#include "lease/imported_grants.hpp"

#include <gmock/gmock.h>

#include "parts.hpp"

namespace weft::core::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ImportedGrantsTest : public testing::Test {
 protected:
  std::uint64_t import() {
    imported.add(remote);
    const auto query = std::get<GrantQuery>(told.back());
    told.pop_back();
    return query.request;
  }
  std::vector<std::uint64_t> confirmed() {
    std::vector<std::uint64_t> leases;
    for (const Notice& notice : std::exchange(told, {}))
      if (const auto* each = std::get_if<RevokeConfirmed>(&notice)) leases.push_back(each->lease);
    return leases;
  }

  std::vector<Notice> told;
  int stopped = 0;
  ImportedGrants imported{[this](LinkId, Notice notice) { told.push_back(std::move(notice)); },
                          [this](RemoteState&, const Error&) { ++stopped; },
                          [](const std::function<void()>& task) { task(); }, [] { return true; }};
  const std::shared_ptr<PeerState> owner = make_peer(1, "owner");
  const std::shared_ptr<RemoteState> remote = make_remote(owner);
  const std::uint64_t lease = remote->description().lease;
};

TEST_F(ImportedGrantsTest, AreConfirmedOnceNobodyUsesThem) {
  imported.take(*owner, GrantStatus{import(), true});
  Entered transfer = remote->users().enter();
  ASSERT_TRUE(transfer);
  imported.take(*owner, RevokeRequest{lease});
  EXPECT_EQ(stopped, 1);
  EXPECT_THAT(confirmed(), IsEmpty());
  transfer.leave();
  EXPECT_THAT(confirmed(), ElementsAre(lease));
}

TEST_F(ImportedGrantsTest, ThatHoldNoMoreAreNotConfirmedBeforeNobodyUsesThem) {
  imported.take(*owner, GrantStatus{import(), true});
  Entered transfer = remote->users().enter();
  ASSERT_TRUE(transfer);
  // Its time is over, which the owner says to who asks before he says so by himself.
  imported.take(*owner, GrantStatus{import(), false});
  imported.take(*owner, RevokeRequest{lease});
  EXPECT_THAT(confirmed(), IsEmpty()) << "operations are under way";
  transfer.leave();
  EXPECT_THAT(confirmed(), ElementsAre(lease));
}

TEST_F(ImportedGrantsTest, RenewedOnesAreAskedForAndNeverEndEarlier) {
  const auto before = Clock::now();
  imported.take(*owner, GrantStatus{import(), true, 1min});
  const auto first_end = remote->expires();
  EXPECT_LT(first_end, Clock::now() + 1min);
  told.clear();
  imported.take(*owner, LeaseRenewed{lease});
  ASSERT_EQ(told.size(), 1U);
  const auto query = std::get<GrantQuery>(told.front());
  EXPECT_EQ(query.lease, lease);
  imported.take(*owner, GrantStatus{query.request, true, 1h});
  EXPECT_GT(remote->expires(), before + 59min);
  EXPECT_LT(remote->expires(), Clock::now() + 1h);
  const auto later = remote->expires();
  imported.take(*owner, GrantStatus{import(), true, 1min});
  EXPECT_EQ(remote->expires(), later) << "an answer that was late";
  told.clear();
  imported.take(*owner, LeaseRenewed{lease + 1});
  EXPECT_THAT(told, IsEmpty()) << "one that this side does not have";
}

TEST_F(ImportedGrantsTest, ThatNeverHeldAreForgotten) {
  imported.take(*owner, GrantStatus{import(), false});
  EXPECT_THAT(imported.of(nullptr), IsEmpty());
  EXPECT_FALSE(remote->users().enter());
}

TEST_F(ImportedGrantsTest, ThatAreGivenBackWhileTheirOwnerIsAskedStayGivenBack) {
  imported.take(*owner, GrantStatus{import(), true});
  const auto added = imported.add(remote);
  const auto query = std::get<GrantQuery>(told.back());
  imported.give_back(nullptr);
  imported.take(*owner, GrantStatus{query.request, true});
  ASSERT_TRUE(added.answer->done());
  ASSERT_TRUE(added.answer->error());
  EXPECT_EQ(added.answer->error()->code(), Code::stale);
  EXPECT_THAT(imported.of(nullptr), IsEmpty());
  EXPECT_THAT(confirmed(), ElementsAre(lease)) << "once, as its owner counts";
  imported.link_down(owner->link, Error(Code::peer_down, "gone"));
}

TEST_F(ImportedGrantsTest, WhatIsLentIsNotMappedOnceTheOwnerAsksForIt) {
  GrantStatus status{import(), true};
  status.lent = Lent{Blob(64), 0, 0};
  imported.take(*owner, status);
  imported.take(*owner, RevokeRequest{lease});
  EXPECT_THAT(confirmed(), ElementsAre(lease));
  const auto late = remote->borrowed()->map(host_device(), 1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::stale);
}

}  // namespace
}  // namespace weft::core::test
