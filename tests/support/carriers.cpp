#include "carriers.hpp"

#include <numeric>

namespace weft::test {
namespace {

/// The NICs of an engine's rails, by the rails' names.
std::map<std::string, std::string> nics_of(const Engine& engine) {
  std::map<std::string, std::string> nics;
  for (const RailInfo& rail : engine.info().rails) nics[rail.name] = rail.capability.domain;
  return nics;
}

std::uint64_t sum(const Carried& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0},
                         [](std::uint64_t all, const auto& each) { return all + each.second; });
}

}  // namespace

std::set<std::string> opened(const Config& config) {
  const Engine engine = must(Engine::open(config));
  std::set<std::string> names;
  for (const auto& [rail, nic] : nics_of(engine)) names.insert(nic);
  return names;
}

Carried bytes_by_nic(const Engine& engine, const Transfer& transfer) {
  const auto nics = nics_of(engine);
  Carried bytes;
  for (const auto& share : transfer.report().rails) bytes[nics.at(share.rail)] += share.bytes;
  return bytes;
}

Carried moved(Couple& pair, const Memory& local, const Memory& remote) {
  Board board(pair, local, remote);
  Carried bytes;
  const std::uint64_t size = board.local.size();
  const Pair all[] = {{0, 0, size}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    Transfer transfer = must(board.submit(direction, all));
    must(transfer.wait(soon()));
    board.expect_pieces(direction, all);
    for (const auto& [nic, count] : bytes_by_nic(pair.a, transfer)) bytes[nic] += count;
  }
  EXPECT_EQ(sum(bytes), 2 * size);
  return bytes;
}

std::set<std::string> names_of(const Carried& bytes) {
  std::set<std::string> names;
  for (const auto& [nic, count] : bytes) names.insert(nic);
  return names;
}

}  // namespace weft::test
