// The process of the rogue. Arguments: the path of its memory, the victim's rail address, and what
// libfabric is to be asked for; with no more than the address it goes by Weft's shm.
#include <unistd.h>

#include <memory>
#include <sstream>

#include "engines.hpp"
#include "process.hpp"
#include "providers/libfabric/environment.hpp"
#include "shared_memory.hpp"
#include "shm_stranger.hpp"
#include "stranger.hpp"

namespace weft::test {
namespace {

std::unique_ptr<Rogue> make_rogue(const std::vector<std::string>& arguments,
                                  std::span<std::byte> memory) {
  const Blob blob = from_hex(arguments.at(1));
  const std::string address(reinterpret_cast<const char*>(blob.data()), blob.size());
  if (arguments.size() == 2) return std::make_unique<ShmStranger>(address, memory);
  Fabric fabric;
  fabric.provider = arguments.at(2);
  fabric.fabric = arguments.at(3);
  fabric.memory_mode = std::stoul(arguments.at(4));
  fabric.address_format = static_cast<std::uint32_t>(std::stoul(arguments.at(5)));
  fabric.delivery_complete = arguments.at(6) == "visible";
  fabric.address = address;
  // Some of it is what the provider needs to be there at all.
  providers::settle_environment();
  return std::make_unique<Stranger>(fabric, memory);
}

/// Questions:
///   write, write_data or read  ADDRESS KEY SAID-LENGTH LENGTH MILLISECONDS
///   send CLASS LENGTH MILLISECONDS
///   base KEY
///   scribble COUNT
/// Operations are answered by how they ended and the error.
std::string answer(Rogue& rogue, const std::string& question) {
  std::istringstream words(question);
  std::string verb;
  words >> verb;
  std::uint64_t number[5]{};
  for (std::uint64_t& each : number) words >> each;
  if (verb == "base") return std::to_string(rogue.base_of(number[0]));
  if (verb == "scribble") {
    rogue.scribble(number[0]);
    return "yes";
  }
  Ending ending;
  if (verb == "send") {
    ending = rogue.send(static_cast<Class>(number[0]), number[1],
                        Deadline::in(std::chrono::milliseconds(number[2])));
  } else {
    const Aim aim{number[0], number[1], number[2]};
    const auto deadline = Deadline::in(std::chrono::milliseconds(number[4]));
    ending = verb == "read"    ? rogue.read(aim, number[3], deadline)
             : verb == "write" ? rogue.write(aim, number[3], deadline)
                               : rogue.write_data(aim, number[3], deadline);
  }
  return std::to_string(ending.how) + ' ' + std::to_string(ending.error);
}

WEFT_ROLE(rogue) {
  const SharedMemory memory(arguments.at(0));
  const auto rogue = make_rogue(arguments, memory.bytes());
  parent.say("ready");
  while (true) {
    const std::string question = parent.hear(Deadline::in(120s));
    if (question == "end") break;
    parent.say(answer(*rogue, question));
  }
  // Closing may wait for ever for what did not end.
  _exit(0);
}

}  // namespace
}  // namespace weft::test
