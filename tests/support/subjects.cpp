#include "subjects.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

namespace weft::test {
namespace {

constexpr std::string_view ending = "_test";

std::set<std::string> names_in(std::string_view list) {
  std::set<std::string> names;
  std::istringstream all{std::string(list)};
  for (std::string name; std::getline(all, name, ',');) names.insert(name);
  return names;
}

/// Tests of a suite lie in one file.
std::string subject_of(const testing::TestSuite& suite) {
  std::string name = std::filesystem::path(suite.GetTestInfo(0)->file()).stem().string();
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

}  // namespace

void run_subjects(std::string_view subjects) {
  const std::set<std::string> wanted = names_in(subjects);
  std::set<std::string> missing = wanted;
  std::string others;
  const auto& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    const std::string subject = subject_of(suite);
    missing.erase(subject);
    if (!wanted.contains(subject)) others += std::string(":") + suite.name() + ".*";
  }
  if (!missing.empty()) throw std::invalid_argument("no tests of " + *missing.begin());
  if (others.empty()) return;
  // What follows the filter's "-" is left out.
  std::string& filter = testing::GTEST_FLAG(filter);
  filter += (filter.find('-') == std::string::npos ? "-" : ":") + others.substr(1);
}

}  // namespace weft::test
