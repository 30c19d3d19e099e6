#include "session.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "left_behind.hpp"
#include "process_memory.hpp"

namespace weft::efa_sim {
namespace {

/// Hosts of processes that named none begin here.
constexpr std::uint32_t first_dealt_host = 0x8000;

[[noreturn]] void refuse(int error, const std::string& why) {
  throw std::system_error(error, std::generic_category(), why);
}

template <typename Map>
auto& get(Map& map, std::uint32_t object) {
  const auto found = map.find(object);
  if (found == map.end()) refuse(EINVAL, "no such object");
  return found->second;
}

template <std::size_t size>
void copy_text(char (&into)[size], std::string_view text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(into, text.data(), length);
  into[length] = 0;
}

/// The size of a ring: a power of two, and not beyond what 16-bit positions can tell apart.
std::uint32_t ring_size(std::uint32_t wanted) {
  if (wanted > 0x8000) refuse(EINVAL, "the ring is too large");
  return std::bit_ceil(std::max(wanted, 1u));
}

}  // namespace

Device::Device(std::vector<NicDescription> nics, std::uint64_t seed, std::string_view settings,
               std::string folder)
    : fabric(std::move(nics), seed, settings),
      folder(std::move(folder)),
      page(SharedMemory::create(queue_page)),
      wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Session::Session(Device& device, Descriptor socket, pid_t process)
    : device_(device),
      socket_(std::move(socket)),
      process_(process),
      process_end_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}

Session::~Session() {
  for (auto& [number, queue_pair] : queue_pairs_) {
    remove_left_behind(*queue_pair);
    queue_pair->nic.destroy(*queue_pair);
  }
  for (auto& [number, own] : completion_queues_) own.nic->destroy(*own.queue);
  for (auto& [number, own] : domains_) destroy_domain(number);
}

bool Session::answer() {
  auto received = receive_message<Request>(socket_.get());
  if (!received) return false;
  Reply reply{};
  std::vector<int> given;
  try {
    if (received->message.version != wire_version) refuse(EPROTO, "the shim is of another build");
    handle(received->message, received->descriptors, reply, given);
  } catch (const std::system_error& error) {
    reply.error = error.code().value();
    copy_text(reply.text, error.what());
  } catch (const std::exception& error) {
    reply.error = EINVAL;
    copy_text(reply.text, error.what());
  }
  return send_message(socket_.get(), reply, given);
}

void Session::handle(const Request& request, Descriptors& files, Reply& reply,
                     std::vector<int>& given) {
  switch (request.verb) {
    case Verb::hello:
      return hello(request, reply, given);
    case Verb::configure:
      return device_.fabric.configure(request.text);
    case Verb::counters:
      reply.counters = device_.fabric.counters();
      reply.counters.doorbells = device_.seen().doorbells;
      return;
    case Verb::registrations:
      reply.registrations = device_.fabric.registrations(static_cast<pid_t>(request.number));
      return;
    case Verb::list:
      return list(reply);
    case Verb::open:
      return open(request, reply);
    case Verb::close:
      contexts_.erase(request.object);
      return;
    case Verb::create_domain:
      return create_domain(request, reply);
    case Verb::destroy_domain:
      destroy_domain(request.object);
      domains_.erase(request.object);
      return;
    case Verb::create_region:
      return create_region(request, reply);
    case Verb::destroy_region: {
      const OwnDomain& own = get(domains_, request.object);
      if (!own.nic->regions.remove(request.number, own.domain)) refuse(EINVAL, "no such key");
      return;
    }
    case Verb::create_address: {
      const OwnDomain& own = get(domains_, request.object);
      if (!own.nic->has_room_for(own.domain, request.gid)) refuse(ENOMEM, "address_handles");
      reply.number = own.nic->addresses.add(own.domain, request.gid);
      return;
    }
    case Verb::destroy_address: {
      const OwnDomain& own = get(domains_, request.object);
      own.nic->addresses.remove(static_cast<std::uint16_t>(request.number), own.domain);
      return;
    }
    case Verb::create_completion_queue:
      return create_completion_queue(request, files, reply, given);
    case Verb::destroy_completion_queue:
      return destroy_completion_queue(request);
    case Verb::create_queue_pair:
      return create_queue_pair(request, reply, given);
    case Verb::modify_queue_pair:
      return modify(request);
    case Verb::destroy_queue_pair: {
      QueuePair* const queue_pair = get(queue_pairs_, request.object);
      queue_pair->nic.destroy(*queue_pair);
      queue_pairs_.erase(request.object);
      return;
    }
  }
  refuse(EINVAL, "no such request");
}

void Session::hello(const Request& request, Reply& reply, std::vector<int>& given) {
  std::uint64_t cookie = 0;
  const Copied copied = read_from(process_, {{request.hello.cookie, sizeof cookie}},
                                  reinterpret_cast<std::byte*>(&cookie));
  if (copied != Copied::all || cookie != hello_cookie)
    refuse(EPERM, "the device can't reach a process's memory (process_vm_readv)");
  if (request.hello.host >= 0) {
    host_ = static_cast<std::uint32_t>(request.hello.host);
  } else {
    const std::uint32_t turn = device_.dealt++;
    host_ = first_dealt_host + (device_.hosts == 0 ? turn : turn % device_.hosts);
  }
  reply.welcome.host = host_;
  copy_text(reply.welcome.folder, device_.folder);
  given = {device_.page.descriptor(), device_.wake.get()};
}

void Session::list(Reply& reply) {
  for (std::size_t i = 0; i < device_.fabric.nics_per_host(); ++i) {
    const Nic& nic = device_.fabric.nic(host_, i);
    if (nic.settings.on(Setting::absent)) continue;
    NicInformation& information = reply.list.nics[reply.list.count++];
    copy_text(information.name, nic.description.name);
    copy_text(information.pci, nic.description.pci);
    information.gigabits = nic.description.gigabits;
    information.up = nic.settings.on(Setting::link_down) ? 0 : 1;
    information.gid = nic.gid;
    if (nic.settings.on(Setting::fork)) reply.list.fork = 1;
  }
}

void Session::open(const Request& request, Reply& reply) {
  // The name, since NICs that are absent are not counted.
  const std::string_view name = request.text;
  for (std::size_t i = 0; i < device_.fabric.nics_per_host(); ++i) {
    Nic& nic = device_.fabric.nic(host_, i);
    if (nic.description.name != name) continue;
    if (nic.chance(Setting::open_fail)) refuse(EIO, "open_fail");
    reply.object = next_object();
    contexts_[reply.object] = {&nic};
    reply.limits = {
        nic.settings.number(Setting::part),          nic.settings.number(Setting::send_queue),
        nic.settings.number(Setting::receive_queue), nic.settings.number(Setting::inline_size),
        nic.settings.number(Setting::message),       nic.settings.number(Setting::read),
        nic.settings.number(Setting::write),         nic.settings.number(Setting::unsolicited),
        nic.settings.number(Setting::interrupts),    nic.settings.number(Setting::region_pages),
        nic.settings.number(Setting::regions),       nic.settings.number(Setting::address_handles)};
    return;
  }
  refuse(ENODEV, "no such NIC");
}

void Session::create_domain(const Request& request, Reply& reply) {
  Nic* const nic = get(contexts_, request.object).nic;
  reply.object = next_object();
  domains_[reply.object] = {nic, {reply.object, process_}};
}

void Session::destroy_domain(std::uint32_t number) {
  const OwnDomain& own = get(domains_, number);
  own.nic->regions.remove_all_of(own.domain);
  own.nic->addresses.remove_all_of(own.domain);
}

void Session::create_region(const Request& request, Reply& reply) {
  const OwnDomain& own = get(domains_, request.object);
  if (own.nic->chance(Setting::register_fail)) refuse(ENOMEM, "register_fail");
  const auto& [address, length, rights] = request.region;
  const RegionTable::Region region{own.domain, address, length, rights};
  if (const auto limit = own.nic->limit_on(region); !limit.empty())
    refuse(ENOMEM, std::string(limit));
  const auto time = own.nic->time_for(region);
  reply.nanoseconds = static_cast<std::uint64_t>(time.count());
  reply.number = own.nic->regions.add(region, own.nic->settings.on(Setting::reuse_keys));
}

void Session::create_completion_queue(const Request& request, Descriptors& files, Reply& reply,
                                      std::vector<int>& given) {
  Nic* const nic = get(contexts_, request.object).nic;
  const auto& wanted = request.completion_queue;
  Descriptor channel;
  if (wanted.has_channel != 0) {
    if (files.empty()) refuse(EINVAL, "no channel");
    channel = std::move(files.front());
  }
  const std::uint32_t size = ring_size(wanted.size);
  CompletionQueue& queue = nic->create_completion_queue(size, std::move(channel), wanted.event);
  reply.object = next_object();
  reply.number = size;
  completion_queues_[reply.object] = {nic, &queue};
  given = {queue.memory().descriptor()};
}

void Session::destroy_completion_queue(const Request& request) {
  const OwnCompletionQueue own = get(completion_queues_, request.object);
  if (own.nic->uses(*own.queue)) refuse(EBUSY, "a queue pair uses the completion queue");
  own.nic->destroy(*own.queue);
  completion_queues_.erase(request.object);
}

void Session::create_queue_pair(const Request& request, Reply& reply, std::vector<int>& given) {
  const OwnDomain& own = get(domains_, request.object);
  const auto& wanted = request.queue_pair;
  QueuePair* const made = own.nic->create_queue_pair(
      {own.domain, get(completion_queues_, wanted.send_queue).queue,
       get(completion_queues_, wanted.receive_queue).queue,
       QueuePairQueues::Sizes{ring_size(wanted.send_size), ring_size(wanted.receive_size)},
       wanted.unsolicited != 0});
  if (made == nullptr) refuse(ENOSPC, "too many queue pairs");
  reply.object = next_object();
  reply.number = made->number;
  queue_pairs_[reply.object] = made;
  given = {made->memory().descriptor()};
}

void Session::modify(const Request& request) {
  QueuePair& queue_pair = *get(queue_pairs_, request.object);
  const auto& change = request.change;
  if (change.state != QueuePairState::other) queue_pair.state = change.state;
  if (change.has_queue_key != 0) queue_pair.queue_key = change.queue_key;
  if (change.has_retries != 0) queue_pair.retries = change.retries;
  if (change.state == QueuePairState::error) queue_pair.nic.flush(queue_pair);
}

}  // namespace weft::efa_sim
