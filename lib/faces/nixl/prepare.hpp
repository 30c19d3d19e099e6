// From NIXL's descriptors to lists that Weft has checked.
#pragma once

#include <memory>

#include "nixl/abi.hpp"
#include "nixl/agents.hpp"
#include "nixl/loopback.hpp"
#include "nixl/request.hpp"

namespace weft::nixl {

/// Descriptor i of one list goes to, or comes from, descriptor i of the other. All remote ones are
/// of one agent. Takes time in proportion to their number, and waits for no peer: what can only be
/// checked with its word is checked when the request is posted.
Result<std::shared_ptr<Request>> prepare(abi::Operation operation, const abi::MetaList& local,
                                         const abi::MetaList& remote, Agents& agents,
                                         Loopback& loopback);

}  // namespace weft::nixl
