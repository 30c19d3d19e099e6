// What a NIC knows of the processes that opened it: registered memory by key, and peers by handle.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shared/wire.hpp"

namespace weft::efa_sim {

/// Of ibv_access_flags.
enum Right : std::uint32_t { local_write = 1, remote_write = 2, remote_read = 4 };

/// A protection domain of a process: what memory, peers and queue pairs belong to.
struct Domain {
  std::uint32_t number;
  pid_t process;
};

class RegionTable {
 public:
  struct Region {
    Domain domain;
    std::uint64_t address, length;
    std::uint32_t rights;

    /// Of 4 KiB, as most memory of hosts has them.
    std::uint64_t pages() const;
  };
  /// Returns a key: a new one, or (reusing) the lowest that is free.
  std::uint32_t add(const Region& region, bool reusing);
  bool remove(std::uint32_t key, const Domain& domain);
  void remove_all_of(const Domain& domain);
  /// Whether the key is good for that, and the memory the domain's.
  bool allows(const Domain& domain, std::uint32_t key, std::uint64_t address, std::uint64_t length,
              std::uint32_t rights) const;
  std::size_t size() const { return regions_.size(); }
  std::uint64_t pages() const { return pages_; }
  /// What a process has registered; 0: all of them.
  Registrations of(pid_t process) const;

 private:
  std::map<std::uint32_t, Region> regions_;
  std::uint64_t pages_ = 0;
  std::map<pid_t, std::uint64_t> made_;
  std::uint32_t next_ = 0x100;
};

class AddressTable {
 public:
  /// The handle of an address within a domain; counted, since it may be asked for many times.
  std::uint16_t add(const Domain& domain, const Gid& gid);
  bool remove(std::uint16_t handle, const Domain& domain);
  void remove_all_of(const Domain& domain);
  std::optional<Gid> find(const Domain& domain, std::uint16_t handle) const;
  /// The handle under which a domain knows an address.
  std::optional<std::uint16_t> handle_of(const Domain& domain, const Gid& gid) const;
  /// How many are in use.
  std::size_t size() const;

 private:
  struct Entry {
    std::uint32_t domain = 0;
    Gid gid{};
    unsigned uses = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace weft::efa_sim
