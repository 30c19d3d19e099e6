// Publisher 0's second role: it knows all ranks, makes the plan, and counts the votes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>
#include <weft/weights.hpp>

#include "weights/member.hpp"
#include "weights/tally.hpp"

namespace weft::weights {

class Leader final : public Role {
 public:
  Leader(Member& member, const PublisherOptions& options);

  void hear(const ContactPtr& from, const Note& note) override;
  void lost(const ContactPtr& contact) override;
  Clock::time_point advance(Clock::time_point now) override;

 private:
  /// A publisher that waits in publish().
  struct Ready {
    std::uint64_t call, step;
    Clock::time_point give_up, end;
  };
  struct Joined {
    ContactPtr contact;
    Rank description;
    std::string address;
    std::optional<Ready> ready = {};
    std::uint64_t call = 0;  // that is in the round
  };
  using Group = std::map<std::uint32_t, Joined>;  // by rank

  struct Running {
    Round id;
    std::uint64_t step;
    Clock::time_point give_up, end;
    std::vector<std::uint32_t> ranks;  // of the members, who are subscribers
    std::vector<ContactPtr> contacts;  // null: lost
    Tally tally;
    bool stop_sent = false, decision_sent = false, concluded = false;
    std::string why = {};
  };

  void join(const ContactPtr& from, const Note& note);
  void rejoin(const ContactPtr& from, const Note& note);
  void take_ready(Joined& publisher, const Note& note);
  void take_stand(const ContactPtr& from, const Note& note);
  static Joined* find(Group& group, const ContactPtr& contact);

  void consider_round(Clock::time_point now);
  std::string missing() const;
  Result<void> make_plan();
  void tell(Plan plan, const std::vector<Located>& members);
  std::uint64_t newest_step() const;
  void begin_round();

  void stop(const std::string& why);
  void follow_tally();
  bool all_told() const;
  void conclude(Outcome outcome);
  void refuse_ready(Joined& publisher, const std::string& why);
  void tell_members(const Note& note);

  Member& member_;
  const PublisherOptions options_;
  const std::uint64_t life_;
  std::uint64_t rounds_ = 0;
  Group publishers_, subscribers_;
  bool plan_is_old_ = true;
  std::uint64_t last_step_ = 0;  // that may be anywhere, of earlier rounds and who joined
  std::optional<Running> round_;
};

}  // namespace weft::weights
