// One side of a plain libfabric loop, in the process that this is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>
#include <weft/deadline.hpp>

#include "common/pages.hpp"
#include "raw/chunks.hpp"
#include "raw/config.hpp"
#include "raw/endpoint.hpp"
#include "raw/histogram.hpp"

namespace weft::perf {

/// Memory whose bytes depend on their position.
class PatternedMemory {
 public:
  explicit PatternedMemory(std::size_t bytes);
  /// Without `patterned` the pages are only touched.
  void fill(bool patterned);
  void expect_pattern(std::size_t offset, std::size_t bytes) const;
  std::span<std::byte> span() const noexcept { return pages_.span(); }

 private:
  const tool::Pages pages_;
};

/// Its endpoints and their memory. Throws `std::runtime_error`, whose text is one sentence.
class RawSide {
 public:
  RawSide(const RawConfig& config, bool initiator);

  /// What the other side needs to connect() to this one's endpoints.
  nlohmann::json describe() const;
  void connect(const nlohmann::json& other);

  /// As the initiator: warms up, and measures.
  RawResult initiate();
  /// As the target: makes progress, and answers messages, until `wait` comes back with what the
  /// initiator has covered. Returns the CPU time that it took, in seconds. `interrupt` is to end
  /// `wait` where this side fails before; it is called on another thread.
  double serve(const std::function<std::size_t()>& wait, const std::function<void()>& interrupt);

 private:
  struct Flying;
  struct Receipt;

  RawResult pass(std::chrono::milliseconds time);
  void drive(Endpoint& endpoint, Chunks& chunks, const std::atomic<bool>& failed);
  bool begin(Endpoint& endpoint, Flying& flying, const Chunks::Chunk& chunk) const;
  static void serve_moves(Endpoint& endpoint, const std::atomic<bool>& stop);
  void serve_messages(Endpoint& endpoint, const std::atomic<bool>& stop) const;
  void look_at(const Endpoint& endpoint, const std::vector<Receipt>& receipts) const;
  bool is_message() const { return config_.operation == RawOperation::message; }
  std::size_t place_of(const Endpoint& endpoint, std::uint64_t message) const {
    return (endpoint.number() * config_.endpoint_window + message) * config_.size;
  }

  const RawConfig config_;
  PatternedMemory memory_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::mutex latency_mutex_;
  Histogram latency_;  // Of the pass under way.
};

/// Under which an endpoint of a process is found by those that use libfabric's shm.
std::string shm_name(int pid, unsigned endpoint);

}  // namespace weft::perf
