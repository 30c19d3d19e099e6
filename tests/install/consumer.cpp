// A program outside the tree, built against the installed library the way an application is.
#include <chrono>
#include <cstdio>
#include <weft/weft.hpp>

int main() {
  using namespace std::chrono_literals;
  const auto closed = weft::Engine::open({}).and_then(
      [](weft::Engine&& engine) { return engine.close(weft::Deadline::in(5s)); });
  if (closed) return 0;
  std::fprintf(stderr, "the installed libweft does not work: %s\n",
               closed.error().to_string().c_str());
  return 1;
}
