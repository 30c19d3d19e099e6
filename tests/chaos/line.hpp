// JSON objects, one per line, over a pair of descriptors.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace weft::chaos {

using Json = nlohmann::json;

class Line {
 public:
  /// Takes both over. Where one was opened so, reading or writing never waits.
  Line(int in, int out) : in_(in), out_(out) {}
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  int in() const noexcept { return in_; }
  /// The next object, if a whole one has come. Waits for it where the descriptor does.
  std::optional<Json> hear();
  /// Nothing more will come.
  bool ended() const noexcept { return ended_; }
  /// From any thread. What the other side can't hear any more is lost; what it has no room for yet
  /// goes out with flush().
  void say(const Json& object);
  void flush();

 private:
  void write_out();

  const int in_, out_;
  std::string heard_;
  bool ended_ = false;
  std::mutex mutex_;
  std::string unsaid_;
};

}  // namespace weft::chaos
