#include "driver/faults.hpp"

#include <cstdlib>

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

Status Faults::strike(std::string name) {
  if (plans_.empty()) return success;
  if (name.ends_with("_v2")) name.resize(name.size() - 3);
  const auto planned = plans_.find(name);
  if (planned == plans_.end() || --planned->second.left > 0) return success;
  const Status status = planned->second.status;
  plans_.erase(planned);
  return status;
}

}  // namespace weft::cuda_sim
