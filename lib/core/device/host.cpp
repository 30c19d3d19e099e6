#include <cstring>

#include "base/xxh3.hpp"
#include "device/device.hpp"

namespace weft::core {
namespace {

class Host final : public Device {
 public:
  MemoryKind kind() const noexcept override { return MemoryKind::host; }
  const std::string& pci() const noexcept override { return none_; }
  bool direct() const noexcept override { return true; }
  void copy(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  Result<void> hash(Xxh3& hash, const void* memory, std::size_t bytes) const override {
    hash.add(memory, bytes);
    return {};
  }
  Result<std::unique_ptr<CopyQueue>> open_queue() const override {
    return fail(Code::unsupported, "the CPU's memory needs no queue of copies");
  }
  Result<std::unique_ptr<Pinned>> pin(void*, std::size_t) const override {
    return std::make_unique<Pinned>();
  }
  Result<Lent> lend(const void*, std::size_t) const override {
    return fail(Code::unsupported, "the CPU's memory is lent by descriptors");
  }
  Result<std::unique_ptr<Mapped>> map(const Lent&, std::size_t) const override {
    return fail(Code::unsupported, "a device's memory is mapped for devices");
  }

 private:
  const std::string none_;
};

}  // namespace

const Device& host_device() noexcept {
  static const Host& host = *new Host;  // as long as the process
  return host;
}

}  // namespace weft::core
