// Gives files, or all files in folders, to a target: the corpus as a test for every compiler.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "target.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(place))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) return false;
  // Told before: where it ends the program, the last line names the file.
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i)
    for (const fs::path& file : files_in(argv[i])) {
      if (!replay(file)) {
        std::fprintf(stderr, "can't read %s\n", file.c_str());
        return 1;
      }
      ++replayed;
    }
  if (replayed == 0) std::fputs("usage: fuzz-TARGET FILE-OR-FOLDER..., with files in it\n", stderr);
  return replayed == 0 ? 1 : 0;
}
