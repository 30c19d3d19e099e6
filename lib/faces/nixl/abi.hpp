// The binary interface between libnixl and a backend plug-in, in declarations of our own.
//
// Read in NIXL's tags v1.3.0 to v1.4.0 (src/api/cpp), where it is the same, and tried with the
// wheels that checked_versions.hpp names. NIXL raises no version when it changes this interface, so
// before a version is added there, each line here is compared. The layouts are those of libstdc++
// with its C++11 strings, by which the wheels are built.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft::nixl::abi {

enum class MemoryType : int { dram, vram, block, object, file };
enum class Operation : int { read, write };

/// nixl_status_t.
enum class Status : int {
  in_progress = 1,
  success = 0,
  not_posted = -1,
  invalid_param = -2,
  backend = -3,
  not_found = -4,
  mismatch = -5,
  not_allowed = -6,
  repost_active = -7,
  unknown = -8,
  not_supported = -9,
  remote_disconnect = -10,
  cancelled = -11,
};

using Parameters = std::unordered_map<std::string, std::string>;
using MemoryTypes = std::vector<MemoryType>;
/// Sender's name and bytes of each notification.
using Notifications = std::vector<std::pair<std::string, std::string>>;

/// A piece of memory: nixlBasicDesc.
struct Descriptor {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::uint64_t device = 0;
};

/// nixlBlobDesc: a registration, with a remote one's public data.
struct BlobDescriptor : Descriptor {
  std::string blob;
};

/// nixlBackendMD: what a backend keeps for a registration.
class Metadata {
 public:
  explicit Metadata(bool is_private) : is_private_(is_private) {}
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;
  virtual ~Metadata() = default;

 protected:
  bool is_private_;
};

/// nixlMetaDesc: a piece of a registration.
struct MetaDescriptor : Descriptor {
  Metadata* metadata = nullptr;
};

struct RemoteMetaDescriptor : MetaDescriptor {
  std::string agent;
};

/// nixlDescList: read here, made by libnixl alone (and by its stand-in in the tests).
template <typename Of>
struct DescriptorList {
  virtual ~DescriptorList() = default;
  MemoryType type = MemoryType::dram;
  std::vector<Of> list;
};
using MetaList = DescriptorList<MetaDescriptor>;
using RemoteMetaList = DescriptorList<RemoteMetaDescriptor>;
using BlobList = DescriptorList<BlobDescriptor>;

/// nixlBackendReqH: what a backend keeps for a transfer request.
class RequestHandle {
 public:
  RequestHandle() = default;
  RequestHandle(const RequestHandle&) = delete;
  RequestHandle& operator=(const RequestHandle&) = delete;
  virtual ~RequestHandle() = default;
};

/// nixl_opt_b_args_t.
struct RequestOptions {
  std::string notification;
  bool notifies = false;
  std::string custom;
};

/// nixlBackendInitParams.
struct InitParameters {
  std::string agent;
  std::string type;
  Parameters* parameters = nullptr;
  bool progress_thread = false;
  std::uint64_t progress_delay = 0;  // us
  int sync_mode = 0;
  bool telemetry = false;
};

/// nixlBackendEngine. libnixl reads its data by accessors that were inlined, and calls the virtual
/// functions by their places in the table.
class BackendEngine {
 public:
  explicit BackendEngine(const InitParameters& init)
      : type_(init.type),
        parameters_(*init.parameters),
        local_agent_(init.agent),
        telemetry_(init.telemetry) {}
  BackendEngine(const BackendEngine&) = delete;
  BackendEngine& operator=(const BackendEngine&) = delete;
  virtual ~BackendEngine() = default;

  virtual bool supportsRemote() const = 0;
  virtual bool supportsLocal() const = 0;
  virtual bool supportsNotif() const = 0;
  virtual MemoryTypes getSupportedMems() const = 0;

  virtual Status registerMem(const BlobDescriptor& memory, const MemoryType& type,
                             Metadata*& out) = 0;
  virtual Status deregisterMem(Metadata* metadata) = 0;
  virtual Status connect(const std::string& agent) = 0;
  virtual Status disconnect(const std::string& agent) = 0;
  virtual Status unloadMD(Metadata* metadata) = 0;

  virtual Status prepXfer(const Operation& operation, const MetaList& local, const MetaList& remote,
                          const std::string& agent, RequestHandle*& handle,
                          const RequestOptions* options) const = 0;
  virtual Status postXfer(const Operation& operation, const MetaList& local, const MetaList& remote,
                          const std::string& agent, RequestHandle*& handle,
                          const RequestOptions* options) const = 0;
  virtual Status checkXfer(RequestHandle* handle) const = 0;
  virtual Status releaseReqH(RequestHandle* handle) const = 0;

  virtual Status prepMemView(const RemoteMetaList&, void*&, const RequestOptions*) const {
    return Status::not_supported;
  }
  virtual Status prepMemView(const MetaList&, void*&, const RequestOptions*) const {
    return Status::not_supported;
  }
  virtual void releaseMemView(void*) const {}

  virtual Status getPublicData(const Metadata* metadata, std::string& blob) const = 0;
  virtual Status getConnInfo(std::string& info) const = 0;
  virtual Status loadRemoteConnInfo(const std::string& agent, const std::string& info) = 0;
  virtual Status loadRemoteMD(const BlobDescriptor& memory, const MemoryType& type,
                              const std::string& agent, Metadata*& out) = 0;
  virtual Status loadLocalMD(Metadata* in, Metadata*& out) = 0;

  virtual Status getNotifs(Notifications& arrived) = 0;
  virtual Status genNotif(const std::string& agent, const std::string& bytes) const = 0;

  virtual Status queryMem(const BlobList&, std::vector<std::optional<Parameters>>&) const {
    return Status::not_supported;
  }
  virtual Status estimateXferCost(const Operation&, const MetaList&, const MetaList&,
                                  const std::string&, RequestHandle* const&,
                                  std::chrono::microseconds&, std::chrono::microseconds&, int&,
                                  const void*) const {
    return Status::not_supported;
  }

  struct Layout;

 protected:
  const std::string& local_agent() const { return local_agent_; }

 private:
  std::string type_;
  Parameters parameters_;
  std::vector<char> telemetry_events_;  // never filled: its elements have changed twice
  std::mutex telemetry_mutex_;
  bool failed_ = false;
  const std::string local_agent_;
  const bool telemetry_;
};

// Not standard layout; both compilers give the offsets all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
struct BackendEngine::Layout {
  static constexpr std::size_t type = offsetof(BackendEngine, type_);
  static constexpr std::size_t parameters = offsetof(BackendEngine, parameters_);
  static constexpr std::size_t telemetry_events = offsetof(BackendEngine, telemetry_events_);
  static constexpr std::size_t failed = offsetof(BackendEngine, failed_);
  static constexpr std::size_t local_agent = offsetof(BackendEngine, local_agent_);
  static constexpr std::size_t telemetry = offsetof(BackendEngine, telemetry_);
};
#pragma GCC diagnostic pop

/// What nixl_plugin_init returns: nixlBackendPlugin.
struct Plugin {
  int api_version;  // 1 since 2025, whatever has changed
  BackendEngine* (*create_engine)(const InitParameters* init);
  void (*destroy_engine)(BackendEngine* engine);
  const char* (*name)();
  const char* (*version)();
  Parameters (*options)();
  MemoryTypes (*memory_types)();
};

// On x86-64 and AArch64 alike, but for the mutex (40 bytes and 48).
static_assert(sizeof(void*) == 8);
static_assert(sizeof(std::string) == 32);
static_assert(sizeof(Parameters) == 56);
static_assert(sizeof(Descriptor) == 24 && offsetof(Descriptor, bytes) == 8);
static_assert(sizeof(BlobDescriptor) == 56);
static_assert(sizeof(MetaDescriptor) == 32);
static_assert(sizeof(RemoteMetaDescriptor) == 64);
static_assert(sizeof(MetaList) == 40);
static_assert(sizeof(Metadata) == 16);
static_assert(sizeof(RequestHandle) == 8);
static_assert(sizeof(RequestOptions) == 72 && offsetof(RequestOptions, custom) == 40);
static_assert(sizeof(InitParameters) == 96);
static_assert(offsetof(InitParameters, parameters) == 64);
static_assert(offsetof(InitParameters, progress_thread) == 72);
static_assert(offsetof(InitParameters, progress_delay) == 80);
static_assert(offsetof(InitParameters, sync_mode) == 88);
static_assert(offsetof(InitParameters, telemetry) == 92);
static_assert(BackendEngine::Layout::type == 8);
static_assert(BackendEngine::Layout::parameters == 40);
static_assert(BackendEngine::Layout::telemetry_events == 96);
static_assert(BackendEngine::Layout::failed == 120 + sizeof(std::mutex));
static_assert(BackendEngine::Layout::local_agent == 128 + sizeof(std::mutex));
static_assert(BackendEngine::Layout::telemetry == 160 + sizeof(std::mutex));
static_assert(sizeof(BackendEngine) == 168 + sizeof(std::mutex));
static_assert(sizeof(Plugin) == 56 && offsetof(Plugin, create_engine) == 8);

}  // namespace weft::nixl::abi
