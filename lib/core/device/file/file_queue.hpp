// Copies between files of one drive and host memory, as reads and writes that end later.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>
#include <weft/deadline.hpp>

#include "base/priorities.hpp"
#include "device/device.hpp"
#include "device/file/disk.hpp"
#include "device/file/file_page.hpp"
#include "device/file/io_channel.hpp"

namespace weft::core {

/// A copy is cut into whole pages, which go to the drive by direct I/O, and what is before and
/// behind them, which goes through the page cache. Memory that does not begin at a page is copied
/// through a buffer that does: the drive asks for that.
///
/// Of a file whose blocks are checked, only whole blocks are copied: first their sums are read or
/// written, then they are.
class FileQueue final : public CopyQueue {
 public:
  /// Whose copies they are. Programs may leave theirs alone: those of rails see to that.
  enum class Of : std::uint8_t { rail, programs };
  FileQueue(const Disk& disk, std::unique_ptr<IoChannel> channel, Of of = Of::rail);
  ~FileQueue() override;

  Begun copy(std::span<const Copy> copies, Priority priority) override;
  /// They end in any order: see news().
  Result<std::uint64_t> ended() override { return 0; }
  std::vector<News> news() override;
  /// Waits for a completion that news() has not returned, at most until the deadline. From any
  /// thread, beside the others.
  void wait(Deadline deadline) { state_->channel->wait(deadline); }
  /// When to ask for news at the latest.
  Deadline look_again() const;
  /// Of the copies of that number, what has not begun never will. News of it follows.
  void give_up(std::uint64_t number);

 private:
  struct Request;
  /// One read or write, until all its bytes are there.
  struct Part {
    Io io;
    Request* request = nullptr;
    bool direct = false;
    std::byte* memory = nullptr;  // what is read or written: the Io's, unless that is a buffer
    std::size_t bytes = 0;        // of both
    std::uint64_t at = 0;         // in the file
    FilePages buffer;
    std::vector<std::uint64_t> sums;  // of its blocks, where they are checked
    std::optional<Io> next;           // behind that of the sums
    Clock::time_point begun{};
    std::optional<Clock::time_point> refused_since;  // by a kernel that is short of something
    Clock::time_point again{};                       // when it is begun again then

    Range in_file() const noexcept { return {at, bytes}; }
  };
  struct Request {
    std::uint64_t number = 0;
    std::shared_ptr<OpenFile> file;
    Priority priority = Priority::normal;
    Clock::time_point since{};  // it was begun, or the drive has done some of it
    std::deque<Part> parts = {};
    std::size_t waiting = 0, under_way = 0;  // of the parts
    std::optional<Error> error = {};
    bool silent = false;
  };
  struct State {
    std::unique_ptr<IoChannel> channel;
    std::map<std::uint64_t, Request> requests;              // by number
    std::array<std::deque<Part*>, priorities> waiting;      // by index_of()
    std::map<std::size_t, std::vector<FilePages>> buffers;  // by their size, free
    std::vector<Part*> put_off;  // to be begun again: under way, but not the kernel's
    std::size_t under_way = 0;
  };

  static void cut(Request& request, const Copy& copy, bool write);
  enum class Started : std::uint8_t {
    yes,
    no_room,  // of the drive's
    blocked,  // others read or write its blocks
  };
  void start();
  static bool may_pass(const Part& part, std::span<const Part* const> passed);
  Started start(Part& part);
  Started enter(const Part& part) const;
  void leave(const Part& part) const;
  bool take_memory(Part& part);
  static void put_sums_first(Part& part);
  FilePages take_buffer(std::size_t bytes);
  void advance(Part& part);
  void go_on(Part& part, std::size_t done);
  void put_off(Part& part, int number);
  bool is_put_off(const Request& request) const;
  void begin_again();
  void done(Part& part);
  std::optional<Error> check(const Part& part) const;
  void finish(Part& part, std::optional<Error> error);
  void drop_waiting(Request& request);
  Clock::time_point since(const Request& request) const;
  void look_for_silence(Clock::time_point now);
  void end_if_over(Request& request);

  const Disk& disk_;
  const Of of_;
  std::unique_ptr<State> state_;  // leaked if something is under way to the end
  std::vector<News> news_;
  std::uint64_t begun_ = 0;
  Clock::time_point look_again_at_{}, answered_at_{};
};

}  // namespace weft::core
