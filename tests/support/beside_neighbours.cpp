// Runs a command beside two servers that spin in many threads and move memory, as programs on the
// same machine do: beside-neighbours COMMAND ARGUMENT... Ends as the command does.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int neighbours = 2;
// More than the caches of a core hold.
constexpr std::size_t words = (std::size_t{32} << 20) / sizeof(std::uint64_t);

/// Reads and writes memory without a pause.
[[noreturn]] void spin(std::uint64_t seed) {
  std::vector<std::uint64_t> memory(words, seed);
  volatile std::uint64_t seen = 0;
  for (;;)
    for (std::uint64_t& word : memory) seen = word += seen + seed;
}

[[noreturn]] void serve(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has gone already
  const unsigned threads = 2 * std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> all;
  for (unsigned i = 1; i < threads; ++i) all.emplace_back(spin, i);
  spin(threads);
}

}  // namespace

int main(int count, char** words_of_command) {
  if (count < 2) {
    std::fputs("usage: beside-neighbours COMMAND ARGUMENT...\n", stderr);
    return 2;
  }
  const pid_t self = getpid();
  std::vector<pid_t> servers;
  for (int i = 0; i < neighbours; ++i) {
    const pid_t server = fork();
    if (server == 0) serve(self);
    if (server > 0) servers.push_back(server);
  }
  const pid_t command = fork();
  if (command == 0) {
    execvp(words_of_command[1], words_of_command + 1);
    std::perror(words_of_command[1]);
    _exit(127);
  }
  int status = 0;
  const bool ended = command > 0 && waitpid(command, &status, 0) == command;
  for (const pid_t server : servers) {
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
  }
  if (!ended || servers.size() != neighbours) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
