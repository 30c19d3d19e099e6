// Frames against all that may be done to them.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "fixture.hpp"

namespace weft::core::test {
namespace {

std::vector<Blob> all_frames() {
  const Lent lent{Blob(64), 1, 2};
  const ControlMessage messages[] = {
      Hello{introduce("name", 3), {4, 5, "boot", "weft-1", {}}},
      Proof{.proven = true},
      Proof{.reason = "no"},
      Choice{},
      Duplicate{1},
      Lost{},
      Ready{},
      Ready{{{255, "no slot is free"}, {0, ""}}},
      Refusal{Code::stale, "old"},
      Heartbeat{},
      Goodbye{"bye", 3},
      Notice(LookupRequest{1, "grant"}),
      Notice(LookupAbandoned{1}),
      Notice(LookupReply{1, Blob(100)}),
      Notice(SignalFailed{1, Code::internal, "why"}),
      Notice(RevokeRequest{2}),
      Notice(RevokeConfirmed{1}),
      Notice(LeaseRenewed{1}),
      Notice(GrantQuery{2, 3}),
      Notice(GrantStatus{4, true, unlimited, {{1, 2, 9, 3, 4}}}),
      Notice(GrantStatus{4, true, unlimited, {}, lent, ""}),
      Notice(FallbackMessage{Blob(100)}),
      Notice(FallbackTaken{}),
      Notice(CheckRequest{5, 6, {{1, 2}, {3, 4}}}),
      Notice(CheckReply{5, Code{}, 7}),
      Notice(RailMoved{1, Blob(16), {{1, 2, 9, 3, 4}, {5, 6, 10, 7, 8}}}),
      Notice(RailMoved{1, {}, {{1, 2, 9, 0, 4, "no room for keys"}}}),
      Notice(RailFollowed{1}),
      Notice(KeysReplaced{3, {{1, 2, 9, 3, 4}}}),
      Notice(KeysDrained{3}),
      Notice(CreditsGivenBack{28}),
      Notice(BounceCredits{BounceCredits::Step::given, 1, 2, 4})};
  std::vector<Blob> frames;
  for (const ControlMessage& message : messages) {
    frames.push_back(encode(message).value());
    const Result<ControlMessage> read = decode(frames.back());
    EXPECT_TRUE(read) << read.error().message();
    EXPECT_TRUE(read && read->index() == message.index());
  }
  return frames;
}

void set_size(Blob& frame) {
  const auto size = static_cast<std::uint32_t>(frame.size() - limits::frame_header);
  std::memcpy(frame.data(), &size, sizeof size);
}

TEST(Codec, EveryMessageIsReadBack) {
  EXPECT_EQ(all_frames().size(), 32u);
}

TEST(Codec, AConfirmationTellsOfStrays) {
  for (const bool strays : {false, true}) {
    const auto read = decode(encode(Notice(RevokeConfirmed{7, strays})).value());
    ASSERT_TRUE(read) << read.error().message();
    const auto& confirmed = std::get<RevokeConfirmed>(std::get<Notice>(*read));
    EXPECT_EQ(confirmed.lease, 7u);
    EXPECT_EQ(confirmed.strays, strays);
  }
}

TEST(Codec, ASocketsNameStaysInItsFolder) {
  HostClaim claim{4, 5, "boot", "weft-0123abcd-9", {std::byte{7}}};
  const auto read = decode(encode(Hello{introduce("a"), claim}).value());
  ASSERT_TRUE(read) << read.error().message();
  const HostClaim& told = std::get<Hello>(*read).host;
  EXPECT_EQ(told.boot, claim.boot);
  EXPECT_EQ(told.socket, claim.socket);
  EXPECT_EQ(told.pass, claim.pass);
  for (const std::string& name : {std::string("../weft"), std::string("/weft"), std::string("a.b"),
                                  std::string("a\0b", 3), std::string(limits::socket + 1, 'a')}) {
    claim.socket = name;
    EXPECT_FALSE(decode(encode(Hello{introduce("a"), claim}).value())) << name;
  }
}

TEST(Codec, TruncationsAreRefused) {
  for (const Blob& frame : all_frames())
    for (std::size_t size = 0; size < frame.size(); ++size) {
      Blob cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(decode(cut)) << "a header that lies";
      if (size < limits::frame_header) continue;
      set_size(cut);
      (void)decode(cut);  // may happen to be whole; must not read beyond
    }
}

TEST(Codec, MutationsDoNoHarm) {
  std::mt19937 random(42);
  std::size_t refused = 0, tried = 0;
  for (const Blob& frame : all_frames())
    for (int i = 0; i < 5000; ++i, ++tried) {
      Blob bad = frame;
      for (auto n = random() % 6 + 1; n > 0; --n) {
        const std::size_t at = limits::frame_header + random() % (bad.size() - 4);
        const auto kind = random() % 3;
        bad[at] = kind == 0   ? std::byte{0xff}
                  : kind == 1 ? static_cast<std::byte>(random())
                              : bad[at] ^ static_cast<std::byte>(1u << random() % 8);
      }
      const Result<ControlMessage> read = decode(bad);
      if (read) continue;
      ++refused;
      EXPECT_EQ(read.error().code(), Code::protocol_mismatch);
    }
  EXPECT_GT(refused, tried / 4);
}

TEST(Codec, NoiseIsRefused) {
  std::mt19937 random(43);
  for (int i = 0; i < 20000; ++i) {
    Blob noise(limits::frame_header + random() % 200);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    set_size(noise);
    EXPECT_FALSE(decode(noise));
  }
}

TEST(Codec, StringsFromOutsideAreHarmlessInLogs) {
  const Result<ControlMessage> read = decode(encode(Goodbye{"\x1b[31mred\r\n"}).value());
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Goodbye>(*read).reason, "?[31mred??");
}

TEST(Codec, LostKeysArriveBesideRenewedOnes) {
  const std::vector<RenewedKey> keys = {{1, 2, 9, 3, 4}, {5, 6, 10, 0, 8, "no\nroom"}};
  const auto expect_both = [](const std::vector<RenewedKey>& got) {
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(std::tie(got[0].lease, got[0].rail, got[0].from, got[0].epoch_key),
              std::tuple(5U, 6U, 10U, 8U));
    EXPECT_EQ(got[0].why_lost, "no?room");
    EXPECT_EQ(std::tie(got[1].lease, got[1].rail, got[1].from, got[1].key, got[1].epoch_key),
              std::tuple(1U, 2U, 9U, 3U, 4U));
    EXPECT_FALSE(got[1].why_lost);
  };
  const auto moved = decode(encode(Notice(RailMoved{1, {}, keys})).value());
  ASSERT_TRUE(moved);
  expect_both(std::get<RailMoved>(std::get<Notice>(*moved)).renewed);
  const auto status = decode(encode(Notice(GrantStatus{1, true, unlimited, keys})).value());
  ASSERT_TRUE(status);
  expect_both(std::get<GrantStatus>(std::get<Notice>(*status)).renewed);
}

TEST(Codec, OneNoticeTellsOfSoManyLostKeysAndNoMore) {
  std::vector<RenewedKey> keys(limits::lost_keys, {1, 2, 9, 0, 0, "no room"});
  const auto most = encode(Notice(RailMoved{1, {}, keys}));
  ASSERT_TRUE(most);
  EXPECT_TRUE(decode(*most));
  keys.push_back(keys.back());
  EXPECT_FALSE(encode(Notice(RailMoved{1, {}, keys})));
  EXPECT_FALSE(encode(Notice(KeysReplaced{1, keys})));
  const auto replaced = decode(encode(Notice(KeysReplaced{7, {{1, 2, 9, 3, 4}}})).value());
  ASSERT_TRUE(replaced);
  EXPECT_EQ(std::get<KeysReplaced>(std::get<Notice>(*replaced)).request, 7U);
  EXPECT_EQ(std::get<KeysReplaced>(std::get<Notice>(*replaced)).renewed.front().from, 9U);
}

TEST(Codec, AChecksRangesArriveInTheirOrder) {
  const std::vector<Range> ranges = {{7, 1}, {3, 2}, {std::uint64_t{1} << 60, 5}};
  const auto read = decode(encode(Notice(CheckRequest{8, 9, ranges})).value());
  ASSERT_TRUE(read);
  const auto& check = std::get<CheckRequest>(std::get<Notice>(*read));
  EXPECT_EQ(check.request, 8U);
  EXPECT_EQ(check.lease, 9U);
  ASSERT_EQ(check.ranges.size(), ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(check.ranges[i].offset, ranges[i].offset);
    EXPECT_EQ(check.ranges[i].length, ranges[i].length);
  }
  EXPECT_FALSE(decode(encode(Notice(CheckRequest{8, 9, {}})).value())) << "nothing to check";
}

TEST(Codec, RailsThatAreOut) {
  const auto read = decode(encode(Ready{{{3, "no slot is free"}}}).value());
  ASSERT_TRUE(read);
  const auto& out = std::get<Ready>(*read).out;
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].rail, 3u);
  EXPECT_EQ(out[0].why, "no slot is free");
  EXPECT_FALSE(decode(encode(Ready{{{limits::rails, "far too many"}}}).value()));
  EXPECT_FALSE(decode(encode(Ready{std::vector<RailOut>(limits::rails + 1)}).value()));
}

TEST(Codec, TheLastCodeArrives) {
  const auto read = decode(encode(Refusal{last_code, ""}).value());
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Refusal>(*read).code, last_code);
}

TEST(Codec, UnknownCodesBecomeRemoteFailed) {
  for (const int code : {0, static_cast<int>(last_code) + 1, 200}) {
    const auto read = decode(encode(Refusal{static_cast<Code>(code), ""}).value());
    ASSERT_TRUE(read);
    EXPECT_EQ(std::get<Refusal>(*read).code, Code::remote_failed);
  }
}

TEST(Codec, BoundsHoldOnTheSendingSide) {
  EXPECT_FALSE(encode(Hello{introduce(std::string(256, 'x')), {}}));
  EXPECT_FALSE(encode(Notice(LookupReply{1, Blob(limits::grant + 1)})));
  EXPECT_FALSE(encode(Notice(CheckRequest{1, 2, std::vector<Range>(limits::checked_ranges + 1)})));
  EXPECT_FALSE(encode(UnknownMessage{}));
  const Blob largest = encode(Notice(LookupReply{1, Blob(limits::grant)})).value();
  EXPECT_LE(largest.size(), limits::frame + limits::frame_header);
  EXPECT_TRUE(decode(largest));
}

}  // namespace
}  // namespace weft::core::test
