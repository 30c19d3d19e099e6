// A program outside the tree, built against the installed library the way an application is.
#include <cstdio>
#include <tl/expected.hpp>
#include <weft/error.hpp>

int main() {
  const weft::Result<int> refused = weft::fail(weft::Code::timed_out, "nothing to wait for");
  if (refused || weft::to_string(refused.error().code()) != "timed_out") {
    std::fputs("the installed libweft does not work\n", stderr);
    return 1;
  }
  return 0;
}
