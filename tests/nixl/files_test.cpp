// Files as NIXL's users register them, by path and by descriptor, and how they are found.
#include "files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent.hpp"
#include "base/descriptor.hpp"
#include "folder.hpp"

namespace weft::nixl::test {
namespace {

using abi::MemoryType;
using abi::Operation;
using core::Descriptor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using weft::test::contents_of;
using weft::test::Folder;
using weft::test::holds;
using weft::test::pattern;
using weft::test::put;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

class Files : public testing::TestWithParam<const char*> {
 protected:
  Agent a{"a", GetParam()}, b{"b", GetParam()};
  const Folder folder;

  void meet() {
    ASSERT_EQ(a.load(b), Status::success);
    ASSERT_EQ(b.load(a), Status::success);
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, Files, testing::Values("tcp", "shm"),
                         [](const auto& info) { return std::string(info.param); });

/// A file of the test's, open.
class OpenFile {
 public:
  explicit OpenFile(std::size_t bytes, std::uint64_t seed) {
    char path[] = "/tmp/weft-nixl-XXXXXX";
    fd_ = mkstemp(path);
    unlink(path);
    std::vector<std::byte> content(bytes);
    weft::test::fill(content, seed);
    EXPECT_EQ(pwrite(fd_, content.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }
  std::size_t size() const {
    struct stat status {};
    EXPECT_EQ(fstat(fd_, &status), 0);
    return static_cast<std::size_t>(status.st_size);
  }
  std::vector<std::byte> content(std::size_t bytes, off_t at = 0) const {
    std::vector<std::byte> content(bytes);
    EXPECT_EQ(pread(fd_, content.data(), bytes, at), static_cast<ssize_t>(bytes));
    return content;
  }

 private:
  int fd_;
};

TEST_P(Files, AreMemory) {
  constexpr std::size_t bytes = 3 * mib + 17, from = 4 * kib;
  const OpenFile file(bytes + from, 1);
  Buffer& here = a.add(bytes, 2);
  const Buffer& there = b.add_file(file.fd(), from, bytes);
  meet();
  const std::vector<Piece> all = {{&here, 0, &there, 0, bytes}};
  Handle read(a, b, Operation::read, all);
  ASSERT_EQ(read.prepared(), Status::success);
  read.post("read");
  ASSERT_EQ(read.wait(), Status::success);
  EXPECT_TRUE(holds(here.bytes, 1, from));
  EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", "read")));
  weft::test::fill(here.bytes, 3);
  Handle write(a, b, Operation::write, all);
  write.post("written");
  EXPECT_THAT(b.notifications(), ElementsAre(Pair("a", "written")));
  EXPECT_TRUE(holds(file.content(bytes, from), 3));
  ASSERT_EQ(write.wait(), Status::success);
  EXPECT_TRUE(holds(file.content(from), 1)) << "what was not registered";
}

/// As POSIX is used: pages of a file within one agent; the file grows as it is written.
TEST_P(Files, WithinAnAgent) {
  constexpr std::size_t page = 64 * kib, pages = 16;
  const OpenFile file(page, 1);
  Buffer &from = a.add(pages * page, 2), &to = a.add(pages * page, 3);
  Buffer& there = a.add_file(file.fd(), 0, pages * page);
  EXPECT_EQ(file.size(), page) << "longer by being registered";
  std::vector<Piece> out, back, by_file;
  for (std::size_t i = 0; i < pages; ++i) {
    out.push_back({&from, i * page, &there, (i * 7 + 3) % pages * page, page});
    back.push_back({&to, i * page, &there, (i * 7 + 3) % pages * page, page});
    by_file.push_back({&there, i * page, &from, i * page, page});
  }
  Handle write(a, a, Operation::write, out);
  write.post("written");
  ASSERT_EQ(write.wait(), Status::success);
  EXPECT_THAT(a.notifications(), ElementsAre(Pair("a", "written")));
  Handle read(a, a, Operation::read, back);
  for (int again = 0; again < 2; ++again) {
    weft::test::fill(to.bytes, 3);
    read.post();
    ASSERT_EQ(read.wait(), Status::success);
    EXPECT_TRUE(holds(to.bytes, 2));
  }
  // The file as the local side.
  Handle read_in(a, a, Operation::read, by_file);
  read_in.post();
  ASSERT_EQ(read_in.wait(), Status::success);
  EXPECT_TRUE(holds(file.content(pages * page), 2));
  weft::test::fill(to.bytes, 3);
  EXPECT_EQ(a.deregister(there), Status::success);
}

/// Within an agent: one that is cut off, and one that goes while libnixl has a request for it.
TEST_P(Files, ThatGoFromUnderARequest) {
  constexpr std::size_t bytes = 256 * kib;
  const OpenFile file(bytes, 1);
  Buffer& here = a.add(bytes, 2);
  Buffer& there = a.add_file(file.fd(), 0, bytes);
  Handle read(a, a, Operation::read, {{&here, 0, &there, 0, bytes}});
  ASSERT_EQ(read.prepared(), Status::success);
  ASSERT_EQ(ftruncate(file.fd(), 5000), 0);
  read.post("never");
  EXPECT_EQ(read.wait(), Status::backend);
  ASSERT_EQ(a.backend().genNotif("a", "later"), Status::success);
  EXPECT_THAT(a.notifications(), ElementsAre(Pair("a", "later")));
  Handle first(a, a, Operation::read, {{&here, 0, &there, 0, 5000}});
  first.post();
  EXPECT_EQ(first.wait(), Status::success);
  EXPECT_EQ(a.deregister(there), Status::success);
  EXPECT_EQ(first.post(), Status::backend);
  EXPECT_TRUE(first.release());
}

/// A request is let go while the drive works at it.
TEST_P(Files, AreReleasedUnderWay) {
  constexpr std::size_t bytes = 8 * mib;
  const OpenFile file(bytes, 1);
  Buffer& here = a.add(bytes, 2);
  Buffer& there = a.add_file(file.fd(), 0, bytes);
  for (int i = 0; i < 10; ++i) {
    Handle write(a, a, Operation::write, {{&here, 0, &there, 0, bytes}});
    write.post();
    EXPECT_TRUE(write.release());
  }
  EXPECT_EQ(a.deregister(there), Status::success);
  weft::test::fill(here.bytes, 3);
  const auto content = file.content(bytes);
  for (std::size_t at = 0; at < bytes; at += 4096)
    ASSERT_TRUE(holds(std::span(content).subspan(at, 4096), 1, at) ||
                holds(std::span(content).subspan(at, 4096), 2, at))
        << at;
}

Status move(const Agent& a, const Agent& b, Operation operation, const std::vector<Piece>& pieces) {
  Handle handle(a, b, operation, pieces);
  if (handle.prepared() != Status::success) return handle.prepared();
  handle.post();
  return handle.wait();
}

/// As HiCache of SGLang does it: numbers from a counter, which meet descriptors of this process.
TEST_P(Files, AreNamedByPath) {
  constexpr std::size_t bytes = 256 * kib + 5;
  const OpenFile innocent(bytes, 1);
  const auto number = static_cast<std::uint64_t>(innocent.fd());
  Buffer& here = a.add(bytes, 2);
  for (const char* modes : {"", ",direct", ",sync", ",direct,sync"}) {
    const std::string path = folder.at(std::string("page:0") + modes);
    Buffer& page = a.add_file(std::string("rw,create") + modes + ":" + path, number, bytes);
    EXPECT_EQ(std::filesystem::file_size(path), 0U) << "longer by being registered";
    const std::vector<Piece> all = {{&here, 0, &page, 0, bytes}};
    EXPECT_EQ(move(a, a, Operation::read, all), Status::backend) << "nothing is written yet";
    weft::test::fill(here.bytes, 2);
    ASSERT_EQ(move(a, a, Operation::write, all), Status::success);
    EXPECT_EQ(a.deregister(page), Status::success);
    EXPECT_TRUE(holds(contents_of(path), 2));
    Buffer& source = a.add_file(std::string("ro") + modes + ":" + path, number, bytes);
    weft::test::fill(here.bytes, 3);
    const std::vector<Piece> back = {{&here, 0, &source, 0, bytes}};
    EXPECT_EQ(move(a, a, Operation::write, back), Status::not_allowed);
    ASSERT_EQ(move(a, a, Operation::read, back), Status::success);
    EXPECT_TRUE(holds(here.bytes, 2));
    EXPECT_EQ(a.deregister(source), Status::success);
  }
  EXPECT_TRUE(holds(innocent.content(bytes), 1));
}

TEST_P(Files, NamedByPathAreMemoryOfOtherAgents) {
  constexpr std::size_t bytes = mib + 5;
  const std::string path = folder.at("page"), read_only = folder.at("read-only");
  put(read_only, pattern(bytes, 4));
  Buffer& here = a.add(bytes, 2);
  const Buffer& there = b.add_file("rw,create:" + path, 1, bytes);
  const Buffer& source = b.add_file("ro:" + read_only, 2, bytes);
  meet();
  ASSERT_EQ(move(a, b, Operation::write, {{&here, 0, &there, 0, bytes}}), Status::success);
  EXPECT_TRUE(holds(contents_of(path), 2));
  ASSERT_EQ(move(a, b, Operation::read, {{&here, 0, &source, 0, bytes}}), Status::success);
  EXPECT_TRUE(holds(here.bytes, 4));
  EXPECT_EQ(move(a, b, Operation::write, {{&here, 0, &source, 0, bytes}}), Status::not_allowed);
}

/// How many descriptors of this process are of the file.
std::ptrdiff_t descriptors_of(const std::string& path) {
  std::ptrdiff_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(each.path(), gone) == path ? 1 : 0;
  }
  return count;
}

TEST_P(Files, AreTheBackendsOwn) {
  const std::string path = std::filesystem::canonical(folder.write("page", "page"));
  std::filesystem::create_symlink(path, folder.at("link"));
  Buffer &here = a.add(4, 1), &between = a.add(4, 2);
  {
    Descriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    const int number = fd.get();
    Buffer& file = a.add_file(number, 0, 4);
    Buffer& linked =
        a.add_file("rw:" + std::filesystem::relative(folder.at("link")).string(), 1'000'000, 4);
    // The number goes to another file, before the second engine opens this one.
    put(folder.at("innocent"), pattern(4, 7));
    const Descriptor innocent(open(folder.at("innocent").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(dup2(innocent.get(), number), number);
    ASSERT_EQ(move(a, a, Operation::write, {{&here, 0, &file, 0, 4}}), Status::success);
    ASSERT_EQ(move(a, a, Operation::write, {{&file, 0, &linked, 0, 4}}), Status::success);
    ASSERT_EQ(move(a, a, Operation::read, {{&between, 0, &linked, 0, 4}}), Status::success);
    EXPECT_TRUE(holds(contents_of(path), 1));
    EXPECT_TRUE(holds(between.bytes, 1));
    EXPECT_TRUE(holds(contents_of(folder.at("innocent")), 7));
    EXPECT_GT(descriptors_of(path), 0);
    EXPECT_EQ(a.deregister(file), Status::success);
    EXPECT_EQ(a.deregister(linked), Status::success);
  }
  // The last to let go of it may be a progress thread.
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  while (descriptors_of(path) > 0 && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(descriptors_of(path), 0);
}

TEST_P(Files, AreToldApartByTheirNumbers) {
  const std::string one = folder.write("one", "1"), two = folder.write("two", "2");
  Buffer& first = a.add_file("rw:" + one, 5, 1);
  const auto [status, said] = a.refused({{0, 1, 5}, "rw:" + two}, MemoryType::file);
  EXPECT_EQ(status, Status::invalid_param);
  EXPECT_THAT(said, HasSubstr("number 5 stands for another file"));
  Buffer& again = a.add_file("ro:" + one, 5, 1);
  a.add_file("rw:" + one, 6, 1);
  EXPECT_EQ(a.deregister(first), Status::success);
  EXPECT_EQ(a.refused({{0, 1, 5}, "rw:" + two}, MemoryType::file).first, Status::invalid_param);
  EXPECT_EQ(a.deregister(again), Status::success);
  a.add_file("rw:" + two, 5, 1);
}

TEST_P(Files, ByDescriptorMayBeNamedToo) {
  const std::string path = folder.write("page", "page");
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto number = static_cast<std::uint64_t>(fd.get());
  Buffer& here = a.add(4, 1);
  const Buffer& file = a.add_file(path, number, 4);
  EXPECT_EQ(move(a, a, Operation::write, {{&here, 0, &file, 0, 4}}), Status::not_allowed);
  EXPECT_EQ(move(a, a, Operation::read, {{&here, 0, &file, 0, 4}}), Status::success);
  const std::vector<std::string> others = {"b", "0", "/", folder.write("other", "page")};
  for (const std::string& other : others) {
    const auto [status, said] = a.refused({{0, 4, number}, other}, MemoryType::file);
    EXPECT_EQ(status, Status::invalid_param);
    EXPECT_THAT(said, HasSubstr("'" + other + "' is no path of the file of descriptor"));
  }
}

/// Each says what is wrong, and neither waits nor leaves a file behind.
TEST_P(Files, ThatAreRefused) {
  const std::string file = folder.write("file", "page"), pipe = folder.at("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  int ends[2] = {}, sockets[2] = {};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const Descriptor to_read(ends[0]), to_write(ends[1]), socket(sockets[0]), other(sockets[1]),
      opened(open(file.c_str(), O_RDWR | O_CLOEXEC)),
      write_only(open(file.c_str(), O_WRONLY | O_CLOEXEC)),
      append(open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC)),
      path_only(open(file.c_str(), O_PATH | O_CLOEXEC)),
      directory(open(folder.at("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto number = [](const Descriptor& of) { return static_cast<std::uint64_t>(of.get()); };
  struct Case {
    std::string text;
    std::uint64_t number;
    Status status;
    const char* said;
    MemoryType type = MemoryType::file;
    std::size_t bytes = 4;
  };
  const Status bad = Status::invalid_param;
  const char* const no_file = "is neither a file nor a block device";
  const std::uint64_t right = number(opened);
  const Case cases[] = {
      {"rw:/nonexistent-nixl-probe", 1, Status::not_found, "'/nonexistent-nixl-probe' can't be"},
      {"rw:" + folder.at("none"), right, Status::not_found, "No such file"},
      {"ro:" + folder.at("none"), right, Status::not_found, "No such file"},
      {"rw,create:" + folder.at("no/folder"), right, Status::not_found, "No such file"},
      {"rw:" + folder.at(""), right, bad, no_file},
      {"rw:" + pipe, right, bad, no_file},
      {"ro:" + pipe, right, bad, no_file},
      {"rw:/dev/null", right, bad, no_file},
      {"rw:", right, bad, "has no path"},
      {"rw,create:" + folder.at("cut") + std::string(1, '\0'), right, bad, "has no path"},
      {"rw,create,noatime:" + folder.at("made"), right, bad, "has the mode 'noatime'"},
      {"rw,:" + file, right, bad, "has the mode ''"},
      {"ro,create:" + folder.at("made"), right, bad, "makes a file that may only be read"},
      {"wo:" + file, right, bad, "is no path of the file"},
      {"create,rw:" + file, right, bad, "is no path of the file"},
      {"", 0, bad, "0 is standard input"},
      {"", 1, bad, "1 is standard input, output"},
      {"", 2, bad, "2 is standard input, output or error"},
      {"", 99'999, bad, "99999 is no open descriptor"},
      {"", (std::uint64_t{1} << 32) + right, bad, "is no open descriptor"},
      {"", number(to_read), bad, no_file},
      {"", number(socket), bad, no_file},
      {"", number(directory), bad, no_file},
      {"", number(write_only), bad, "for writing only"},
      {"", number(append), bad, "to append"},
      {"", number(path_only), bad, "by O_PATH"},
      {"", right, bad, "is a file, and is registered as a block device", MemoryType::block},
      {"rw:" + file, right, bad, "is registered as a block device", MemoryType::block},
      {"rw,create:" + folder.at("made"), right, bad, "can't be made", MemoryType::block},
      {"rw:" + file, right, bad, "0 bytes", MemoryType::file, 0},
      {"ro:" + file, right, bad, "5 bytes from 0 leave", MemoryType::file, 5},
  };
  for (const Case& each : cases) {
    const auto [status, said] = a.refused({{0, each.bytes, each.number}, each.text}, each.type);
    EXPECT_EQ(status, each.status) << each.text << ", " << each.number;
    EXPECT_THAT(said, HasSubstr(each.said)) << each.text << ", " << each.number;
  }
  EXPECT_EQ(contents_of(file).size(), 4U);
  const std::filesystem::directory_iterator left(folder.at(""));
  EXPECT_EQ(std::distance(begin(left), end(left)), 2) << "a file was made";
}

TEST_P(Files, AreLookedUp) {
  const std::string file = folder.write("file", "12345"), none = folder.at("none");
  const auto found =
      a.look_up({file, none, "rw,create:" + none, "ro:" + file, folder.at(""), "", "rw:"});
  ASSERT_EQ(found.size(), 7U);
  for (const std::size_t there : {0, 3}) {
    ASSERT_TRUE(found[there]);
    EXPECT_EQ(found[there]->at("size"), "5");
    EXPECT_EQ(found[there]->at("mode"), std::to_string(S_IFREG | 0600));
    EXPECT_GT(std::stoll(found[there]->at("mtime")), 1'600'000'000);
  }
  for (const std::size_t missing : {1, 2, 4, 5, 6}) EXPECT_FALSE(found[missing]) << missing;
  EXPECT_FALSE(std::filesystem::exists(none));
  abi::BlobList memory;
  std::vector<std::optional<abi::Parameters>> answers;
  EXPECT_EQ(a.backend().queryMem(memory, answers), Status::not_supported);
}

}  // namespace
}  // namespace weft::nixl::test
