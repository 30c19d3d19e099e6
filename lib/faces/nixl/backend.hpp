// The backend that libnixl drives: each call is handed on to what it concerns.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/abi.hpp"
#include "nixl/agents.hpp"
#include "nixl/inbox.hpp"
#include "nixl/libnixl.hpp"
#include "nixl/loopback.hpp"
#include "nixl/registration.hpp"
#include "nixl/request.hpp"

namespace weft::nixl {

/// Any call may come from any thread; those for one request handle come from one at a time.
class Backend final : public abi::BackendEngine {
 public:
  static Result<std::unique_ptr<Backend>> open(const abi::InitParameters& init,
                                               const Config& config, const LibNixl& library);
  static abi::MemoryTypes memory_types();
  ~Backend() override;

  bool supportsRemote() const override { return true; }
  bool supportsLocal() const override { return true; }
  bool supportsNotif() const override { return true; }
  abi::MemoryTypes getSupportedMems() const override { return memory_types(); }

  abi::Status registerMem(const abi::BlobDescriptor& memory, const abi::MemoryType& type,
                          abi::Metadata*& out) override;
  abi::Status deregisterMem(abi::Metadata* metadata) override;
  abi::Status connect(const std::string& agent) override;
  abi::Status disconnect(const std::string& agent) override;
  abi::Status unloadMD(abi::Metadata* metadata) override;

  abi::Status prepXfer(const abi::Operation& operation, const abi::MetaList& local,
                       const abi::MetaList& remote, const std::string& agent,
                       abi::RequestHandle*& handle,
                       const abi::RequestOptions* options) const override;
  abi::Status postXfer(const abi::Operation& operation, const abi::MetaList& local,
                       const abi::MetaList& remote, const std::string& agent,
                       abi::RequestHandle*& handle,
                       const abi::RequestOptions* options) const override;
  abi::Status checkXfer(abi::RequestHandle* handle) const override;
  abi::Status releaseReqH(abi::RequestHandle* handle) const override;

  abi::Status getPublicData(const abi::Metadata* metadata, std::string& blob) const override;
  abi::Status getConnInfo(std::string& info) const override;
  abi::Status loadRemoteConnInfo(const std::string& agent, const std::string& info) override;
  abi::Status loadRemoteMD(const abi::BlobDescriptor& memory, const abi::MemoryType& type,
                           const std::string& agent, abi::Metadata*& out) override;
  abi::Status loadLocalMD(abi::Metadata* in, abi::Metadata*& out) override;

  abi::Status queryMem(const abi::BlobList& asked,
                       std::vector<std::optional<abi::Parameters>>& found) const override;

  abi::Status getNotifs(abi::Notifications& arrived) override;
  abi::Status genNotif(const std::string& agent, const std::string& bytes) const override;

 private:
  Backend(const abi::InitParameters& init, Engine engine);
  Result<LinkPtr> link_to(const std::string& agent) const;
  Result<Outgoing> outgoing(const std::string& bytes, const Link& link, std::size_t carriers) const;

  const std::shared_ptr<Engine> engine_;
  const Config config_;
  FileNumbers file_numbers_;
  mutable Agents agents_;
  Inbox inbox_;
  mutable Loopback loopback_;
  mutable std::atomic<std::uint64_t> next_notification_{1};
  // Requests and registrations that libnixl has dropped and that may still touch memory.
  mutable core::Mutex kept_mutex_;
  mutable std::vector<std::shared_ptr<Request>> kept_requests_ WEFT_GUARDED_BY(kept_mutex_);
  std::vector<std::unique_ptr<Registration>> kept_registrations_ WEFT_GUARDED_BY(kept_mutex_);
};

}  // namespace weft::nixl
