// Work in a forked child, for tests.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::test {

/// The exit status of a forked child that does `work`; 200 if it does not come to an end.
template <typename Work>
int in_forked_child(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    // Whatever waits for a thread that only the parent has would wait for ever.
    signal(SIGALRM, [](int) { _exit(200); });
    alarm(20);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace weft::test
