// A program with tests of many subjects runs those that it is asked for.
#pragma once

#include <string_view>

namespace weft::test {

/// Leaves out all tests but those of the subjects (names with commas between them), besides what
/// the filter leaves out already. The tests of a subject lie in a file SUBJECT_test.cpp. After
/// testing::InitGoogleTest(); throws std::invalid_argument where a subject has no tests.
void run_subjects(std::string_view subjects);

}  // namespace weft::test
