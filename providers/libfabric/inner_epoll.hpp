// The descriptors that an epoll descriptor waits for.
#pragma once

#include <optional>

namespace weft::providers {

/// The one epoll descriptor of this process that `epoll`, another one, waits for; none if there is
/// none or several, or if the system (/proc) does not tell.
std::optional<int> inner_epoll(int epoll);

}  // namespace weft::providers
