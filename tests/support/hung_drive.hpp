// A drive that takes reads and writes, and ends them only when the test says so.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/file/io_channel.hpp"

namespace weft::test {

/// For channels that are opened while this lives.
class HungDrive {
 public:
  HungDrive() {
    core::make_io_channels_by([hung = hung_] { return std::make_unique<Channel>(hung); });
  }
  ~HungDrive() {
    release();
    core::make_io_channels_by({});
  }
  HungDrive(const HungDrive&) = delete;
  HungDrive& operator=(const HungDrive&) = delete;
  void release() { *hung_ = false; }

 private:
  using Flag = std::shared_ptr<std::atomic<bool>>;
  class Channel final : public core::IoChannel {
   public:
    explicit Channel(Flag hung) : hung_(std::move(hung)) {}
    bool begin(core::Io& io) override {
      waiting_.push_back(&io);
      return true;
    }
    std::size_t ended(std::span<core::Io*> into) override {
      if (!*hung_) {
        for (core::Io* io : std::exchange(waiting_, {})) real_->begin(*io);
        real_->flush();
      }
      return real_->ended(into);
    }
    void wait(Deadline deadline) override {
      constexpr auto look = std::chrono::milliseconds(1);  // at hung_
      real_->wait(Deadline::at(std::min(deadline.when(), Deadline::in(look).when())));
    }

   private:
    const Flag hung_;
    const std::unique_ptr<core::IoChannel> real_ = core::open_io_threads();
    std::vector<core::Io*> waiting_;
  };
  const Flag hung_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace weft::test
