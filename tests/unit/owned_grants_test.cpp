// The owner's half of the protocol of leases.
#include "lease/owned_grants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "parts.hpp"

namespace weft::core::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class OwnedGrantsTest : public testing::Test {
 protected:
  bool ask(LinkId link, std::uint64_t lease = 1) {
    owned.take(link, GrantQuery{7, lease});
    const auto [to, notice] = told.back();
    told.pop_back();
    EXPECT_EQ(to, link);
    EXPECT_EQ(std::get<GrantStatus>(notice).request, 7U);
    left = std::get<GrantStatus>(notice).left;
    return std::get<GrantStatus>(notice).held;
  }
  std::vector<LinkId> asked_to_stop() {
    std::vector<LinkId> links;
    for (const auto& [link, notice] : std::exchange(told, {}))
      if (std::holds_alternative<RevokeRequest>(notice)) links.push_back(link);
    return links;
  }

  /// Number 1, for writing.
  std::shared_ptr<GrantState> grant_for(Nanoseconds ttl) const {
    GrantState::Parts parts;
    parts.segment = segment;
    parts.description.lease = 1;
    parts.description.rights = Rights::write;
    parts.description.ttl = ttl;
    return std::make_shared<GrantState>(std::move(parts));
  }

  std::vector<std::pair<LinkId, Notice>> told;
  Nanoseconds left{};
  OwnedGrants owned{
      [this](LinkId link, Notice notice) { told.emplace_back(link, std::move(notice)); },
      [this](std::uint64_t lease, GrantEnd why) {
        ended.push_back(lease);
        ends.push_back(why);
      },
      [](LinkId) -> Result<Process> { return fail(Code::unsupported, "nobody"); }};
  std::vector<std::uint64_t> ended;
  std::vector<GrantEnd> ends;  // of the same
  const std::shared_ptr<SegmentState> segment = make_segment();
};

TEST_F(OwnedGrantsTest, AreFoundWhileTheyHold) {
  const auto grant = make_grant(segment);
  owned.add(grant);
  EXPECT_EQ(owned.find(1), grant);
  EXPECT_EQ(owned.find(2), nullptr);
  EXPECT_THAT(owned.of_segment(*segment), ElementsAre(grant));
  EXPECT_THAT(owned.of_segment(*make_segment()), IsEmpty());
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(owned.find(1), nullptr);
  EXPECT_THAT(owned.of_segment(*segment), ElementsAre(grant)) << "somebody may still use it";
  owned.forget(*grant);
  EXPECT_THAT(owned.of_segment(*segment), IsEmpty());
}

TEST_F(OwnedGrantsTest, AreFoundBySegment) {
  const auto other = make_segment();
  const auto one = make_grant(segment, 1), two = make_grant(other, 2),
             three = make_grant(segment, 3);
  for (const auto& grant : {one, two, three}) owned.add(grant);
  EXPECT_THAT(owned.of_segment(*segment), UnorderedElementsAre(one, three));
  EXPECT_THAT(owned.of_segment(*other), ElementsAre(two));
  owned.forget(*one);
  EXPECT_THAT(owned.of_segment(*segment), ElementsAre(three));
  owned.clear();
  EXPECT_THAT(owned.of_segment(*segment), IsEmpty());
  EXPECT_THAT(owned.of_segment(*other), IsEmpty());
}

TEST_F(OwnedGrantsTest, AskThoseWhoHoldThem) {
  const auto grant = make_grant(segment, 1, Rights::write);
  owned.add(grant);
  EXPECT_TRUE(ask(1));
  EXPECT_TRUE(ask(1)) << "twice is once";
  EXPECT_TRUE(ask(2));
  EXPECT_FALSE(ask(3, 9)) << "nobody knows that one";
  EXPECT_EQ(owned.held(), 1U);
  EXPECT_THAT(owned.quarantined(), IsEmpty());
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(owned.held(), 0U);
  EXPECT_THAT(asked_to_stop(), ElementsAre(1U, 2U));
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_THAT(asked_to_stop(), IsEmpty());
  EXPECT_FALSE(ask(4));
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  EXPECT_THAT(grant->why_quarantined().to_string(), HasSubstr("did not confirm"));
  owned.take(1, RevokeConfirmed{1});
  owned.take(1, RevokeConfirmed{1});
  owned.take(4, RevokeConfirmed{1});
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  EXPECT_THAT(owned.take_settleable(), IsEmpty());
  EXPECT_THAT(owned.quarantined(), ElementsAre(grant));
  owned.take(2, RevokeConfirmed{1});
  EXPECT_THAT(owned.quarantined(), IsEmpty());
  EXPECT_TRUE(grant->wait_confirmed(Deadline::now()));
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_THAT(owned.take_settleable(), ElementsAre(grant));
  EXPECT_THAT(owned.take_settleable(), IsEmpty()) << "each once";
}

TEST_F(OwnedGrantsTest, OfThoseWhoseWritesMayStillArriveAreQuarantined) {
  const auto grant = make_grant(segment, 1, Rights::write);
  owned.add(grant);
  ask(1);
  owned.end(*grant, GrantEnd::revoked);
  owned.take(1, RevokeConfirmed{1, true});
  EXPECT_TRUE(grant->wait_confirmed(Deadline::now()));
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  EXPECT_THAT(grant->why_quarantined().to_string(), HasSubstr("may still arrive"));
}

TEST_F(OwnedGrantsTest, OfThoseWhoWentWithoutAWordAreQuarantined) {
  const auto grant = make_grant(segment, 1, Rights::write);
  owned.add(grant);
  ask(1);
  owned.link_down(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_THAT(asked_to_stop(), IsEmpty());
  EXPECT_TRUE(grant->wait_confirmed(Deadline::now())) << "nobody is left who could";
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  EXPECT_THAT(grant->why_quarantined().to_string(), HasSubstr("is gone"));
  EXPECT_THAT(owned.quarantined(), ElementsAre(grant));
  EXPECT_FALSE(grant->over());
}

TEST_F(OwnedGrantsTest, OfThoseWhoLeftInOrderAreFree) {
  const auto grant = make_grant(segment, 1, Rights::write);
  owned.add(grant);
  ask(1);
  owned.take(1, RevokeConfirmed{1});
  owned.link_down(1);
  EXPECT_EQ(owned.find(1), grant) << "it goes on for others";
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_TRUE(grant->over());
}

TEST_F(OwnedGrantsTest, ForReadingNeedNoConfirmation) {
  const auto grant = make_grant(segment, 1, Rights::read);
  owned.add(grant);
  ask(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_THAT(owned.quarantined(), IsEmpty());
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_FALSE(grant->over()) << "its keys stay open for who reads";
}

/// A process that does nothing until it is killed.
class Idler {
 public:
  Idler() : pid_(fork()) {
    while (pid_ == 0) pause();
  }
  ~Idler() { kill(); }
  std::shared_ptr<const Process> process() const {
    return std::make_shared<const Process>(Process::of(pid_).value());
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST_F(OwnedGrantsTest, ThatAreLentForReadingNeedConfirmationAllTheSame) {
  const Idler idler;
  const auto grant = make_grant(segment, 1, Rights::read);
  owned.add(grant);
  EXPECT_FALSE(grant->binding());
  EXPECT_TRUE(grant->hold(1, idler.process()));
  EXPECT_TRUE(grant->binding());
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  EXPECT_THAT(owned.lent(), ElementsAre(grant));
  owned.take(1, RevokeConfirmed{1});
  EXPECT_THAT(owned.lent(), IsEmpty());
  EXPECT_FALSE(grant->binding());
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

TEST_F(OwnedGrantsTest, ThatAreLentAreFreeOnceALostBorrowersProcessHasEnded) {
  Idler idler;
  GrantState::Parts parts;
  parts.segment = segment;
  parts.description.lease = 1;
  parts.description.rights = Rights::write;
  const auto grant = std::make_shared<GrantState>(std::move(parts));
  owned.add(grant);
  EXPECT_TRUE(grant->hold(1, idler.process()));
  owned.end(*grant, GrantEnd::revoked);
  owned.link_down(1);
  EXPECT_FALSE(grant->settleable()) << "he has it mapped, though his keys are closed";
  EXPECT_FALSE(grant->fence());
  EXPECT_FALSE(grant->wait_borrowers_ended(Deadline::now()));
  idler.kill();
  EXPECT_TRUE(grant->wait_borrowers_ended(soon()));
  owned.end_expired(Clock::now());
  EXPECT_THAT(owned.take_settleable(), ElementsAre(grant)) << "though nobody asks";
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_TRUE(grant->spent());
}

/// Of a rail whose provider chooses the keys.
struct Key final : providers::Registration {
  explicit Key(std::uint64_t& now) : now(now) {}
  void* descriptor() const noexcept override { return nullptr; }
  std::uint64_t key() const noexcept override { return now; }
  bool close() override { return true; }
  const Error* lost() const noexcept override { return why_lost ? &*why_lost : nullptr; }
  std::uint64_t& now;
  std::optional<Error> why_lost;
};

class OwnedGrantsOfARail : public OwnedGrantsTest {
 protected:
  static constexpr std::uint32_t rail = 3;
  std::uint64_t key = 100;
  Place place;
  Key* registered = nullptr;  // the last

  std::shared_ptr<GrantState> grant_with_key(Rights rights = Rights::write) {
    GrantState::Parts parts;
    parts.segment = segment;
    parts.description.lease = 1;
    parts.description.rights = rights;
    parts.description.place = place;
    parts.description.keys = {{rail, 0, key}};
    auto registration = std::make_unique<Key>(key);
    registered = registration.get();
    parts.keys.push_back(std::make_shared<ExtentKey>(rail, Range{0, 4096}, 0, ExtentKey::Use::own,
                                                     std::move(registration)));
    parts.unfenced = {rail};
    auto grant = std::make_shared<GrantState>(std::move(parts));
    owned.add(grant);
    return grant;
  }
  OwnedGrants::Renewed reopen(std::uint64_t new_key, bool opened = true) {
    owned.rail_closes(rail);
    key = new_key;
    return owned.rail_opened(rail, opened);
  }
};

TEST_F(OwnedGrantsOfARail, TellTheirHoldersOfNewKeysAndThoseWhoComeLater) {
  const auto grant = grant_with_key();
  EXPECT_TRUE(ask(1));
  const auto renewed = reopen(200);
  ASSERT_EQ(renewed.size(), 1U);
  ASSERT_EQ(renewed.at(1).size(), 1U);
  EXPECT_EQ(renewed.at(1).front().lease, 1U);
  EXPECT_EQ(renewed.at(1).front().rail, rail);
  EXPECT_EQ(renewed.at(1).front().key, 200U);
  EXPECT_EQ(grant->current().keys.front().key, 200U);
  EXPECT_EQ(grant->description().keys.front().key, 100U);
  owned.take(2, GrantQuery{7, 1});
  ASSERT_EQ(std::get<GrantStatus>(told.back().second).renewed.size(), 1U);
  EXPECT_EQ(std::get<GrantStatus>(told.back().second).renewed.front().key, 200U);
  EXPECT_TRUE(reopen(300, false).empty()) << "there are none until it can be opened";
}

TEST_F(OwnedGrantsOfARail, TellThatItHasLostTheMemory) {
  place.kind = MemoryKind::device;
  const auto grant = grant_with_key();
  EXPECT_TRUE(ask(1));
  registered->why_lost = Error(Code::fabric_failed, "no room");
  const auto renewed = reopen(200);
  ASSERT_EQ(renewed.at(1).size(), 1U);
  EXPECT_EQ(renewed.at(1).front().why_lost, "no room");
  EXPECT_THAT(grant->current().keys, IsEmpty());
  ASSERT_EQ(grant->current().bounced.size(), 1U);
  EXPECT_EQ(grant->current().bounced.front().rail, rail);
  EXPECT_EQ(grant->current().bounced.front().why, "no room");
  owned.take(2, GrantQuery{7, 1});
  ASSERT_EQ(std::get<GrantStatus>(told.back().second).renewed.size(), 1U);
  EXPECT_EQ(std::get<GrantStatus>(told.back().second).renewed.front().why_lost, "no room");
}

/// A holder that went posted to the rails that it was paired with, and to no other.
TEST_F(OwnedGrantsOfARail, AreFreeOfThoseThatPostedToOtherRails) {
  const auto grant = grant_with_key();
  owned.take(1, GrantQuery{7, 1}, GrantState::RailNumbers{rail + 1});
  owned.link_down(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_FALSE(grant->quarantined());
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

TEST_F(OwnedGrantsOfARail, AreNotFreeOfThoseThatPostedToIt) {
  const auto grant = grant_with_key();
  owned.take(1, GrantQuery{7, 1}, GrantState::RailNumbers{rail + 1});
  owned.take(2, GrantQuery{8, 1}, GrantState::RailNumbers{rail});
  owned.link_down(1);
  owned.link_down(2);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_TRUE(grant->quarantined());
  EXPECT_EQ(grant->settle(), Revoked::quarantined);
  reopen(200);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

/// Late reads do no harm to memory that stays.
TEST_F(OwnedGrantsOfARail, AreQuarantinedForReadersWhenTheSegmentIsReleased) {
  const auto grant = grant_with_key(Rights::read);
  ask(1);
  owned.link_down(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_FALSE(grant->quarantined());
  segment->users().close();
  EXPECT_TRUE(grant->quarantined());
  reopen(200);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_FALSE(grant->quarantined());
}

/// Whatever was posted with the key went with the rail, and the key has not come back.
TEST_F(OwnedGrantsOfARail, ThatHasLostTheMemoryAreFreeWithoutAWord) {
  const auto grant = grant_with_key();
  ask(1);
  registered->why_lost = Error(Code::fabric_failed, "no room");
  reopen(200);
  owned.link_down(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

TEST_F(OwnedGrantsOfARail, AreFreeOnceItWasClosedAfterTheirEnd) {
  const auto grant = grant_with_key();
  ask(1);
  owned.link_down(1);
  reopen(200);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(grant->settle(), Revoked::quarantined) << "the key was open since";
  EXPECT_TRUE(reopen(300).empty());
  EXPECT_THAT(owned.take_settleable(), ElementsAre(grant));
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

TEST_F(OwnedGrantsOfARail, AreSpentOnceTheirKeysAreClosedAsWell) {
  const auto grant = grant_with_key(Rights::read);
  ask(1);
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_FALSE(grant->spent()) << "somebody may still read";
  owned.take(1, RevokeConfirmed{1});
  EXPECT_TRUE(grant->over());
  EXPECT_FALSE(grant->spent()) << "nobody has closed the key yet";
  EXPECT_THAT(owned.take_settleable(), ElementsAre(grant));
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
  EXPECT_TRUE(grant->spent());
}

TEST_F(OwnedGrantsOfARail, AreFreeAlsoIfItCanNotBeOpened) {
  const auto grant = grant_with_key();
  ask(1);
  owned.link_down(1);
  owned.end(*grant, GrantEnd::revoked);
  reopen(200, false);
  EXPECT_EQ(grant->settle(), Revoked::quiescent);
}

TEST_F(OwnedGrantsOfARail, ThatEndWhileItIsClosedAreNotFree) {
  const auto grant = grant_with_key();
  ask(1);
  owned.link_down(1);
  owned.rail_closes(rail);
  owned.end(*grant, GrantEnd::revoked);
  owned.rail_opened(rail, true);
  EXPECT_EQ(grant->settle(), Revoked::quarantined) << "its key has come back";
}

TEST_F(OwnedGrantsTest, EndWithTheirTime) {
  const auto grant = grant_for(1h);
  owned.add(make_grant(segment, 2));
  owned.add(grant);
  EXPECT_TRUE(ask(1));
  EXPECT_GT(left, 59min);
  EXPECT_LE(left, 1h);
  EXPECT_TRUE(ask(1, 2));
  EXPECT_EQ(left, unlimited);
  owned.end_expired(Clock::now());
  EXPECT_NE(owned.find(1), nullptr);
  owned.end_expired(grant->expires());
  EXPECT_THAT(asked_to_stop(), ElementsAre(1U));
  EXPECT_EQ(owned.find(1), nullptr);
  EXPECT_NE(owned.find(2), nullptr);
  EXPECT_THAT(ended, ElementsAre(1U)) << "nobody finds it by name any more";
  EXPECT_THAT(ends, ElementsAre(GrantEnd::expired));
  owned.end(*grant, GrantEnd::revoked);
  EXPECT_THAT(ends, ElementsAre(GrantEnd::expired)) << "it ends once";
  EXPECT_EQ(grant->settle(), Revoked::quarantined) << "the end of its time frees no memory";
  EXPECT_THAT(owned.take_settleable(), IsEmpty());
  owned.take(1, RevokeConfirmed{1});
  EXPECT_THAT(owned.take_settleable(), ElementsAre(grant)) << "though nobody asks";
}

TEST_F(OwnedGrantsTest, RenewedOnesEndLaterAndTheirHoldersAreTold) {
  const auto grant = grant_for(1h);
  owned.add(grant);
  const auto first_end = grant->expires();
  EXPECT_TRUE(ask(3));
  EXPECT_TRUE(owned.renew(*grant, 1min)) << "it is never shortened";
  EXPECT_EQ(grant->expires(), first_end);
  EXPECT_TRUE(owned.renew(*grant, 2h));
  EXPECT_GT(grant->expires(), first_end);
  ASSERT_EQ(told.size(), 2U);
  for (const auto& [link, notice] : std::exchange(told, {})) {
    EXPECT_EQ(link, 3U);
    EXPECT_EQ(std::get<LeaseRenewed>(notice).lease, 1U);
  }
  owned.end_expired(first_end);
  EXPECT_EQ(owned.find(1), grant);
  EXPECT_TRUE(ask(3));
  EXPECT_GT(left, 119min);
  owned.end_expired(grant->expires());
  EXPECT_THAT(asked_to_stop(), ElementsAre(3U));
  EXPECT_THAT(ends, ElementsAre(GrantEnd::expired));
  EXPECT_FALSE(owned.renew(*grant, 3h));
}

TEST_F(OwnedGrantsTest, ForgottenWhileTheLastOneConfirmsLeaveNothingBehind) {
  const std::weak_ptr<GrantState> gone = [&] {
    const auto grant = make_grant(segment, 1, Rights::write);
    owned.add(grant);
    ask(1);
    owned.end(*grant, GrantEnd::revoked);
    owned.take(1, RevokeConfirmed{1});
    owned.forget(*grant);
    owned.take(1, RevokeConfirmed{1});
    return grant;
  }();
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace weft::core::test
