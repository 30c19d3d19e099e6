#include "random_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <utility>

namespace weft::facts {
namespace {

/// Standard distributions differ between libraries; this does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  unsigned upto(unsigned most) { return static_cast<unsigned>(engine_() % (most + 1ULL)); }
  unsigned between(unsigned least, unsigned most) { return least + upto(most - least); }
  bool one_in(unsigned many) { return upto(many - 1) == 0; }
  double one_of(std::initializer_list<double> choices) {
    return *(choices.begin() + upto(static_cast<unsigned>(choices.size()) - 1));
  }
  template <typename Item>
  void shuffle(std::vector<Item>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[upto(static_cast<unsigned>(i) - 1)]);
  }

 private:
  std::mt19937_64 engine_;
};

class Generator {
 public:
  Generator(std::uint64_t seed, Speeds speeds) : dice_(seed), speeds_(speeds) {
    usual_gbps_ = dice_.one_of({10, 25, 100, 200, 400});
    machine_.name = fmt::format("random-{}", seed);
    add_nodes();
    const unsigned roots = dice_.upto(6);
    for (unsigned i = 0; i < roots && bus_ < 0xd0; ++i) add_root();
    for (unsigned i = dice_.one_in(4) ? dice_.between(1, 3) : 0; i > 0; --i)
      machine_.beside_pci.push_back({dice_.one_in(2) ? Kind::rdma : Kind::network,
                                     fmt::format("v{}", dice_.upto(999) * 10 + i), speed()});
  }

  Machine take() { return std::move(machine_); }

 private:
  void add_nodes() {
    const unsigned sockets = dice_.between(1, 4), each = dice_.between(1, 2);
    int id = 0;
    for (unsigned i = 0; i < sockets; ++i) {
      Package& package = machine_.packages.emplace_back();
      for (unsigned j = 0; j < each; ++j) package.nodes.push_back({id++, 1ULL << 30});
    }
    if (id == 1 || dice_.one_in(2)) return;
    const unsigned near = dice_.between(11, 16), far = dice_.between(17, 32);
    for (int from = 0; from < id; ++from) {
      auto& row = machine_.distances.emplace_back();
      for (int to = 0; to < id; ++to) {
        const bool same_socket = from / static_cast<int>(each) == to / static_cast<int>(each);
        row.push_back(from == to ? 10 : same_socket ? near : far);
      }
    }
  }

  void add_root() {
    const unsigned bus = bus_++;
    Function root = root_complex(fill(bus, 0));
    if (dice_.one_in(5)) {
      machine_.roots.push_back(std::move(root));
      return;
    }
    auto& nodes =
        machine_.packages[dice_.upto(static_cast<unsigned>(machine_.packages.size()) - 1)].nodes;
    nodes[dice_.upto(static_cast<unsigned>(nodes.size()) - 1)].roots.push_back(std::move(root));
  }

  /// What is on a bus. Bridges lead to buses with higher numbers, as they do in reality.
  std::vector<Function> fill(unsigned bus, unsigned depth) {
    std::vector<Function> below;
    const unsigned count = dice_.between(depth == 0 ? 1 : 2, 4);
    for (unsigned slot = 0; slot < count; ++slot) {
      const std::string pci = address(bus, slot);
      const bool room = bus_ < 0xe0;
      if (room && depth < 3 && dice_.one_in(3)) {
        const unsigned next = bus_++;
        below.push_back(bridge(pci, link(), fill(next, depth + 1)));
      } else if (room && dice_.one_in(3)) {  // behind a port of its own
        const unsigned next = bus_++;
        below.push_back(bridge(pci, link(), {device(address(next))}));
      } else {
        below.push_back(device(pci));
      }
    }
    return below;
  }

  Function device(const std::string& pci) {
    switch (dice_.upto(6)) {
      case 0:
      case 1:
        return {pci, "0302", "10de:2330", gen5_x16, "GPU"};
      case 2:
        return {pci, "0108", "144d:a808", gen3_x4, "", {{Kind::disk, "nvme" + pci.substr(5, 2)}}};
      case 3:
        return {pci, "0200", "8086:1563", gen3_x4, "", {{Kind::network, name("eth"), speed()}}};
      default:
        return {pci,         "0207",
                "15b3:1021", gen5_x16,
                "",          {{Kind::network, name("ib")}, {Kind::rdma, name("mlx5_"), speed()}}};
    }
  }

  /// Names are not in the order of addresses.
  std::string name(const char* kind) {
    return fmt::format("{}{}", kind, dice_.upto(999) * 1000 + ++named_);
  }

  double speed() {
    if (speeds_ == Speeds::equal) return usual_gbps_;
    return dice_.one_of({0, 1, 10, 25, 100, 100, 200, 400});
  }

  double link() {
    if (speeds_ == Speeds::equal) return 64 * gen5_x16;
    return dice_.one_of({0, gen1_x8, gen3_x4, gen3_x16, gen4_x16, gen5_x16});
  }

  Dice dice_;
  const Speeds speeds_;
  double usual_gbps_ = 0;
  unsigned bus_ = 0, named_ = 0;
  Machine machine_;
};

void shuffle_below(Function& at, Dice& dice) {
  dice.shuffle(at.below);
  dice.shuffle(at.devices);
  for (Function& each : at.below) shuffle_below(each, dice);
}

void rename_below(Function& at, Dice& dice, unsigned& count) {
  for (OsDevice& each : at.devices) each.name = fmt::format("n{}x{}", dice.upto(999), ++count);
  for (Function& each : at.below) rename_below(each, dice, count);
}

template <typename Change>
void change_roots(Machine& machine, Change change) {
  for (Package& package : machine.packages)
    for (Node& node : package.nodes) change(node.roots);
  change(machine.roots);
}

}  // namespace

Machine random_machine(std::uint64_t seed, Speeds speeds) {
  return Generator(seed, speeds).take();
}

Machine shuffled(Machine machine, std::uint64_t seed) {
  Dice dice(seed);
  change_roots(machine, [&](std::vector<Function>& roots) {
    dice.shuffle(roots);
    for (Function& each : roots) shuffle_below(each, dice);
  });
  dice.shuffle(machine.beside_pci);
  return machine;
}

Machine renamed(Machine machine, std::uint64_t seed) {
  Dice dice(seed);
  unsigned count = 0;
  change_roots(machine, [&](std::vector<Function>& roots) {
    for (Function& each : roots) rename_below(each, dice, count);
  });
  return machine;
}

}  // namespace weft::facts
