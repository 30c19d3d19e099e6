// Processes that see less of the host, as those of other containers do.
#pragma once

#include <functional>

namespace weft::test {

/// Runs the action in a new process in new namespaces (CLONE_NEWPID and the like, see unshare(2)),
/// in which it is root, has the /proc of its pid namespace, and returns its exit status. The
/// process dies with the caller's.
int run_apart(int namespaces, const std::function<int()>& action);

/// The exit status where the system allows no such namespaces, or lacks what the action needs.
constexpr int refused_apart = 77;

}  // namespace weft::test
