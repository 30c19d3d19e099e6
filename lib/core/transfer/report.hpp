// What the reports of all transfers have in common.
#pragma once

#include <cstdint>
#include <weft/transfer.hpp>

namespace weft::core {

class PreparedState;
class TransferHost;

/// Enters what only the engine knows, as long as there is one: copies, and amplification. `own`:
/// bytes that it has copied, or had copied.
void enter_copies(const PreparedState& prepared, TransferHost& host, std::uint64_t own,
                  Report& report);

}  // namespace weft::core
