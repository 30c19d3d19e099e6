// Slots under numbers that are used once.
#include "transport/slot_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace weft::core {
namespace {

struct Slot {
  std::uint64_t number = 0;
  int value = 0;
};

TEST(SlotTable, NumbersOfReleasedSlotsFindNothing) {
  SlotTable<Slot> table;
  Slot& first = table.take();
  const std::uint64_t number = first.number;
  EXPECT_NE(number, 0U);
  EXPECT_EQ(table.find(number), &first);
  table.release(first);
  EXPECT_EQ(table.find(number), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
  Slot& again = table.take();
  EXPECT_EQ(&again, &first) << "the slot is used again";
  EXPECT_NE(again.number, number);
  EXPECT_EQ(table.find(number), nullptr);
}

TEST(SlotTable, AgreesWithAMap) {
  SlotTable<Slot> table;
  std::map<std::uint64_t, int> model;
  std::vector<std::uint64_t> gone;
  std::mt19937 random(11);
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random() % 2 == 0) {
      Slot& slot = table.take();
      slot.value = step;
      ASSERT_TRUE(model.emplace(slot.number, step).second) << "a number was used twice";
    } else {
      const auto any =
          std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
      table.release(*table.find(any->first));
      gone.push_back(any->first);
      model.erase(any);
    }
    ASSERT_EQ(table.in_use(), model.size());
  }
  for (const auto& [number, value] : model) ASSERT_EQ(table.find(number)->value, value);
  for (const std::uint64_t number : gone) ASSERT_EQ(table.find(number), nullptr);
  const auto even = table.select([](const Slot& slot) { return slot.value % 2 == 0; });
  std::size_t expected = 0;
  for (const auto& [number, value] : model) expected += value % 2 == 0 ? 1 : 0;
  EXPECT_EQ(even.size(), expected);
}

}  // namespace
}  // namespace weft::core
