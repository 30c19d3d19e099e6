#include "baseline/baseline.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "baseline/disk_baseline.hpp"
#include "baseline/raw_baseline.hpp"
#include "baseline/socket_stream.hpp"
#include "common/free_memory.hpp"
#include "common/pages.hpp"
#include "workload/grid.hpp"

namespace weft::perf {
namespace {

constexpr unsigned most_threads = 256;
constexpr std::uint64_t greatest_write = 1 << 20;  // of a plain stream, at a time

/// Those that are had in one way.
constexpr std::array<std::pair<const char*, Baseline::Kind>, 5> plain = {{
    {"contiguous", Baseline::Kind::contiguous},
    {"wire", Baseline::Kind::wire},
    {"socket", Baseline::Kind::socket},
    {"disk", Baseline::Kind::disk},
    {"fio", Baseline::Kind::fio},
}};

/// Each thread copies between buffers of its own, as many as an initiator's operations in flight.
Result<double> copy_memory(const Work& work, std::uint32_t targets, unsigned threads,
                           Nanoseconds time, const std::stop_token& stop) {
  const std::uint64_t slots = std::uint64_t{work.one_buffer ? 1 : work.window} * targets;
  const std::uint64_t needed = 2 * work.size * slots * threads;
  if (const auto free = tool::free_memory(); free && needed > *free)
    return fail(Code::unavailable,
                fmt::format("the baseline 'memcpy' needs {} bytes of memory for {} threads, and {} "
                            "are free",
                            needed, threads, *free));
  struct Buffers {
    tool::Pages from, to;
  };
  std::vector<Buffers> buffers;
  for (unsigned i = 0; i < threads; ++i) {
    const std::size_t bytes = work.size * slots;
    buffers.push_back({tool::Pages(bytes), tool::Pages(bytes)});
    if (buffers.back().from.empty() || buffers.back().to.empty())
      return fail(Code::out_of_memory, "no memory for the baseline 'memcpy'");
  }
  std::atomic<std::uint64_t> copies{0};
  std::atomic<unsigned> ready{0};
  std::atomic<Clock::rep> begin{0};
  const auto copy = [&](const Buffers& of) {
    for (const tool::Pages* each : {&of.from, &of.to}) fill(each->span(), {}, stop);
    if (++ready == threads) begin = Clock::now().time_since_epoch().count(), begin.notify_all();
    begin.wait(0);
    const auto end = Clock::time_point(Clock::duration(begin)) + time;
    std::uint64_t count = 0;
    do {  // once in any case: it may have got no core in time
      const std::size_t at = count++ % slots * work.size;
      std::memcpy(of.to.data() + at, of.from.data() + at, work.size);
    } while (Clock::now() < end && !stop.stop_requested());
    copies += count;
  };
  std::vector<std::jthread> pool;
  try {
    for (const Buffers& each : buffers) pool.emplace_back(copy, std::cref(each));
  } catch (const std::system_error& error) {
    begin = 1, begin.notify_all();  // and was over long ago
    return fail(Code::unavailable, fmt::format("the baseline 'memcpy' can't start {} threads: {}",
                                               threads, error.what()));
  }
  pool.clear();
  if (stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  const double seconds =
      std::chrono::duration<double>(Clock::now() - Clock::time_point(Clock::duration(begin)))
          .count();
  return static_cast<double>(copies * work.size) / seconds / 1e9;
}

Result<Measured> run_raw_loop(Control& control, const Site& site, const Beside& beside,
                              unsigned endpoints, const std::stop_token& stop) {
  const RawTask task{beside.point,         endpoints,    beside.carrier.kind, beside.time.count(),
                     site.timeout.count(), beside.verify};
  return run_raw_baseline(control, task, beside.carrier, stop).map([](const RawResult& made) {
    return Measured{made.gigabytes_per_second, Nanoseconds(made.p50_ns), Nanoseconds(made.p99_ns)};
  });
}

Result<double> stream(Control& control, const Site& site, const Work& work, Nanoseconds time,
                      const std::stop_token& stop) {
  const std::uint64_t bytes = std::min(work.size, greatest_write);
  const auto begun = control.ask("begin stream", {{"bytes", bytes}});
  if (!begun) return fail(begun.error());
  const auto address = value_of<std::string>(*begun, "address");
  const auto port = value_of<std::uint16_t>(*begun, "port");
  if (!address || !port) return fail(address ? port.error() : address.error());
  const auto made = stream_to(*address, *port, bytes, time, site.timeout, stop);
  if (!made) return fail(made.error());
  const auto ended = control.ask("end stream", Json::object(), time_to_tell);
  if (!ended) return fail(ended.error());
  const auto arrived = value_of<std::uint64_t>(*ended, "bytes");
  if (!arrived || *arrived != made->bytes)
    return fail(Code::internal, "the plain TCP stream lost bytes");
  return static_cast<double>(made->bytes) / made->seconds / 1e9;
}

}  // namespace

std::string Baseline::name() const {
  for (const auto& [name, of] : plain)
    if (of == kind) return name;
  const char* const what = kind == Kind::raw ? "raw" : "memcpy";
  return threads == 1 ? what : fmt::format("{}:{}", what, threads);
}

Result<Baseline> parse_baseline(std::string_view text) {
  for (const auto& [name, kind] : plain)
    if (text == name) return Baseline{kind};
  const std::string_view name = text.substr(0, text.find(':'));
  const auto threads =
      name == text ? 1 : parse_number(text.substr(name.size() + 1), Multiples::decimal);
  if (threads && *threads >= 1) {
    if (name == "raw" && *threads <= max_endpoints)
      return Baseline{Baseline::Kind::raw, static_cast<unsigned>(*threads)};
    if (name == "memcpy" && *threads <= most_threads)
      return Baseline{Baseline::Kind::memcpy, static_cast<unsigned>(*threads)};
  }
  return fail(
      Code::invalid_argument,
      fmt::format("'{}' is no baseline: it is contiguous, wire, raw, raw:N (up to {}), memcpy, "
                  "memcpy:N (up to {}), socket, disk or fio",
                  text, max_endpoints, most_threads));
}

Point contiguous(Point point) {
  point.work.kv = {};
  point.work.pieces = 1;
  point.work.pattern = Pattern::contiguous;
  point.work.rate = 0;
  return point;
}

Point without_files(Point point) {
  point.work.memory = point.work.peer_memory = "host";
  return point;
}

Result<void> check(const Baseline& baseline, const Sites& sites) {
  const auto wrong = [&](const std::string& why) {
    return fail(Code::invalid_argument, fmt::format("the baseline '{}' {}", baseline.name(), why));
  };
  if (is_point(baseline.kind)) return {};
  if (sites.initiators_elsewhere)
    return wrong("is measured on this machine, where not all initiators of --from are");
  if (baseline.kind == Baseline::Kind::socket && sites.initiators * sites.targets > 1)
    return wrong("is one stream, which several initiators or targets can't be compared with");
  const std::uint64_t threads = baseline.threads * sites.initiators;
  if (threads == 1) return {};
  if (baseline.kind == Baseline::Kind::raw && threads > max_endpoints)
    return wrong(
        fmt::format("would have {} endpoints, and has {} at most", threads, max_endpoints));
  // Pollers that share a core wait for each other, which makes whatever is compared look good.
  const std::uint64_t pollers = sites.target_elsewhere ? threads : 2 * threads;
  if (baseline.kind == Baseline::Kind::raw && sites.cores > 0 && pollers > sites.cores)
    return wrong(fmt::format("polls on {} cores for {} endpoints, and this machine has {}", pollers,
                             threads, sites.cores));
  if (baseline.kind == Baseline::Kind::memcpy && threads > most_threads)
    return wrong(fmt::format("would have {} threads, and has {} at most", threads, most_threads));
  return {};
}

bool notes_latency(std::string_view name) {
  return name == "raw" || name.starts_with("raw:");
}

Result<Measured> measure(const Baseline& baseline, Control& control, const Site& site,
                         const Beside& beside, const std::stop_token& stop) {
  const Point& point = beside.point;
  const unsigned threads = baseline.threads * point.initiators;
  if (baseline.kind == Baseline::Kind::raw)
    return run_raw_loop(control, site, beside, threads, stop);
  const auto speed = [&] {
    switch (baseline.kind) {
      case Baseline::Kind::memcpy:
        return copy_memory(point.work, point.peers, threads, beside.time, stop);
      case Baseline::Kind::disk:
      case Baseline::Kind::fio: {
        const DiskBy by = baseline.kind == Baseline::Kind::fio ? DiskBy::fio : DiskBy::weft;
        return measure_disk(control, site, {point, by, beside.time.count()}, stop);
      }
      default:
        return stream(control, site, point.work, beside.time, stop);
    }
  }();
  return speed.map([](double gigabytes) { return Measured{gigabytes, {}, {}}; });
}

}  // namespace weft::perf
