// Which set holds which step, and who reads it.
#include "weights/versions.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weights/note.hpp"

namespace weft::weights::test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<Versions> versions(std::size_t sets, const std::string& file = {}) {
  return std::make_shared<Versions>(sets, file, [] {});
}
/// The set that begin() gives; -1 if readers have it.
int begun(Versions& versions) {
  const auto set = versions.begin();
  EXPECT_TRUE(set) << set.error().to_string();
  return *set ? static_cast<int>(**set) : -1;
}

TEST(Versions, TwoSetsTakeTurns) {
  const auto both = versions(2);
  EXPECT_EQ(both->step(), std::nullopt);
  EXPECT_EQ(both->pin().error().code(), Code::unavailable);
  EXPECT_EQ(begun(*both), 0);
  ASSERT_TRUE(both->commit(1));
  EXPECT_EQ(begun(*both), 1);
  EXPECT_EQ(both->step(), 1U) << "step 1 is read while step 2 comes";
  EXPECT_EQ(both->pin()->set, 0U);
  ASSERT_TRUE(both->commit(2));
  EXPECT_EQ(both->pin()->set, 1U);
  EXPECT_EQ(begun(*both), 0);
}

TEST(Versions, AVoidStepChangesNothing) {
  const auto both = versions(2);
  begun(*both);
  ASSERT_TRUE(both->commit(1));
  begun(*both);
  both->give_up("why not");
  EXPECT_EQ(both->step(), 1U);
  EXPECT_EQ(both->standing().why, "why not");
  EXPECT_EQ(begun(*both), 1) << "not the one that holds step 1";
}

TEST(Versions, NothingIsReadInDoubt) {
  const auto both = versions(2);
  begun(*both);
  ASSERT_TRUE(both->commit(1));
  begun(*both);
  both->doubt();
  EXPECT_EQ(both->standing().state, StepState::in_doubt);
  EXPECT_FALSE(both->pin());
  both->give_up("void");
  EXPECT_EQ(both->step(), 1U);
  begun(*both);
  both->doubt();
  both->lose();
  both->give_up("void");
  EXPECT_EQ(both->standing().state, StepState::unusable) << "step 1 may be too old";
  begun(*both);
  ASSERT_TRUE(both->commit(3));
  EXPECT_EQ(both->step(), 3U);
}

TEST(Versions, AReaderKeepsItsSet) {
  const auto both = versions(2);
  begun(*both);
  ASSERT_TRUE(both->commit(1));
  auto pinned = both->pin();
  auto again = both->pin();
  begun(*both);
  ASSERT_TRUE(both->commit(2));
  EXPECT_EQ(begun(*both), -1);
  pinned->pin.reset();
  EXPECT_EQ(begun(*both), -1);
  again->pin.reset();
  EXPECT_EQ(begun(*both), 0);
}

TEST(Versions, OneSetIsUnusableWhileItIsWritten) {
  const auto one = versions(1);
  EXPECT_EQ(begun(*one), 0);
  ASSERT_TRUE(one->commit(1));
  EXPECT_EQ(begun(*one), 0);
  EXPECT_EQ(one->standing().state, StepState::unusable);
  one->give_up("void");
  EXPECT_EQ(one->standing().state, StepState::unusable);
  begun(*one);
  ASSERT_TRUE(one->commit(2));
  EXPECT_EQ(one->step(), 2U);
}

TEST(Versions, OneSetThatWasNotWrittenYetIsReadAgain) {
  const auto one = versions(1);
  begun(*one);
  ASSERT_TRUE(one->commit(1));
  const auto pinned = one->pin();
  EXPECT_EQ(begun(*one), -1);
  EXPECT_FALSE(one->pin()) << "readers would keep the writer waiting for ever";
  one->give_up("a reader did not end");
  EXPECT_EQ(one->step(), 1U);
}

TEST(Versions, AFileSaysWhatIsUsableAfterACrash) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("weights-" + std::to_string(getpid()));
  const auto kept = [&] {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return line;
  };
  const auto one = versions(1, file);
  begun(*one);
  EXPECT_EQ(kept(), "unusable");
  ASSERT_TRUE(one->commit(7));
  EXPECT_EQ(kept(), "step 7 set 0");
  std::filesystem::remove(file);
  EXPECT_FALSE(versions(1, "/nowhere/at/all")->begin());
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(versions(1, file)->begin()) << "it would take the place of what is no file";
  EXPECT_TRUE(std::filesystem::is_fifo(file));
  std::filesystem::remove(file);
}

TEST(Versions, AWaitEnds) {
  const auto both = versions(2);
  EXPECT_EQ(both->wait(1, Deadline::now()).error().code(), Code::timed_out);
  begun(*both);
  ASSERT_TRUE(both->commit(4));
  EXPECT_TRUE(both->wait(3, Deadline::now()));
  both->close();
  EXPECT_EQ(both->wait(5, Deadline::in(60s)).error().code(), Code::closed);
}

TEST(WeightsNote, GoesAndComes) {
  const Note note{.kind = NoteKind::plan,
                  .round = {1, 2},
                  .step = 3,
                  .text = "text",
                  .description = {.name = "rank", .shards = {{.name = "w", .shape = {2, 3}}}},
                  .members = {{1, "address"}},
                  .sources = {{"address", 7, 2}},
                  .sends = {{4, 8, true, {{.dst_offset = 5, .length = 6}}}}};
  const Blob bytes = encode(note);
  const auto back = decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode(*back), bytes);
  EXPECT_EQ(back->description.shards[0].shape, (Dims{2, 3}));
  EXPECT_EQ(back->sends[0].pieces, note.sends[0].pieces);
}

TEST(WeightsNote, WhatIsCutOrChangedIsRefusedOrRead) {
  const Blob bytes = encode({.kind = NoteKind::stand, .text = "why", .sources = {{"a", 1, 2}}});
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode(Bytes(bytes).first(length))) << length;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Blob changed = bytes;
    changed[at] = std::byte{0xff};
    decode(changed);  // Must not crash nor take memory.
  }
}

}  // namespace
}  // namespace weft::weights::test
