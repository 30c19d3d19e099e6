#include "line.hpp"

#include <unistd.h>

#include <cerrno>

namespace weft::chaos {

Line::~Line() {
  close(in_);
  if (out_ != in_) close(out_);
}

std::optional<Json> Line::hear() {
  while (true) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      Json object = Json::parse(heard_.begin(), heard_.begin() + static_cast<std::ptrdiff_t>(end));
      heard_.erase(0, end + 1);
      return object;
    }
    char buffer[16384];
    const ssize_t got = read(in_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno != EAGAIN)) ended_ = true;
    if (got <= 0) return std::nullopt;
    heard_.append(buffer, static_cast<std::size_t>(got));
  }
}

void Line::say(const Json& object) {
  const std::lock_guard lock(mutex_);
  unsaid_ += object.dump() + '\n';
  write_out();
}

void Line::flush() {
  const std::lock_guard lock(mutex_);
  write_out();
}

void Line::write_out() {
  std::size_t done = 0;
  while (done < unsaid_.size()) {
    const ssize_t written = write(out_, unsaid_.data() + done, unsaid_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    done = written < 0 ? unsaid_.size() : done + static_cast<std::size_t>(written);
  }
  unsaid_.erase(0, done);
}

}  // namespace weft::chaos
