// A progress thread that is kept busy.
#pragma once

#include <latch>
#include <memory>

#include "engines.hpp"

namespace weft::test {

/// Keeps the only progress thread of an engine busy until it goes.
class Occupied {
 public:
  Occupied(Couple& pair, Board& board) {
    TransferOptions options;
    options.priority = Priority::bulk;  // which threads carry
    options.on_end = [latches = latches_](const Ended&) {
      latches->inside.count_down();
      latches->over.wait();
    };
    const Pair some[] = {{0, 0, 1}};
    must(pair.a.write(board.local, board.there, some, options));
    latches_->inside.wait();
  }
  ~Occupied() { latches_->over.count_down(); }
  Occupied(const Occupied&) = delete;
  Occupied& operator=(const Occupied&) = delete;

 private:
  struct Latches {
    std::latch inside{1}, over{1};
  };
  const std::shared_ptr<Latches> latches_ = std::make_shared<Latches>();  // the thread's as well
};

}  // namespace weft::test
