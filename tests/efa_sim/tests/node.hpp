// One endpoint over a software EFA NIC, by libfabric's public interface alone: what both sides of a
// test are made of. A thread of its own moves it on and takes its completions.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace weft::efa_sim {

/// How an operation of this side ended, or what the other side did.
struct Completion {
  std::uint64_t flags = 0;
  std::uint64_t data = 0;
  std::size_t length = 0;
  std::uint64_t operation = 0;  // as it was posted; 0: none
  int error = 0;                // of fabric.h's FI_E..., or 0
  int device_error = 0;         // prov_errno

  bool received() const { return (flags & (FI_RECV | FI_REMOTE_WRITE)) != 0; }
};

/// What the other side needs to reach a node and its memory.
struct Reach {
  std::string address;
  std::uint64_t base = 0, key = 0;

  std::string to_text() const;
  static Reach from_text(const std::string& text);
};

class Node {
 public:
  /// The fabric is "efa" or "efa-direct". Throws std::runtime_error.
  Node(const std::string& fabric, std::size_t memory, const std::string& nic = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  static bool exists(const std::string& fabric);
  /// Whether the device itself does what fi_write asks for, and not the peer's provider, to which
  /// messages are sent.
  bool device_writes() const;
  Reach reach() const;
  std::byte* memory() { return memory_.get(); }
  std::size_t size() const { return size_; }
  /// Registers the node's memory once more, and returns the key.
  std::uint64_t register_again();
  void deregister_again();

  fi_addr_t add(const Reach& peer);
  // Posting returns libfabric's result; `at` is a place in the own memory.
  ssize_t write(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
                std::uint64_t there, std::uint64_t key);
  ssize_t write_data(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
                     std::uint64_t there, std::uint64_t key, std::uint64_t data);
  ssize_t read(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
               std::uint64_t there, std::uint64_t key);
  ssize_t send(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer);
  ssize_t receive(std::uint64_t operation, std::size_t at, std::size_t length);
  ssize_t send_tagged(std::uint64_t operation, std::size_t at, std::size_t length, fi_addr_t peer,
                      std::uint64_t tag);
  ssize_t receive_tagged(std::uint64_t operation, std::size_t at, std::size_t length,
                         std::uint64_t tag);

  /// The completions since the last call.
  std::vector<Completion> take();
  /// Errors of the endpoint (of its event queue) since the last call.
  std::vector<int> take_events();

 private:
  struct Context {
    fi_context2 space;  // the provider's
    std::uint64_t operation;
  };
  Context* context_of(std::uint64_t operation);
  /// Whether something ended.
  bool poll();
  void read_completions();
  void read_events();

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_eq* events_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* completions_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fid_mr* region_ = nullptr;
  fid_mr* second_region_ = nullptr;
  std::size_t size_;
  std::unique_ptr<std::byte[]> memory_;

  std::recursive_mutex mutex_;  // libfabric is called under it
  std::list<Context> contexts_;
  std::vector<Completion> taken_;
  std::vector<int> event_errors_;
  std::jthread thread_;
};

}  // namespace weft::efa_sim
