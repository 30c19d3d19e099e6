// Options as text, both ways: "true", "512KiB", "100us", "shm,tcp".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include <weft/config.hpp>

namespace weft::core {

// Each reads a text. On failure it returns what it expected ("a number"), on success nothing.
std::string from_text(std::string_view text, std::string& value);
std::string from_text(std::string_view text, bool& value);
std::string from_text(std::string_view text, std::uint64_t& value);
std::string from_text(std::string_view text, unsigned& value);
std::string from_text(std::string_view text, Nanoseconds& value);
std::string from_text(std::string_view text, std::vector<std::string>& value);
std::string from_text(std::string_view text, Progress& value);
std::string from_text(std::string_view text, TransportKind& value);
std::string from_text(std::string_view text, Policy& value);
std::string from_text(std::string_view text, std::map<std::string, Policy>& value);

std::string to_text(const std::string& value);
std::string to_text(bool value);
std::string to_text(std::uint64_t value);
std::string to_text(unsigned value);
std::string to_text(Nanoseconds value);
std::string to_text(const std::vector<std::string>& value);
std::string to_text(Progress value);
std::string to_text(TransportKind value);
std::string to_text(const Policy& value);
std::string to_text(const std::map<std::string, Policy>& value);

}  // namespace weft::core
