// How often each byte was copied on its way, by the ledger of the engine that moved it.
#pragma once

#include <weft/engine.hpp>

namespace weft::perf {

struct Copies {
  double per_byte = 0;  ///< On both sides together, as far as known.
  bool known = true;    ///< Whether that is all.
};

/// What the ledger of an engine holds of all transfers that have ended. Messages are not in it.
class Ledger {
 public:
  /// Empty where the engine keeps none (Config::metrics).
  static Ledger of(const Engine& engine);

  /// Of the transfers that have ended since.
  Copies since(const Ledger& before) const;

 private:
  bool kept_ = false;
  double bytes_ = 0, copied_ = 0, maybe_copied_ = 0;
};

}  // namespace weft::perf
