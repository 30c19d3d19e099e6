// An initiator of another process, which does what it is told.
#pragma once

#include <optional>
#include <stop_token>

#include "control.hpp"
#include "initiator.hpp"

namespace weft::perf {

/// This end: each step is a question and its answer.
class RemoteInitiator final : public Initiator {
 public:
  static Result<std::unique_ptr<Initiator>> open(Control& control, const Point& point,
                                                 const std::vector<std::string>& addresses);

  const std::string& name() const override { return name_; }
  const std::string& provider() const override { return provider_; }
  Result<void> prepare(const Task& task) override;
  Result<void> warm_up(Nanoseconds time) override;
  Result<Part> measure(Length length) override;
  Result<Findings> finish() override;

 private:
  explicit RemoteInitiator(Control& control) : control_(control) {}
  Result<Json> ask(const std::string& step, Json details, Nanoseconds longer = {});
  template <typename Value>
  Result<Value> ask_for(const char* what, const std::string& step, Json details,
                        Nanoseconds longer = {});

  Control& control_;
  std::string name_, provider_;
};

/// The other end.
class InitiatorService {
 public:
  /// A stop ends what is under way.
  InitiatorService(const Site& site, std::stop_token stop) : site_(site), stop_(std::move(stop)) {}

  Result<Json> answer(const Json& question);

 private:
  Result<Json> open(const Json& question);
  Result<Json> prepare(const Json& question);
  Result<Json> warm_up(const Json& question);
  Result<Json> measure(const Json& question);
  Result<Json> finish();

  const Site& site_;
  const std::stop_token stop_;
  std::unique_ptr<Initiator> initiator_;
  bool prepared_ = false;
};

}  // namespace weft::perf
