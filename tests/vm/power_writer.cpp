// In a virtual machine whose drives forget (run_power_cuts.py): writes blocks of a file or drive
// again and again, several at a time, and tells the host of each version of a block that Weft has
// reported as written, before it goes on with that block.
//
//   vm-power-writer NAME PATH WAY durable|lax BLOCK_BYTES WRITES
//
// WAY is "local" (Segment::copy_from), or the provider by which an engine writes to the other one
// that has the file. A report is a line "NAME block version" on QEMU's debug console.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/io.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

namespace {

using namespace std::chrono_literals;
using namespace weft;

// Both are run_power_cuts.py's too.
constexpr std::uint64_t blocks = 64;
constexpr unsigned short debug_console = 0xe9;
constexpr std::uint64_t at_a_time = 8;

Deadline soon() {
  return Deadline::in(120s);
}

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The host has a line when this returns: an instruction that writes to the port ends only then.
void tell(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const char each : line) outb(static_cast<unsigned char>(each), debug_console);
}

/// Words that tell which block they are of, which version, and where in the block they belong.
void draw(std::byte* memory, std::size_t bytes, std::uint64_t block, std::uint64_t version) {
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = block << 48 | version << 16 | at / sizeof word;
    std::memcpy(memory + at, &word, std::min(sizeof word, bytes - at));
  }
}

struct Job {
  std::string name, path, way;
  bool durable = false;
  std::size_t block_bytes = 0;
  std::uint64_t writes = 0;
};

/// Engines, the file, and memory for all that is under way.
class Writer {
 public:
  explicit Writer(const Job& job) : job_(job) {
    Config config;
    if (job.way != "local") config.providers = {job.way};
    config.death_after = 60s;
    near_ = must(Engine::open(config));
    FileOptions options;
    options.durable = job.durable;
    options.create = job.path.rfind("/dev/", 0) != 0;
    const Memory pages = Memory::file(job.path, 0, blocks * job.block_bytes, options);
    memory_ = must(near_->add(Memory::own(at_a_time * room())));
    if (job.way == "local") {
      file_ = must(near_->add(pages));
      return;
    }
    far_ = must(Engine::open(config));
    must(near_->connect(far_->address(), soon()));
    must(far_->accept(soon()));
    file_ = must(far_->add(pages));
    grant_ = must(file_->grant({}, Rights::write));
    there_ = must(near_->import(grant_->blob()));
  }

  /// From slot `slot` of the memory; waits for the end.
  void write(std::uint64_t slot, std::uint64_t block, std::uint64_t version) {
    draw(memory_->data() + slot * room(), job_.block_bytes, block, version);
    const std::uint64_t from = slot * room(), to = block * job_.block_bytes;
    if (there_) {
      const Pair piece[] = {{from, to, job_.block_bytes}};
      must(must(near_->write(*memory_, *there_, piece)).wait(soon()));
    } else {
      const Pair piece[] = {{to, from, job_.block_bytes}};
      must(file_->copy_from(*memory_, piece, soon()));
    }
  }

 private:
  /// A slot begins at a page, as memory does that the drive reads itself.
  std::size_t room() const { return (job_.block_bytes + 4095) / 4096 * 4096; }

  const Job job_;
  std::optional<Engine> near_, far_;
  std::optional<Segment> memory_, file_;
  std::optional<Grant> grant_;
  std::optional<Remote> there_;
};

/// The blocks of one slot in turn: no block is written twice at a time.
void write_blocks(const Job& job, Writer& writer, std::uint64_t slot) {
  std::uint64_t written = 0;
  for (std::uint64_t version = 1; written < job.writes / at_a_time; ++version)
    for (std::uint64_t block = slot; block < blocks; block += at_a_time, ++written) {
      writer.write(slot, block, version);
      tell(fmt::format("{} {} {}\n", job.name, block, version));
    }
}

void run(const Job& job) {
  if (ioperm(debug_console, 1, 1) != 0) throw std::runtime_error("no debug console");
  Writer writer(job);
  std::vector<std::thread> threads;
  for (std::uint64_t slot = 0; slot < at_a_time; ++slot)
    threads.emplace_back([&, slot] {
      try {
        write_blocks(job, writer, slot);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", job.name.c_str(), error.what());
        std::_Exit(1);
      }
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace

int main(int count, char** values) try {
  if (count != 7) throw std::runtime_error("see the top of power_writer.cpp");
  run({values[1], values[2], values[3], values[4] == std::string("durable"), std::stoull(values[5]),
       std::stoull(values[6])});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "vm-power-writer: %s\n", error.what());
  return 1;
}
