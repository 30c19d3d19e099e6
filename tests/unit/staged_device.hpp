// What GPUs of tests' own have in common: no NIC and no CPU reaches their memory, which is the
// host's, and buffers are pinned without more ado.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/device.hpp"

namespace weft::core::test {

class StagedDevice : public Device {
 public:
  MemoryKind kind() const noexcept override { return MemoryKind::device; }
  const std::string& pci() const noexcept override { return pci_; }
  bool direct() const noexcept override { return false; }
  void copy(void*, const void*, std::size_t) const override { ADD_FAILURE() << "by the CPU"; }
  Result<void> hash(Xxh3&, const void*, std::size_t) const override {
    return fail(Code::unsupported, "nobody hashes here");
  }
  Result<std::unique_ptr<Pinned>> pin(void*, std::size_t) const override {
    return std::make_unique<Pinned>();
  }
  Result<Lent> lend(const void*, std::size_t) const override {
    return fail(Code::unsupported, "nothing is lent here");
  }
  Result<std::unique_ptr<Mapped>> map(const Lent&, std::size_t) const override {
    return fail(Code::unsupported, "nothing is mapped here");
  }

 private:
  const std::string pci_ = "0000:00:00.0";
};

}  // namespace weft::core::test
