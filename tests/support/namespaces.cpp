#include "namespaces.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

namespace weft::test {
namespace {

bool write_to(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

/// In a new user namespace: the user of before is root.
bool become_root(uid_t user, gid_t group) {
  return write_to("/proc/self/setgroups", "deny") &&
         write_to("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") &&
         write_to("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
}

int run(const std::function<int()>& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "apart: %s\n", error.what());
    return 1;
  }
}

}  // namespace

int run_apart(int namespaces, const std::function<int()>& action) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(namespaces | CLONE_NEWNS) != 0) return refused_apart;
  if ((namespaces & CLONE_NEWUSER) != 0 && !become_root(user, group)) return refused_apart;
  const pid_t child = fork();
  if (child < 0) return refused_apart;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool own = mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ((namespaces & CLONE_NEWPID) == 0 ||
                      mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "") == 0);
    _exit(own ? run(action) : refused_apart);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace weft::test
