// Runs a command over software EFA NICs.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "efa_fabric.hpp"

extern char** environ;

namespace weft::efa_sim {
namespace {

constexpr int skipped = 77;  // as test runners understand it

/// With the signals as they were before this program blocked some.
pid_t spawn(std::vector<std::string>& words, const sigset_t& signals) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &signals);
  pid_t process = -1;
  const int error =
      posix_spawnp(&process, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw std::runtime_error(fmt::format("can't run {}: {}", words[0], strerror(error)));
  return process;
}

/// Waits for the command, passing signals on, and returns what a shell would.
int run(std::vector<std::string>& words) {
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, each);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const pid_t process = spawn(words, before);
  while (true) {
    int signal = 0;
    sigwait(&watched, &signal);
    int status;
    if (signal != SIGCHLD) {
      kill(process, signal);
    } else if (waitpid(process, &status, WNOHANG) == process) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
}

int main(int count, char** values) {
  CLI::App app("Runs a command over software EFA NICs, under libfabric's own efa provider.");
  EfaOptions options;
  std::vector<std::string> faults, words;
  int host = -1;
  app.add_option("--nics", options.nics, "NICs of each host")->check(CLI::Range(1, 64));
  app.add_option("--nic-list", options.nic_list, "name@pci-address@gigabits[@numa-node],...");
  app.add_option("--hosts", options.hosts,
                 "simulated hosts among which processes are dealt (0: one for each process)");
  app.add_option("--host", host, "the host of the command and of all that it starts");
  app.add_option("--fault", faults, "a setting, name=value; may be repeated");
  app.add_option("--seed", options.seed, "of all that is random");
  app.add_option("command", words, "the command and its arguments, after --")->required();
  app.positionals_at_end();
  CLI11_PARSE(app, count, values);
  for (const std::string& each : faults) options.settings += each + ' ';
  const EfaFabric fabric(options);
  try {
    EfaControl(fabric.environment().at(socket_variable)).check_reach();
  } catch (const std::exception& error) {
    fmt::print(stderr, "with-efa: skipped: {}\n", error.what());
    return skipped;
  }
  fabric.set_environment(host);
  return run(words);
}

}  // namespace
}  // namespace weft::efa_sim

int main(int count, char** values) {
  try {
    return weft::efa_sim::main(count, values);
  } catch (const std::exception& error) {
    fmt::print(stderr, "with-efa: {}\n", error.what());
    return 1;
  }
}
