// What has happened, to be told when something went wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace weft::chaos {

class History {
 public:
  /// What an entry is about: numbers of nodes from 0 on (-1: none), of grants and transfers from 1.
  struct About {
    int node = -1;
    std::uint64_t grant = 0, transfer = 0;
  };

  void add(std::uint64_t step, const About& about, std::string text) {
    entries_.push_back({std::chrono::steady_clock::now(), step, about, std::move(text)});
    if (entries_.size() > kept) entries_.pop_front();
  }
  /// The last entries about any of these, and about nodes as a whole.
  std::vector<std::string> about(std::uint64_t grant, std::uint64_t transfer) const;

 private:
  static constexpr std::size_t kept = 100'000, told = 200;
  struct Entry {
    std::chrono::steady_clock::time_point when;
    std::uint64_t step;
    About about;
    std::string text;
  };
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::deque<Entry> entries_;
};

}  // namespace weft::chaos
