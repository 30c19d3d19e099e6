// A GPU that copies nothing before it is told to. The CPU can follow its pointers, for the test.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "staged_device.hpp"

namespace weft::core::test {

class ModelGpu final : public StagedDevice {
 public:
  Result<std::unique_ptr<CopyQueue>> open_queue() const override {
    return std::make_unique<Queue>(*this);
  }
  Result<Lent> lend(const void* memory, std::size_t) const override {
    return Lent{Blob(1), 0, reinterpret_cast<std::uintptr_t>(memory)};
  }
  Result<std::unique_ptr<Mapped>> map(const Lent& lent, std::size_t) const override {
    return std::make_unique<Mapping>(*this, lent.address);
  }

  // One copy after the other. What has run is known to whoever asked for it when he looks.
  bool has_copies() const { return !waiting_.empty(); }
  void run_copy() {
    const Waiting& next = waiting_.front();
    std::memcpy(next.copy.to, next.copy.from, next.copy.bytes);
    if (next.last) ++*next.ended;
    ++unseen_;
    waiting_.pop_front();
  }
  bool has_unseen() const { return unseen_ > 0; }
  bool mapped() const { return mappings_ > 0; }
  /// At once, whatever is under way: not what a driver does.
  void unmap() { mappings_ = 0; }
  /// The process that uses it has ended: the driver has stopped its copies and closed its mappings.
  void stop() {
    waiting_.clear();
    mappings_ = 0;
  }

 private:
  struct Waiting {
    Copy copy;
    bool last;                             // of those that were begun together
    std::shared_ptr<std::uint64_t> ended;  // of its queue
  };
  class Queue final : public CopyQueue {
   public:
    explicit Queue(const ModelGpu& gpu) : gpu_(gpu) {}
    Begun copy(std::span<const Copy> copies, Priority) override {
      for (const Copy& each : copies)
        gpu_.waiting_.push_back({each, &each == &copies.back(), ended_});
      return {copies.size(), ++asked_};
    }
    Result<std::uint64_t> ended() override {
      gpu_.unseen_ = 0;
      return *ended_;
    }

   private:
    const ModelGpu& gpu_;
    std::uint64_t asked_ = 0;
    const std::shared_ptr<std::uint64_t> ended_ = std::make_shared<std::uint64_t>(0);
  };
  class Mapping final : public Mapped {
   public:
    Mapping(const ModelGpu& gpu, std::uint64_t address) : gpu_(gpu), address_(address) {
      ++gpu_.mappings_;
    }
    ~Mapping() override {
      if (gpu_.mappings_ > 0) --gpu_.mappings_;
    }
    std::byte* address() const noexcept override {
      return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address_));
    }

   private:
    const ModelGpu& gpu_;
    const std::uint64_t address_;
  };

  // Whoever uses a device has it const.
  mutable std::deque<Waiting> waiting_;
  mutable std::size_t unseen_ = 0, mappings_ = 0;
};

}  // namespace weft::core::test
