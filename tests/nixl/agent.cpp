#include "agent.hpp"

#include <stdexcept>
#include <thread>

namespace weft::nixl::test {
namespace {

using namespace std::chrono_literals;

template <typename Done>
bool until(Done&& done, Nanoseconds time) {
  for (const auto deadline = Deadline::in(time); !deadline.passed();) {
    if (done()) return true;
    std::this_thread::yield();
  }
  return done();
}

abi::InitParameters init_for(const std::string& name, abi::Parameters& parameters) {
  abi::InitParameters init;
  init.agent = name;
  init.type = "WEFT";
  init.parameters = &parameters;
  return init;
}

abi::MetaDescriptor part_of(const abi::Descriptor& of, std::size_t offset, std::size_t length,
                            abi::Metadata* metadata) {
  abi::MetaDescriptor piece;
  piece.address = of.address + offset;
  piece.bytes = length;
  piece.metadata = metadata;
  return piece;
}

}  // namespace

abi::MetaDescriptor piece_of(const abi::Descriptor& memory, abi::Metadata* metadata) {
  return part_of(memory, 0, memory.bytes, metadata);
}

abi::Plugin& plugin() {
  static abi::Plugin* loaded = [] {
    void* library = dlopen(WEFT_NIXL_PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) throw std::runtime_error(dlerror());
    auto* init = reinterpret_cast<abi::Plugin* (*)()>(dlsym(library, "nixl_plugin_init"));
    return init();
  }();
  return *loaded;
}

abi::Descriptor Buffer::descriptor() const {
  if (other) return *other;
  return {reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(), 0};
}

Handle::Handle(const Agent& agent, const Agent& other, abi::Operation operation,
               const std::vector<Piece>& pieces)
    : agent_(agent), operation_(operation), other_(other.name()) {
  for (const Piece& each : pieces) {
    local_.list.push_back(
        part_of(each.local->descriptor(), each.local_offset, each.length, each.local->local));
    remote_.list.push_back(part_of(each.remote->descriptor(), each.remote_offset, each.length,
                                   agent.remote_metadata(other, *each.remote)));
  }
  const abi::RequestOptions options;
  prepared_ = agent_.backend().prepXfer(operation_, local_, remote_, other_, handle_, &options);
}

Handle::Handle(const Agent& agent, std::string other, abi::Operation operation, abi::MetaList local,
               abi::MetaList remote)
    : agent_(agent),
      operation_(operation),
      other_(std::move(other)),
      local_(std::move(local)),
      remote_(std::move(remote)) {
  const abi::RequestOptions options;
  prepared_ = agent_.backend().prepXfer(operation_, local_, remote_, other_, handle_, &options);
}

Handle::~Handle() {
  EXPECT_TRUE(handle_ == nullptr || release());
}

Status Handle::post(const abi::RequestOptions& options) {
  return agent_.backend().postXfer(operation_, local_, remote_, other_, handle_, &options);
}

Status Handle::post() {
  return post(abi::RequestOptions());
}

Status Handle::post(const std::string& notification) {
  abi::RequestOptions options;
  options.notification = notification;
  options.notifies = true;
  return post(options);
}

Status Handle::check() {
  return agent_.backend().checkXfer(handle_);
}

Status Handle::wait() {
  Status status = Status::in_progress;
  until([&] { return (status = check()) != Status::in_progress; }, 20s);
  return status;
}

Status Handle::move() {
  const Status status = prepared_ == Status::success ? post() : prepared_;
  return status == Status::in_progress ? wait() : status;
}

Status Handle::release_once() {
  const Status status = agent_.backend().releaseReqH(handle_);
  if (status == Status::success) handle_ = nullptr;
  return status;
}

bool Handle::release() {
  return until([&] { return release_once() == Status::success; }, 20s);
}

Agent::Agent(std::string name, const std::string& provider, abi::Parameters more)
    : name_(std::move(name)), parameters_(std::move(more)) {
  parameters_.emplace("providers", provider);
  parameters_.emplace("unchecked_nixl", "true");
  const auto init = init_for(name_, parameters_);
  backend_ = plugin().create_engine(&init);
  if (backend_ == nullptr) throw std::runtime_error("no backend of agent " + name_);
  EXPECT_EQ(backend_->connect(name_), Status::success);
}

Agent::~Agent() {
  for (auto& [key, metadata] : remotes_) backend_->unloadMD(metadata);
  for (Buffer& buffer : buffers_)
    EXPECT_TRUE(buffer.local == nullptr || deregister(buffer) == Status::success);
  plugin().destroy_engine(backend_);
}

Buffer& Agent::add(std::size_t bytes, std::uint64_t seed) {
  Buffer& buffer = buffers_.emplace_back(bytes);
  weft::test::fill(buffer.bytes, seed);
  return registered(buffer, abi::MemoryType::dram);
}

Buffer& Agent::adopt(std::span<std::byte> memory, std::uint64_t seed) {
  Buffer& buffer = buffers_.emplace_back(0);
  weft::test::fill(memory, seed);
  buffer.other = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), 0};
  return registered(buffer, abi::MemoryType::dram);
}

Buffer& Agent::add_file(const abi::BlobDescriptor& memory) {
  Buffer& buffer = buffers_.emplace_back(0);
  buffer.other = memory;
  return registered(buffer, abi::MemoryType::file, memory.blob);
}

Buffer& Agent::registered(Buffer& buffer, abi::MemoryType type, const std::string& text) {
  EXPECT_EQ(backend_->registerMem({buffer.descriptor(), text}, type, buffer.local),
            Status::success);
  EXPECT_EQ(backend_->loadLocalMD(buffer.local, buffer.self), Status::success);
  return buffer;
}

Buffer& Agent::add_file(int fd, std::uint64_t offset, std::size_t bytes) {
  return add_file({{offset, bytes, static_cast<std::uint64_t>(fd)}, ""});
}

Buffer& Agent::add_file(const std::string& text, std::uint64_t number, std::size_t bytes) {
  return add_file({{0, bytes, number}, text});
}

std::pair<Status, std::string> Agent::refused(const abi::BlobDescriptor& memory,
                                              abi::MemoryType type) {
  abi::Metadata* metadata = nullptr;
  testing::internal::CaptureStderr();
  const Status status = backend_->registerMem(memory, type, metadata);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(metadata, nullptr) << memory.blob << " was taken";
  if (metadata != nullptr) backend_->deregisterMem(metadata);
  return {status, std::move(said)};
}

std::vector<std::optional<abi::Parameters>> Agent::look_up(const std::vector<std::string>& texts) {
  abi::BlobList asked;
  asked.type = abi::MemoryType::file;
  for (const std::string& text : texts) asked.list.push_back({{}, text});
  std::vector<std::optional<abi::Parameters>> found;
  EXPECT_EQ(backend_->queryMem(asked, found), Status::success);
  return found;
}

Status Agent::deregister(Buffer& buffer) {
  backend_->unloadMD(std::exchange(buffer.self, nullptr));
  return backend_->deregisterMem(std::exchange(buffer.local, nullptr));
}

Status Agent::load(const Agent& other) {
  std::string info;
  Status status = other.backend().getConnInfo(info);
  if (status == Status::success) status = backend_->loadRemoteConnInfo(other.name(), info);
  return status == Status::success ? load_memory(other) : status;
}

Status Agent::load_memory(const Agent& other) {
  for (const Buffer& buffer : other.buffers_) {
    if (buffer.local == nullptr || remotes_.contains({other.name(), &buffer})) continue;
    abi::BlobDescriptor memory;
    static_cast<abi::Descriptor&>(memory) = buffer.descriptor();
    Status status = other.backend().getPublicData(buffer.local, memory.blob);
    abi::Metadata* metadata = nullptr;
    if (status == Status::success)
      status = backend_->loadRemoteMD(memory, abi::MemoryType::dram, other.name(), metadata);
    if (status != Status::success) return status;
    remotes_[{other.name(), &buffer}] = metadata;
  }
  return Status::success;
}

void Agent::unload(const Agent& other) {
  forget(other);
  EXPECT_EQ(backend_->disconnect(other.name()), Status::success);
}

void Agent::forget(const Agent& other) {
  std::erase_if(remotes_, [&](const auto& entry) {
    if (entry.first.first != other.name()) return false;
    EXPECT_EQ(backend_->unloadMD(entry.second), Status::success);
    return true;
  });
}

abi::Metadata* Agent::remote_metadata(const Agent& other, const Buffer& buffer) const {
  return &other == this ? buffer.self : remotes_.at({other.name(), &buffer});
}

abi::Notifications Agent::notifications(std::size_t count) {
  abi::Notifications arrived;
  until(
      [&] {
        EXPECT_EQ(backend_->getNotifs(arrived), Status::success);
        return arrived.size() >= count;
      },
      10s);
  return arrived;
}

std::string refusal(abi::Parameters parameters) {
  const auto init = init_for("refused", parameters);
  testing::internal::CaptureStderr();
  abi::BackendEngine* backend = plugin().create_engine(&init);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(backend, nullptr) << said;
  if (backend != nullptr) plugin().destroy_engine(backend);
  return said;
}

}  // namespace weft::nixl::test
