// What a process and the device say to each other over their socket (SOCK_SEQPACKET): fixed
// structures, one request and one reply at a time. Both sides are of one build.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "shared_memory.hpp"

namespace weft::efa_sim {

using Gid = std::array<std::uint8_t, 16>;

enum class Verb : std::uint32_t {
  hello,          // -> Welcome, with descriptors of the DevicePage and of what wakes the device
  configure,      // text: settings that change
  counters,       // -> Counters
  registrations,  // number: a process, or 0 for all -> Registrations
  list,           // -> NicList
  open,           // text: the NIC's name -> object: a context, and its limits
  close,          // object: the context
  create_domain,  // a protection domain; object: the context
  destroy_domain,
  create_region,            // object: the domain; region -> number: its key
  destroy_region,           // object: the domain, number: the key
  create_address,           // object: the domain; gid -> number: the address handle
  destroy_address,          // object: the domain, number: the address handle
  create_completion_queue,  // object: the context; completion_queue -> descriptor of its memory
  destroy_completion_queue,
  create_queue_pair,  // object: the domain; queue_pair -> number: QPN, descriptor of its memory
  modify_queue_pair,
  destroy_queue_pair,
};

/// As far as they are told apart: ibv_qp_state.
enum class QueuePairState : std::uint32_t { other, receives, sends, error };

struct Request {
  std::uint32_t version;  // = wire_version
  Verb verb;
  std::uint32_t object;
  std::uint32_t number;
  union {
    struct {
      std::int32_t host;     // the simulated host, -1: one of the device's choice
      std::uint64_t cookie;  // the address of a word that holds hello_cookie
    } hello;
    struct {
      std::uint64_t address, length;
      std::uint32_t rights;  // ibv_access_flags
    } region;
    Gid gid;
    struct {
      std::uint32_t size;
      std::uint32_t has_channel;  // with a descriptor: where events are written
      std::uint64_t event;        // what is written there
    } completion_queue;
    struct {
      std::uint32_t send_queue, receive_queue;  // objects: their completion queues
      std::uint32_t send_size, receive_size;
      std::uint32_t unsolicited;  // writes with data need no receive
    } queue_pair;
    struct {
      QueuePairState state;
      std::uint32_t has_queue_key, queue_key, has_retries, retries;
    } change;
    char text[4096];
  };
};

struct NicInformation {
  char name[32];
  char pci[32];
  std::uint32_t gigabits;
  std::uint32_t up;
  Gid gid;
};

/// What queries of a NIC return.
struct Limits {
  std::uint32_t part, send_size, receive_size, inline_size, message_size, read, write, unsolicited,
      interrupts;
  std::uint32_t region_pages, regions, address_handles;
};

struct Counters {
  std::uint64_t operations, packets, overtakes, duplicates, not_ready, refused, full_queues,
      doorbells;  // of send queues, but for those of libfabrics that ring them themselves
};

/// Memory registered with all NICs of all hosts.
struct Registrations {
  std::uint64_t made;     // regions since the device started
  std::uint64_t regions;  // that are registered now
  std::uint64_t pages;    // of these
};

struct Reply {
  std::int32_t error;  // errno
  std::uint32_t object;
  std::uint32_t number;
  std::uint64_t nanoseconds;  // for which the process waits, as for a real device
  union {
    struct {
      char folder[200];  // of the device: its socket and a tree of sysfs
      std::uint32_t host;
    } welcome;
    struct {
      std::uint32_t count;
      std::uint32_t fork;  // takes pinned pages away, unless libibverbs is asked to keep them
      NicInformation nics[64];
    } list;
    Limits limits;
    Counters counters;
    Registrations registrations;
    char text[512];  // of an error
  };
};

constexpr std::uint32_t wire_version = 1 + sizeof(Request) * 16 + sizeof(Reply) * 65536;
constexpr std::uint64_t hello_cookie = 0x7765667465666121;
constexpr const char* socket_variable = "WEFT_EFA_DEVICE";
constexpr const char* host_variable = "WEFT_EFA_HOST";

using Descriptors = std::vector<Descriptor>;

/// A message that arrived, and what came with it.
template <typename Message>
struct Received {
  Message message;
  Descriptors descriptors;
};

bool send_bytes(int socket, const void* data, std::size_t bytes, const std::vector<int>& files);
/// Whether that many bytes came; false with errno 0 when the other side is gone.
bool receive_bytes(int socket, void* data, std::size_t bytes, Descriptors& files);

template <typename Message>
bool send_message(int socket, const Message& message, const std::vector<int>& files = {}) {
  return send_bytes(socket, &message, sizeof message, files);
}

template <typename Message>
std::optional<Received<Message>> receive_message(int socket) {
  Received<Message> received{};
  if (!receive_bytes(socket, &received.message, sizeof received.message, received.descriptors))
    return std::nullopt;
  return received;
}

/// A socket that is connected to (or listens at) a path. None: see errno.
Descriptor connect_to(const char* path);
Descriptor listen_at(const char* path);

/// Says hello, for a process of that host, and lets the device copy from and to this process's
/// memory. None: the device is gone.
std::optional<Received<Reply>> greet(int socket, std::int32_t host);

/// A request about an object.
Request request(Verb verb, std::uint32_t object = 0, std::uint32_t number = 0);

}  // namespace weft::efa_sim
