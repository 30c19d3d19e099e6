// A process that is connected to the device, and all that it has made there: gone when it is.
#pragma once

#include "fabric.hpp"

namespace weft::efa_sim {

/// What all sessions share.
struct Device {
  Device(std::vector<NicDescription> nics, std::uint64_t seed, std::string_view settings,
         std::string folder);

  Fabric fabric;
  const std::string folder;
  const SharedMemory page;  // a DevicePage
  const Descriptor wake;    // an eventfd
  std::uint32_t hosts = 0;  // among which processes are dealt that name none; 0: one for each
  std::uint32_t dealt = 0;
  std::uint32_t last_object = 0;

  DevicePage& seen() const { return *reinterpret_cast<DevicePage*>(page.data()); }
};

class Session {
 public:
  Session(Device& device, Descriptor socket, pid_t process);
  ~Session();

  int socket() const { return socket_.get(); }
  /// Readable when the process has ended, even while a child of it keeps the socket open.
  int process_end() const { return process_end_.get(); }
  /// Answers a request that has come. Returns whether the session goes on.
  bool answer();

 private:
  struct Context {
    Nic* nic;
  };
  struct OwnDomain {
    Nic* nic;
    Domain domain;
  };
  struct OwnCompletionQueue {
    Nic* nic;
    CompletionQueue* queue;
  };

  void handle(const Request& request, Descriptors& files, Reply& reply, std::vector<int>& given);
  void hello(const Request& request, Reply& reply, std::vector<int>& given);
  void list(Reply& reply);
  void open(const Request& request, Reply& reply);
  void create_domain(const Request& request, Reply& reply);
  void destroy_domain(std::uint32_t number);
  void create_region(const Request& request, Reply& reply);
  void create_completion_queue(const Request& request, Descriptors& files, Reply& reply,
                               std::vector<int>& given);
  void destroy_completion_queue(const Request& request);
  void create_queue_pair(const Request& request, Reply& reply, std::vector<int>& given);
  void modify(const Request& request);

  std::uint32_t next_object() { return ++device_.last_object; }

  Device& device_;
  Descriptor socket_;
  const pid_t process_;
  Descriptor process_end_;
  std::uint32_t host_ = 0;
  std::map<std::uint32_t, Context> contexts_;
  std::map<std::uint32_t, OwnDomain> domains_;
  std::map<std::uint32_t, OwnCompletionQueue> completion_queues_;
  std::map<std::uint32_t, QueuePair*> queue_pairs_;
};

}  // namespace weft::efa_sim
