#include "node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <thread>

#include "endpoints.hpp"
#include "life.hpp"
#include "resources.hpp"
#include "speech.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

class Node {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}
  int run();

 private:
  void open(Json order);
  void close(const Json& order);
  Resources settled() const;

  const std::string name_;
  Line director_{STDIN_FILENO, STDOUT_FILENO};
  Stalls stalls_;
  std::unique_ptr<Life> life_;
  std::optional<Resources> before_;  // the first engine was opened
};

/// What is left when everything is closed: threads of libraries take a moment to go.
Resources Node::settled() const {
  const Deadline deadline = Deadline::in(5s);
  Resources held = Resources::held();
  while (before_ && held.beyond(*before_) && !deadline.passed()) {
    std::this_thread::sleep_for(20ms);
    held = Resources::held();
  }
  return held;
}

void Node::open(Json order) {
  order["name"] = name_;
  if (!before_) {
    // What libraries make once and keep is made now.
    life_ = std::make_unique<Life>(order, director_, stalls_);
    if (const auto closed = life_->close(Deadline::in(10s)); !closed)
      throw std::runtime_error(closed.error().to_string());
    life_.reset();
    before_ = settled();
  }
  life_ = std::make_unique<Life>(order, director_, stalls_);
  Json words = life_->introduction();
  words["re"] = order.at("id");
  director_.say(words);
}

void Node::close(const Json& order) {
  const auto closed =
      life_->close(Deadline::in(std::chrono::milliseconds(order.at("ms").get<std::int64_t>())));
  Json words = {{"re", order.at("id")}, {"ok", closed.has_value()}};
  if (closed) {
    life_.reset();
    words["before"] = *before_;
    words["after"] = settled();
    words["resident"] = resident_bytes();
    words["names"] = descriptor_names();
  } else {
    words["error"] = closed.error();
    std::ignore = life_.release();  // it may still be touched
  }
  director_.say(words);
}

int Node::run() {
  while (auto order = director_.hear()) {
    const std::string& what = order->at("do").get_ref<const std::string&>();
    if (what == "quit") return 0;
    if (what == "open")
      open(std::move(*order));
    else if (what == "close")
      close(*order);
    else if (what == "cut")
      cut_connection(order->at("pick"));
    else if (life_)  // else it is about an engine that is closed
      life_->carry_out(*order);
  }
  return 1;
}

}  // namespace

int run_node(const std::string& name) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  // A terminal's interrupt is the director's to handle.
  signal(SIGINT, SIG_IGN);
  // So much may be said before the director listens.
  fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
  watch_endpoints();
  try {
    return Node(name).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace weft::chaos
