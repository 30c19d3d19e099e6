// Which NICs engines have opened, and which of them carry what.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engines.hpp"

namespace weft::test {

/// What each NIC has carried, in bytes, by the NIC's name.
using Carried = std::map<std::string, std::uint64_t>;

/// The NICs that an engine opens, by their names.
std::set<std::string> opened(const Config& config);

/// What each of the engine's NICs has carried of a transfer, by its ledger.
Carried bytes_by_nic(const Engine& engine, const Transfer& transfer);

/// Moves a whole segment of `a` to one of `b`, which is as large, and back; compares every byte,
/// and returns what each of a's NICs has carried of it.
Carried moved(Couple& pair, const Memory& local, const Memory& remote);

std::set<std::string> names_of(const Carried& bytes);

}  // namespace weft::test
