#include "baseline/disk_baseline.hpp"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "common/outside_program.hpp"
#include "workload/file_memory.hpp"
#include "workload/region.hpp"
#include "workload/workload.hpp"

namespace weft::perf {
namespace {

/// Whether bytes go into the file at a side.
bool writes_file(const Work& work, Side side) {
  return (work.operation == Operation::read) == (side == Side::initiator);
}

/// Each thread copies one operation's bytes again and again.
Result<double> copy_file(const Work& work, const std::string& memory, Side side, Nanoseconds time,
                         const std::stop_token& stop) {
  Config config;
  config.providers = {"shm"};
  config.metrics = false;
  auto engine = Engine::open(config);
  if (!engine) return fail(std::move(engine.error()));
  const auto layout = lay_out(work);
  if (!layout) return fail(layout.error());
  auto region = Region::make(*engine, memory, layout->bytes_on(side));
  if (!region) return fail(std::move(region.error()));
  if (auto filled = region->fill({}, stop); !filled) return fail(std::move(filled.error()));
  const bool writes = writes_file(work, side);
  Segment& to = writes ? region->segment() : region->in_memory();
  const Segment& from = writes ? region->in_memory() : region->segment();
  std::atomic<std::uint64_t> bytes{0};
  std::optional<Error> failure;
  std::atomic<bool> failed{false};
  const auto begin = Clock::now();
  const auto copy = [&](std::uint32_t operation) {
    std::vector<Pair> pairs;
    const std::size_t first = first_transfer(work, *layout, operation);
    for (auto i = layout->first[first]; i < layout->first[first + layout->parts]; ++i) {
      const std::uint64_t at =
          side == Side::initiator ? layout->pairs[i].local : layout->pairs[i].remote;
      pairs.push_back({at, at, layout->pairs[i].length});
    }
    do {
      if (auto done = to.copy_from(from, pairs, Deadline::in(std::chrono::seconds(60))); !done) {
        if (!failed.exchange(true)) failure = done.error();
        return;
      }
      bytes += layout->operation_bytes;
    } while (Clock::now() - begin < time && !stop.stop_requested() && !failed);
  };
  std::vector<std::jthread> threads;
  try {
    for (std::uint32_t i = 0; i < work.window; ++i) threads.emplace_back(copy, i);
  } catch (const std::system_error& error) {
    failed = true;
    threads.clear();
    return fail(Code::unavailable,
                fmt::format("the baseline 'disk' can't start threads: {}", error.what()));
  }
  threads.clear();
  if (failure) return fail(std::move(*failure));
  return static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - begin).count() /
         1e9;
}

/// As many bytes of the file, of which each operation takes one stretch.
Result<double> run_fio(const Work& work, const FileMemory& file, Side side, Nanoseconds time) {
  const auto layout = lay_out(work);
  if (!layout) return fail(layout.error());
  const std::uint64_t size = layout->bytes_on(side) / work.size * work.size;
  const double seconds = std::max(1.0, std::chrono::duration<double>(time).count());
  const auto option = [](const char* name, const auto& value) {
    return fmt::format("--{}={}", name, value);
  };
  const tool::OutsideProgram fio{
      {"fio", "--name=weft-perf", option("filename", file.path),
       option("rw", writes_file(work, side) ? "randwrite" : "randread"), option("bs", work.size),
       option("iodepth", work.window), option("size", size), option("direct", file.direct ? 1 : 0),
       "--ioengine=io_uring", "--time_based", option("runtime", fmt::format("{:.0f}s", seconds)),
       "--thread", "--invalidate=0", "--output-format=json"},
      "",
      std::size_t{1} << 20,
      time + std::chrono::seconds(60)};
  auto ended = tool::run(fio);
  if (!ended) return fail(ended.error());
  if (!ended->problem.empty())
    return fail(Code::unavailable, fmt::format("fio {}: {}", ended->problem, ended->complaints));
  // It may say something in front of its document.
  const Json said =
      Json::parse(ended->output.substr(std::min(ended->output.find('{'), ended->output.size())),
                  nullptr, false);
  const char* const way = writes_file(work, side) ? "write" : "read";
  const Json jobs = said.is_object() ? said.value("jobs", Json::array()) : Json::array();
  if (jobs.empty() || !jobs[0].contains(way))
    return fail(Code::protocol_mismatch, "fio's document is not as it was");
  return jobs[0][way].value("bw_bytes", 0.0) / 1e9;
}

Result<double> measure_here(const Site& site, const DiskTask& task, Side side,
                            const std::stop_token& stop) {
  const Work& work = task.point.work;
  const std::string& memory = side == Side::initiator ? work.memory : work.peer_memory;
  if (auto lent = check_lent(site, memory); !lent) return fail(std::move(lent.error()));
  const auto file = file_of(memory);
  if (!file) return fail(Code::invalid_argument, "that side has no file");
  return task.by == DiskBy::fio ? run_fio(work, *file, side, Nanoseconds(task.time_ns))
                                : copy_file(work, memory, side, Nanoseconds(task.time_ns), stop);
}

}  // namespace

Result<double> measure_disk(Control& target, const Site& site, const DiskTask& task,
                            const std::stop_token& stop) {
  if (file_of(task.point.work.peer_memory))
    return target.ask("disk", {{"of", task}}, Nanoseconds(task.time_ns))
        .and_then([](const Json& answer) { return value_of<double>(answer, "gigabytes"); });
  if (file_of(task.point.work.memory)) return measure_here(site, task, Side::initiator, stop);
  return fail(Code::invalid_argument, "the baselines 'disk' and 'fio' are beside a file alone");
}

Result<Json> answer_disk(const Site& site, const Json& question, const std::stop_token& stop) {
  const auto task = value_of<DiskTask>(question, "of");
  if (!task) return fail(task.error());
  if (auto checked = check(task->point); !checked) return fail(std::move(checked.error()));
  if (auto time = time_of(question.at("of")); !time) return fail(std::move(time.error()));
  return measure_here(site, *task, Side::target, stop).map([](double gigabytes) {
    return Json{{"gigabytes", gigabytes}};
  });
}

}  // namespace weft::perf
