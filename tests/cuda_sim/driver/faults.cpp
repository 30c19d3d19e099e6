#include "driver/faults.hpp"

#include <cstdlib>
#include <utility>

#include "driver/settings.hpp"

namespace weft::cuda_sim {

void Faults::plan(const std::string& name, unsigned nth, Status status) {
  plans_[name] = {nth, status};
}

void Faults::plan(const std::string& text) {
  for (const std::string& each : split(text, ',')) {
    const auto words = split(each, ':');
    if (words.size() == 3)
      plan(words[0], static_cast<unsigned>(std::atoi(words[1].c_str())),
           std::atoi(words[2].c_str()));
  }
}

namespace {

std::string without_version(std::string name) {
  if (name.ends_with("_v2")) name.resize(name.size() - 3);
  return name;
}

}  // namespace

void Faults::block(const std::string& name, bool block) {
  if (block)
    blocked_.insert(name);
  else
    blocked_.erase(name);
}

bool Faults::blocks(const std::string& name) const {
  return !blocked_.empty() && blocked_.contains(without_version(name));
}

Status Faults::strike(std::string name) {
  if (plans_.empty()) return success;
  const auto planned = plans_.find(without_version(std::move(name)));
  if (planned == plans_.end() || --planned->second.left > 0) return success;
  const Status status = planned->second.status;
  plans_.erase(planned);
  return status;
}

}  // namespace weft::cuda_sim
