// A stand-in for libnixl: loads the plug-in as it does, and calls the backend in its orders.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

#include "nixl/abi.hpp"
#include "pattern.hpp"

namespace weft::nixl::test {

using abi::Status;

inline void PrintTo(Status status, std::ostream* out) {
  *out << static_cast<int>(status);
}

/// What nixl_plugin_init of the built plug-in gives.
abi::Plugin& plugin();

/// Memory of the test's, registered or not; or another one's, or a file's, by its descriptor.
struct Buffer {
  explicit Buffer(std::size_t bytes) : bytes(bytes) {}
  abi::Descriptor descriptor() const;
  std::optional<abi::Descriptor> other;
  std::vector<std::byte> bytes;
  abi::Metadata* local = nullptr;  // of the registration
  abi::Metadata* self = nullptr;   // the same as the remote side of transfers within the agent
};

/// A piece of a transfer: `length` bytes at an offset of a buffer on each side.
struct Piece {
  Buffer* local;
  std::size_t local_offset;
  const Buffer* remote;
  std::size_t remote_offset, length;
};

/// A descriptor of all of a registration's memory.
abi::MetaDescriptor piece_of(const abi::Descriptor& memory, abi::Metadata* metadata);

class Agent;

/// A request handle, released when this goes, as often as it takes.
class Handle {
 public:
  Handle(const Agent& agent, const Agent& other, abi::Operation operation,
         const std::vector<Piece>& pieces);
  Handle(const Agent& agent, std::string other, abi::Operation operation, abi::MetaList local,
         abi::MetaList remote);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  /// Of prepXfer: the other calls need `success`.
  Status prepared() const { return prepared_; }
  Status post();
  Status post(const std::string& notification);
  Status check();
  /// Until it has ended, 20 s at most.
  Status wait();
  /// Posts it and waits, if it could be prepared: how it came out.
  Status move();
  /// As an application: once, and again until it succeeds; false if that takes more than 20 s.
  bool release();
  Status release_once();

 private:
  Status post(const abi::RequestOptions& options);
  const Agent& agent_;
  const abi::Operation operation_;
  const std::string other_;
  abi::MetaList local_, remote_;
  abi::RequestHandle* handle_ = nullptr;
  Status prepared_;
};

class Agent {
 public:
  /// With the provider as a backend parameter.
  explicit Agent(std::string name, const std::string& provider, abi::Parameters more = {});
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  const std::string& name() const { return name_; }
  abi::BackendEngine& backend() const { return *backend_; }
  /// Registered memory, filled with the stream `seed`.
  Buffer& add(std::size_t bytes, std::uint64_t seed);
  /// The same in memory of the caller's.
  Buffer& adopt(std::span<std::byte> memory, std::uint64_t seed);
  /// `bytes` of a file from an offset on, as a file or as a block device.
  Buffer& add_file(int fd, std::uint64_t offset, std::size_t bytes);
  /// The same of the file that `text` names: "MODES:PATH".
  Buffer& add_file(const std::string& text, std::uint64_t number, std::size_t bytes);
  /// As it answers; what it wrote to standard error.
  std::pair<Status, std::string> refused(const abi::BlobDescriptor& memory, abi::MemoryType type);
  /// Of queryMem, for the texts of descriptors.
  std::vector<std::optional<abi::Parameters>> look_up(const std::vector<std::string>& texts);
  Status deregister(Buffer& buffer);
  /// All that the other one has registered so far, and how it is reached.
  Status load(const Agent& other);
  /// What libnixl does when the application removes a remote agent.
  void unload(const Agent& other);
  /// The first half of it: the metadata of its memory.
  void forget(const Agent& other);
  /// Those that have arrived, until there are `count`, or 10 s are over.
  abi::Notifications notifications(std::size_t count = 1);

 private:
  friend class Handle;
  Buffer& add_file(const abi::BlobDescriptor& memory);
  abi::Metadata* remote_metadata(const Agent& other, const Buffer& buffer) const;
  Status load_memory(const Agent& other);
  Buffer& registered(Buffer& buffer, abi::MemoryType type, const std::string& text = {});

  const std::string name_;
  abi::Parameters parameters_;
  abi::BackendEngine* backend_;
  std::deque<Buffer> buffers_;
  // By the other agent's name and buffer.
  std::map<std::pair<std::string, const Buffer*>, abi::Metadata*> remotes_;
};

/// A backend that is expected not to come about; what it wrote to standard error.
std::string refusal(abi::Parameters parameters);

}  // namespace weft::nixl::test
