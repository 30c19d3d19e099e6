// An initiator of another process, which does what it is told.
#pragma once

#include <optional>
#include <stop_token>

#include "protocol/control.hpp"
#include "sides/initiator.hpp"

namespace weft::perf {

/// How another machine's clock differs from this one's.
struct ClockOffset {
  Nanoseconds ahead{}, error{};
};

/// This end: each step is a question and its answer.
class RemoteInitiator final : public Initiator {
 public:
  /// `own_clock`: whether its clock is another than this process's.
  static Result<std::unique_ptr<Initiator>> open(Control& control, const Point& point,
                                                 const std::vector<std::string>& addresses,
                                                 bool own_clock = false);

  const std::string& name() const override { return name_; }
  const Carrier& carrier() const override { return carrier_; }
  Result<void> prepare(const Task& task) override;
  Result<void> warm_up(Nanoseconds time) override;
  Result<Part> measure(Length length) override;
  Result<Findings> finish() override;

 private:
  RemoteInitiator(Control& control, bool own_clock) : control_(control), own_clock_(own_clock) {}
  Result<Json> ask(const std::string& step, Json details, Nanoseconds longer = {});
  template <typename Value>
  Result<Value> ask_for(const char* what, const std::string& step, Json details,
                        Nanoseconds longer = {});
  Result<ClockOffset> look_at_clock();
  Result<void> translate(Part& part, Clock::time_point asked) const;

  Control& control_;
  const bool own_clock_;
  ClockOffset clock_;
  std::string name_;
  Carrier carrier_;
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
