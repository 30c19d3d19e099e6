#include "workload/point.hpp"

#include <fmt/format.h>

#include <cmath>
#include <weft/kv_models.hpp>

#include "workload/file_memory.hpp"

namespace weft::perf {
namespace {

constexpr std::uint64_t most_pieces = 1 << 22;  // of all operations in flight
constexpr std::uint32_t greatest_window = 1 << 16;
constexpr std::uint64_t greatest_size = std::uint64_t{1} << 40;
constexpr std::uint64_t greatest_message = 1 << 20;  // Config::max_message
constexpr double greatest_rate = 1e8;

tl::unexpected<Error> wrong(std::string sentence) {
  return fail(Code::invalid_argument, std::move(sentence));
}

Result<void> check_pieces(const Work& work) {
  if (work.pieces < 1 || std::uint64_t{work.pieces} * work.window > most_pieces)
    return wrong(fmt::format("{} operations of {} pieces are too many: at most {} pieces in all",
                             work.window, work.pieces, most_pieces));
  if (work.size % work.pieces != 0 || work.size < work.pieces)
    return wrong(fmt::format("{} bytes can't be cut into {} equal pieces", work.size, work.pieces));
  if (work.operation != Operation::message) return {};
  if (work.pieces != 1) return wrong("a message has one piece");
  if (work.size > greatest_message)
    return wrong(
        fmt::format("a message of {} bytes is too large: at most {}", work.size, greatest_message));
  return {};
}

Result<void> check_kv(const Work& work) {
  if (work.kv.model.empty()) return {};
  if (work.operation == Operation::message) return wrong("no message carries a KV cache");
  if (work.kv.dtype != "bf16" && work.kv.dtype != "fp8")
    return wrong(fmt::format("'{}' is no element type: it is bf16 or fp8", work.kv.dtype));
  if (work.kv.block_tokens < 1 || work.kv.block_tokens > (1 << 16))
    return wrong("a block has 1 to 65536 tokens");
  if (work.kv.tokens < 1 || work.kv.tokens > (1 << 24))
    return wrong("a request has 1 to 16 Mi tokens");
  const auto model = kv::find_model(work.kv.model);
  if (!model) return fail(model.error());
  for (const std::uint32_t stages : {work.kv.pp, work.kv.peer_pp})
    if (stages < 1 || stages > model->layers)
      return wrong(fmt::format("{} layers go in 1 to {} pipeline stages, and not {}", model->layers,
                               model->layers, stages));
  if (work.kv.layer_groups < 1 || work.kv.layer_groups > model->layers)
    return wrong(fmt::format("{} layers go in 1 to {} layer groups, and not {}", model->layers,
                             model->layers, work.kv.layer_groups));
  return {};
}

}  // namespace

Result<void> check(const Point& point) {
  const Work& work = point.work;
  if (point.initiators < 1 || point.initiators > most_initiators)
    return wrong(
        fmt::format("there are 1 to {} initiators, and not {}", most_initiators, point.initiators));
  if (point.peers < 1 || point.peers > most_targets)
    return wrong(fmt::format("there are 1 to {} targets, and not {}", most_targets, point.peers));
  if (work.size < 1 || work.size > greatest_size)
    return wrong(fmt::format("an operation of {} bytes can't be measured", work.size));
  if (work.window < 1 || work.window > greatest_window)
    return wrong(fmt::format("the window is 1 to {}, and not {}", greatest_window, work.window));
  if (work.batch < 1 || work.batch > work.window)
    return wrong(
        fmt::format("a batch of {} does not fit into a window of {}", work.batch, work.window));
  if (work.operation == Operation::mixed && work.window % 2 != 0)
    return wrong("half of the window writes and half of it reads: it must be even");
  if (!std::isfinite(work.rate) || work.rate < 0 || work.rate > greatest_rate)
    return wrong(fmt::format("a rate is 0 to {:.0f} operations a second", greatest_rate));
  if (point.fabric.progress == weft::Progress::manual &&
      (work.rate > 0 || work.operation == Operation::message))
    return wrong("with manual progress neither a rate nor messages can be measured");
  if (work.rate > 0 && work.batch != 1) return wrong("what comes by a rate comes one by one");
  if (work.operation == Operation::message && work.priority != Priority::normal)
    return wrong("messages have no priority");
  if (work.one_buffer &&
      (work.operation == Operation::message || work.operation == Operation::mixed))
    return wrong("one buffer is for operations that all write, or all read");
  for (const std::string& memory : {work.memory, work.peer_memory}) {
    if (auto checked = check_memory(memory); !checked) return checked;
    if (file_of(memory) && (point.initiators > 1 || point.peers > 1))
      return wrong("a file is for one initiator and one target: they would share its bytes");
  }
  if (auto pieces = check_pieces(work); !pieces) return pieces;
  return check_kv(work);
}

void apply(const Fabric& fabric, Config& config) {
  if (!fabric.provider.empty()) config.providers = {fabric.provider};
  config.rails = fabric.rails;
  config.max_nics = fabric.nics;
  config.threads = fabric.threads;
  config.chunk_bytes = fabric.chunk;
  config.window = fabric.rail_window;
  if (fabric.bounce_bytes != 0) config.bounce_buffer_bytes = fabric.bounce_bytes;
  if (fabric.bounce_buffers != 0) config.bounce_buffers = fabric.bounce_buffers;
  config.share_gpu_memory = fabric.gpu_path == GpuPath::lent;
}

}  // namespace weft::perf
