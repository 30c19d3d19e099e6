// Prints a machine as hwloc's XML, to be given to `weft topo --xml`.
#include <cstdio>
#include <string_view>

#include "hwloc_xml.hpp"
#include "machines.hpp"

int main(int argc, char** argv) {
  using namespace weft::facts;
  const std::string_view asked = argc == 2 ? argv[1] : "";
  if (asked == "--list") {
    for (const Machine& machine : machines())
      std::printf("%-10s %s\n", machine.name.c_str(), machine.about.c_str());
    return 0;
  }
  const Machine* machine = find_machine(asked);
  if (machine == nullptr) {
    std::fputs("usage: weft-topo-machines --list | NAME\n", stderr);
    return 2;
  }
  std::fputs(hwloc_xml(*machine).c_str(), stdout);
  return 0;
}
