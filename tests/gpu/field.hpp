// Two engines of one process, with memory of GPUs over the stand-in driver: it can't be touched by
// the CPU (cuda_sim).
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "cuda_sim.hpp"
#include "engines.hpp"

namespace weft::test {

using cuda_sim::Direction;
using cuda_sim::Phase;
using cuda_sim::Record;

inline constexpr std::size_t chunk = 64 << 10;
inline constexpr std::size_t credits = 4;

inline Config gpu_config(const std::string& provider) {
  Config config = config_for(provider, 1);
  config.bounce_buffer_bytes = chunk;
  config.bounce_buffers = credits;
  return config;
}

/// A GPU's primary context goes with its last user, and all of its memory with it.
inline void keep_primary(int gpu) {
  static std::set<int> kept;
  cuda_sim::Context context = nullptr;
  if (!kept.insert(gpu).second) return;
  cuda_sim::check(cuda_sim::cuInit(0));
  cuda_sim::check(cuda_sim::cuDevicePrimaryCtxRetain(&context, gpu));
}

/// A side's memory: a GPU's, or the CPU's (no ordinal).
class Store {
 public:
  Store(std::optional<int> gpu, std::size_t bytes) : gpu_(gpu), bytes_(bytes) {
    if (gpu_) {
      keep_primary(*gpu_);
      const cuda_sim::CurrentContext here(*gpu_);
      device_.emplace(bytes);
    } else {
      host_.resize(bytes);
    }
  }
  ~Store() {
    if (!gpu_) return;
    const cuda_sim::CurrentContext here(*gpu_);
    device_.reset();
  }
  void* address() { return device_ ? device_->pointer() : host_.data(); }
  Memory memory() { return Memory::adopt(address(), bytes_); }
  void put(Bytes bytes) {
    if (!gpu_) {
      std::copy(bytes.begin(), bytes.end(), host_.begin());
      return;
    }
    const cuda_sim::CurrentContext here(*gpu_);
    device_->write(bytes);
  }
  Blob bytes() const {
    if (!gpu_) return host_;
    const cuda_sim::CurrentContext here(*gpu_);
    return device_->read();
  }

 private:
  const std::optional<int> gpu_;
  const std::size_t bytes_;
  Blob host_;
  std::optional<cuda_sim::DeviceMemory> device_;
};

/// Where the two sides' memory is.
struct Sides {
  const char* name;
  std::optional<int> local, remote;
};
inline constexpr Sides all_sides[] = {{"gpu_to_gpu", 0, 1},
                                      {"same_gpu", 0, 0},
                                      {"gpu_to_host", 0, std::nullopt},
                                      {"host_to_gpu", std::nullopt, 1}};

/// Two engines with a segment each, of which the one is granted to the other.
struct Field {
  Field(const Config& config, const Sides& sides, std::size_t bytes,
        const core::EngineHooks& hooks = {}, const Config* other = nullptr)
      : here(sides.local, bytes),
        there(sides.remote, bytes),
        pair(couple(config, other != nullptr ? *other : config, hooks, hooks)),
        local(must(pair.a.add(here.memory()))),
        remote(must(pair.b.add(there.memory()))),
        grant(must(remote.grant({}, Rights::read_write))),
        imported(must(pair.a.import(grant.blob()))) {
    here.put(pattern(bytes, 1));
    there.put(pattern(bytes, 2));
  }
  Transfer start(weft::Direction direction, std::span<const Pair> pairs,
                 const TransferOptions& options = {}) {
    return direction == weft::Direction::write ? must(pair.a.write(local, imported, pairs, options))
                                               : must(pair.a.read(local, imported, pairs, options));
  }
  /// Moves the pieces, and compares both memories in and around them.
  void expect_moved(weft::Direction direction, std::span<const Pair> pairs) {
    const Blob mine = here.bytes(), theirs = there.bytes();
    Transfer transfer = start(direction, pairs);
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    const bool write = direction == weft::Direction::write;
    const Blob expected = write ? expected_after(theirs, mine, direction, pairs)
                                : expected_after(mine, theirs, direction, pairs);
    EXPECT_TRUE(same_bytes(there.bytes(), write ? expected : theirs));
    EXPECT_TRUE(same_bytes(here.bytes(), write ? mine : expected));
  }

  Store here, there;  // outlive the engines
  Couple pair;
  Segment local, remote;
  Grant grant;
  Remote imported;
};

/// Nothing of the stream's runs until it is released, or the test is over: memory is freed once its
/// GPU's streams have run.
class Held {
 public:
  explicit Held(cuda_sim::Stream stream) : stream_(stream) {
    cuda_sim::weft_cuda_sim_hold(stream_);
  }
  ~Held() { release(); }
  void release() { cuda_sim::weft_cuda_sim_release(stream_); }
  /// Lets one copy end, with the event behind it.
  void step() { cuda_sim::weft_cuda_sim_step(stream_, 2); }

 private:
  const cuda_sim::Stream stream_;
};

/// The same for all streams, those that are destroyed meanwhile as well.
class HeldAll {
 public:
  HeldAll() { cuda_sim::weft_cuda_sim_hold_all(); }
  ~HeldAll() { release(); }
  void release() { cuda_sim::weft_cuda_sim_release_all(); }
};

/// How many of the copies that way have come so far.
inline std::size_t copies(Direction direction, Phase phase) {
  const auto all = cuda_sim::records();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Record& each) {
    return each.operation == cuda_sim::Operation::copy && each.direction == direction &&
           each.phase == phase;
  }));
}

/// The stream over which copies went that way.
inline cuda_sim::Stream stream_of(Direction direction) {
  for (const Record& each : cuda_sim::records())
    if (each.direction == direction && each.stream != nullptr) return each.stream;
  return nullptr;
}

inline std::vector<Pair> whole(std::size_t bytes) {
  return {{0, 0, bytes}};
}

/// The stream over which the field's transfers are copied that way, as one of them shows; of which
/// there are no records afterwards.
inline cuda_sim::Stream stream_used(Field& field, weft::Direction direction, Direction way) {
  cuda_sim::weft_cuda_sim_clear();
  field.expect_moved(direction, whole(chunk));
  const auto stream = stream_of(way);
  EXPECT_NE(stream, nullptr);
  cuda_sim::weft_cuda_sim_clear();
  return stream;
}

}  // namespace weft::test
