#include "weights/versions.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace weft::weights {

std::optional<std::uint64_t> Versions::step() const noexcept {
  const std::uint64_t step = visible_.load(std::memory_order_acquire);
  return step == no_step ? std::nullopt : std::optional(step);
}

Standing Versions::standing() const {
  const core::Lock lock(mutex_);
  return standing_;
}

Result<Versions::Pinned> Versions::pin() {
  const core::Lock lock(mutex_);
  if (standing_.state != StepState::ready) {
    switch (standing_.state) {
      case StepState::none:
        return fail(Code::unavailable, "nothing was published yet");
      case StepState::in_doubt:
        return fail(Code::unavailable, "it is not known yet whether all have the next step");
      default:
        return fail(Code::unavailable, "no whole step is in memory");
    }
  }
  const std::size_t set = sets_ == 1 ? 0 : current_;
  ++pins_[set];
  // Any type, so that its deleter runs once.
  return Pinned{
      standing_.step, set,
      std::shared_ptr<void>(this, [self = shared_from_this(), set](void*) { self->unpin(set); })};
}

void Versions::unpin(std::size_t set) {
  std::function<void()> freed;
  {
    const core::Lock lock(mutex_);
    if (--pins_[set] == 0) freed = freed_;
  }
  if (freed) freed();
}

Result<void> Versions::wait(std::uint64_t step, Deadline deadline) {
  core::Lock lock(mutex_);
  const bool came = changed_.wait(mutex_, deadline, [&]() WEFT_REQUIRES(mutex_) {
    return closed_ || (standing_.state == StepState::ready && standing_.step >= step);
  });
  if (closed_) return fail(Code::closed, "the subscriber is closed");
  if (came) return {};
  return fail(Code::timed_out, fmt::format("step {} did not come in time{}{}", step,
                                           standing_.why.empty() ? "" : "; ", standing_.why));
}

Result<std::optional<std::size_t>> Versions::begin() {
  const core::Lock lock(mutex_);
  const std::size_t set = sets_ == 1 ? 0 : 1 - current_;
  if (sets_ == 1) show(StepState::unusable);
  if (pins_[set] > 0) return std::nullopt;
  if (sets_ == 1) {
    if (auto kept = write_state("unusable"); !kept) return fail(std::move(kept.error()));
    intact_ = false;
  }
  return set;
}

void Versions::doubt() {
  const core::Lock lock(mutex_);
  show(StepState::in_doubt);
}

Result<void> Versions::commit(std::uint64_t step) {
  const core::Lock lock(mutex_);
  if (sets_ == 2) current_ = 1 - current_;
  intact_ = true;
  standing_.step = step;
  auto kept = write_state(fmt::format("step {} set {}", step, sets_ == 1 ? 0 : current_));
  show(StepState::ready);
  return kept;
}

void Versions::give_up(std::string why) {
  const core::Lock lock(mutex_);
  standing_.why = std::move(why);
  if (intact_)
    show(StepState::ready);
  else if (standing_.state == StepState::in_doubt)
    show(StepState::unusable);
}

void Versions::lose() {
  const core::Lock lock(mutex_);
  intact_ = false;
  show(StepState::unusable);
}

void Versions::connected(bool to_leader) {
  const core::Lock lock(mutex_);
  standing_.connected = to_leader;
}

void Versions::close() {
  {
    const core::Lock lock(mutex_);
    closed_ = true;
    freed_ = nullptr;
  }
  changed_.notify_all();
}

void Versions::show(StepState state) {
  standing_.state = state;
  visible_.store(state == StepState::ready ? standing_.step : no_step, std::memory_order_release);
  changed_.notify_all();
}

Result<void> Versions::write_state(const std::string& text) const {
  if (state_file_.empty()) return {};
  std::error_code none;
  const auto there = std::filesystem::symlink_status(state_file_, none).type();
  if (std::filesystem::exists(std::filesystem::file_status(there)) &&
      there != std::filesystem::file_type::regular && there != std::filesystem::file_type::symlink)
    return fail(Code::invalid_argument,
                fmt::format("{} is no regular file, and nothing takes its place", state_file_));
  const std::string fresh = state_file_ + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  file << text << '\n';
  file.close();
  if (file && std::rename(fresh.c_str(), state_file_.c_str()) == 0) return {};
  return fail(Code::unavailable, fmt::format("{} can't be written: {}", state_file_,
                                             std::system_category().message(errno)));
}

}  // namespace weft::weights
