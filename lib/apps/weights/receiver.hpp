// A subscriber's role: grants a set for each round, passes on what comes, votes, and comes to an
// end with the others.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include <weft/weights.hpp>

#include "weights/ballot.hpp"
#include "weights/member.hpp"
#include "weights/sender.hpp"
#include "weights/versions.hpp"

namespace weft::weights {

class Receiver final : public Role {
 public:
  Receiver(Member& member, Rank self, std::vector<Segments> sets, SubscriberOptions options,
           std::shared_ptr<Versions> versions);

  void hear(const ContactPtr& from, const Note& note) override;
  void lost(const ContactPtr& contact) override;
  Clock::time_point advance(Clock::time_point now) override;

  /// Begins to pass on what comes, until close(), by a thread of its own.
  Result<void> start();
  /// After the member's thread has ended: no peer reads or writes any more, if it succeeds.
  bool close(Deadline deadline);

 private:
  enum class Phase {
    waiting,    // to meet its sources; for readers, and for sends and grants of earlier rounds
    receiving,  // what was granted
    draining,   // until no byte can come any more
    over,
  };
  struct Running {
    Round id;
    std::uint64_t step;
    Clock::time_point end;
    Ballot ballot;
    std::vector<Located> members;
    std::vector<Source> sources;
    Phase phase = Phase::waiting;
    std::size_t set = 0;
    std::map<std::string, ContactPtr> met = {};     // sources by address
    std::map<Stage, std::size_t> outstanding = {};  // sources that have not written all of it
    std::vector<Expectation> expectations = {};
    bool asks = false;
    Clock::time_point next_question = {};
    Stand shown = Stand::receiving;  // what readers and other ranks were told
    std::string why = {}, waits_for = {};
  };
  /// Grants on one set. They outlive their round until they are quiescent.
  struct Granted {
    std::vector<Grant> grants = {};
    std::optional<Clock::time_point> ending = {};
  };

  void join();
  void begin(const Note& note);
  void take(const ContactPtr& from, const Note& note);
  std::size_t member_of(std::uint32_t rank) const;

  void advance_round(Clock::time_point now);
  void grant();
  Result<void> meet_sources();
  Result<void> expect_from(const ContactPtr& contact, const Source& source);
  void arrived(const Round& round, Stage stage, const std::string& trouble);
  void complete();
  void give_up(const std::string& why);
  /// Tells readers and others what the ballot has come to.
  void follow_ballot();
  void tell_stand(const ContactPtr& to);
  void ask_others(Clock::time_point now);

  /// Revokes what is granted on a set; true when no byte can come any more.
  bool drained(std::size_t set, Clock::time_point now);

  Member& member_;
  const Rank self_;
  const std::vector<Segments> sets_;
  const SubscriberOptions options_;
  const std::shared_ptr<Versions> versions_;
  LeaderLink leader_;
  Sender sender_;
  std::thread passer_;
  std::vector<Located> members_;
  std::vector<Source> sources_;
  std::array<Granted, 2> granted_;
  std::optional<Running> round_;
};

}  // namespace weft::weights
