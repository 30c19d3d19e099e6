#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <weft/deadline.hpp>

#include "providers/libfabric/libfabric.hpp"
#include "raw/config.hpp"

namespace weft::perf {

/// An operation that is under way: until its completion has been read, libfabric keeps what it
/// needs for it here.
struct Posted {
  fi_context2 room{};
};

/// One libfabric endpoint with everything below it, used by one thread. Throws
/// `std::runtime_error`, whose text is one sentence.
class Endpoint {
 public:
  /// The `number`th of its side.
  Endpoint(const RawConfig& config, unsigned number, Waiting waiting, const std::string& shm_name,
           std::span<std::byte> memory);

  unsigned number() const noexcept { return number_; }
  /// Address, key and base of the memory, for `connect` on the other side.
  nlohmann::json describe() const;
  void connect(const nlohmann::json& peer);

  // False if the queue is full: read completions first. Offsets are those of the memory.

  /// Writes to the other side's memory, or reads from it.
  bool move(Posted& posted, std::size_t offset, std::size_t length);
  bool send(Posted& posted, std::size_t offset, std::size_t length, std::uint64_t tag);
  bool receive(Posted& posted, std::size_t offset, std::size_t length, std::uint64_t tag);
  /// An empty message, whose completion nobody is told of.
  bool send_empty(std::uint64_t tag);

  /// Calls `each(posted)` for what has completed and returns how many that were.
  template <typename F>
  std::size_t reap(F each) {
    fi_cq_entry entries[32];
    const std::size_t count = read(entries);
    for (std::size_t i = 0; i < count; ++i) each(*static_cast<Posted*>(entries[i].op_context));
    return count;
  }
  /// Waits as configured after a `reap` that found nothing, for some milliseconds at most: flags
  /// and deadlines of the caller's wake nobody.
  void idle();

 private:
  struct Closer {
    template <typename T>
    void operator()(T* object) const {
      fi_close(&object->fid);
    }
    void operator()(fi_info* info) const { providers::libfabric().freeinfo(info); }
  };
  template <typename T>
  using Owned = std::unique_ptr<T, Closer>;

  Owned<fi_info> look(const std::string& shm_name) const;
  Owned<fi_info> look_by(const fi_info& hints) const;
  bool is_address(const std::vector<std::uint8_t>& address) const;
  std::size_t read(std::span<fi_cq_entry> entries);

  const RawConfig& config_;
  const unsigned number_;
  const RawNic nic_;
  Waiting waiting_;
  std::span<std::byte> memory_;
  Clock::time_point spin_until_{};
  int wait_fd_ = -1;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t peer_base_ = 0, peer_key_ = 0;
  Owned<fi_info> info_;
  Owned<fid_fabric> fabric_;  // The order of these is, reversed, the order of closing.
  Owned<fid_domain> domain_;
  Owned<fid_cq> queue_;
  Owned<fid_av> addresses_;
  Owned<fid_mr> region_;
  Owned<fid_ep> endpoint_;
};

}  // namespace weft::perf
