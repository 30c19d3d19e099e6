// Something that Weft promises never to happen, and that has happened.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft::chaos {

class Violation : public std::runtime_error {
 public:
  Violation(std::string kind, const std::string& text) : Violation(std::move(kind), text, 0, 0) {}
  Violation(std::string kind, const std::string& text, std::uint64_t transfer, std::uint64_t grant)
      : std::runtime_error(text), kind_(std::move(kind)), transfer_(transfer), grant_(grant) {}

  const std::string& kind() const noexcept { return kind_; }
  /// Those that it concerns; 0: none.
  std::uint64_t transfer() const noexcept { return transfer_; }
  std::uint64_t grant() const noexcept { return grant_; }

 private:
  std::string kind_;
  std::uint64_t transfer_, grant_;
};

}  // namespace weft::chaos
