#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "bench.hpp"
#include "raw/loop.hpp"
#include "raw/process.hpp"
#include "shared/options.hpp"

namespace {

void print(const weft::perf::RawConfig& config, const weft::perf::RawResult& result) {
  fmt::print("{}: {:.2f} GB/s ({} bytes by {} operations in {:.3f} s, CPU {:.2f} + {:.2f} s)\n",
             config.provider, result.gigabytes_per_second, result.bytes, result.operations,
             result.seconds, result.initiator_cpu_seconds, result.target_cpu_seconds);
  if (config.latencies)
    fmt::print("p50 {:.2f} us, p99 {:.2f} us\n", double(result.p50_ns) / 1e3,
               double(result.p99_ns) / 1e3);
}

}  // namespace

int weft::perf::bench::raw(int argc, char** argv) {
  using weft::perf::RawOperation, weft::perf::Waiting;

  weft::perf::RawConfig config;
  std::vector<std::string> providers{config.provider};
  Nanoseconds time = std::chrono::milliseconds(config.max_ms);
  Nanoseconds timeout = std::chrono::milliseconds(config.timeout_ms);
  bool json = false, no_prefetch = false, no_delivery_complete = false;
  std::vector<std::string> environment, nics;
  CLI::App app{"Moves bytes between two processes by a plain libfabric loop, without an engine."};
  app.option_defaults()->always_capture_default();
  const CLI::AsSizeValue bytes(false);
  const std::map<std::string, RawOperation> operations{{"write", RawOperation::write},
                                                       {"read", RawOperation::read},
                                                       {"message", RawOperation::message}};
  const std::map<std::string, Waiting> waits{
      {"poll", Waiting::poll}, {"poll_fd", Waiting::poll_fd}, {"sleep", Waiting::sleep}};
  OptionGroup group(app, "Options");
  add_providers(group, providers,
                "net, tcp, tcp;ofi_rxm, verbs;ofi_rxm, efa, shm, as libfabric names them; each is "
                "measured by itself");
  group.list("--nics", nics, "NICs or interfaces that the endpoints go round on");
  app.add_option("--rail-address", config.bind,
                 "Local IP address of both sides (without --nics; not for shm)");
  app.add_option("--operation", config.operation, "write, read or message (until it is answered)")
      ->transform(CLI::Transformer(operations));
  app.add_option("--size", config.size, "Bytes of a transfer, e.g. 4M")->transform(bytes);
  app.add_option("--chunk", config.chunk, "Bytes of an operation; 0: the transfer is one")
      ->transform(bytes);
  app.add_option("--window", config.window, "Transfers in flight");
  app.add_option("--endpoints", config.endpoints, "Endpoints and threads on each side");
  app.add_option("--endpoint-window", config.endpoint_window, "Operations in flight on each");
  app.add_option("--buffer", config.buffer_bytes, "Memory walked; 0: the window's transfers")
      ->transform(bytes);
  app.add_option("--max-bytes", config.max_bytes, "End after so many bytes")->transform(bytes);
  add_time(group, time);
  add_timeout(group, timeout);
  app.add_flag("--no-delivery-complete", no_delivery_complete, "Default completions instead");
  app.add_flag("--virtual-addresses", config.virtual_addresses, "Offer FI_MR_VIRT_ADDR");
  app.add_option("--initiator", config.initiator, "How it waits: poll, poll_fd or sleep")
      ->transform(CLI::Transformer(waits));
  app.add_option("--target", config.target, "How it waits: poll, poll_fd or sleep")
      ->transform(CLI::Transformer(waits));
  app.add_option("--spin-us", config.spin_us, "Time to poll before each sleep");
  app.add_flag("--yield", config.yield, "Give the core away after an empty read");
  app.add_flag("--no-prefetch", no_prefetch, "Receive straight into the target's memory");
  app.add_option("--env", environment, "NAME=VALUE for both sides, before libfabric starts");
  app.add_flag("--verify", config.verify, "Compare every byte moved at the end");
  app.add_flag("--latencies", config.latencies, "Note how long each operation takes");
  app.add_flag("--json", json, "Print the settings and the result as JSON");
  if (const auto code = parse(app, argc, argv)) return *code;

  const auto milliseconds = [](Nanoseconds given) {
    return std::chrono::ceil<std::chrono::milliseconds>(given).count();
  };
  config.max_ms = milliseconds(time);
  config.timeout_ms = milliseconds(timeout);
  for (std::string& nic : nics) config.nics.push_back({std::move(nic)});
  config.delivery_complete = !no_delivery_complete;
  if (no_prefetch) {
    config.environment["FI_NET_PREFETCH_RBUF_SIZE"] = "0";  // libfabric 1.17
    config.environment["FI_TCP_PREFETCH_RBUF_SIZE"] = "0";  // libfabric 2
  }
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      fmt::print(stderr, "weft-bench raw: --env wants NAME=VALUE, not \"{}\"\n", entry);
      return usage_error;
    }
    config.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }

  for (const std::string& provider : providers) {
    config.provider = provider;
    const auto result = weft::perf::run_raw(config);
    if (!result) {
      fmt::print(stderr, "weft-bench raw: {}: {}\n", provider, result.error().message());
      return 1;
    }
    if (json)
      fmt::print("{}\n", nlohmann::json{{"config", config}, {"result", *result}}.dump());
    else
      print(config, *result);
  }
  return 0;
}
