#include "engine/segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "device/device.hpp"
#include "engine/outside_callbacks.hpp"
#include "engine/room.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

// For pinning a rail's bounce buffers, some megabytes: far more than any driver takes.
constexpr auto longest_pinning = std::chrono::seconds(10);

}  // namespace

/// Where the memory is to be used, if the caller has said so; else where its pages are.
Result<Place> Segments::locate(const Memory& memory, const Allocation& allocation,
                               const Device& device) const {
  if (device.kind() == MemoryKind::device) return locate_on(device, memory);
  Place place;
  if (memory.gpu().empty()) {
    place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
    return place;
  }
  auto gpu = find_gpu(rails_.locality().topology(), memory.gpu());
  if (!gpu) return fail(std::move(gpu.error()));
  place.device = *gpu;
  const int near = rails_.locality().topology().gpus[static_cast<std::size_t>(*gpu)].numa_node;
  if (memory.source() != Memory::Source::adopt)
    topo::prefer_node(allocation.address(), allocation.size(), near);
  place.numa_node = topo::numa_node_of(allocation.address(), allocation.size());
  if (place.numa_node < 0) place.numa_node = near;  // pages that are still to come
  return place;
}

Result<Place> Segments::locate_on(const Device& gpu, const Memory& memory) const {
  if (!memory.gpu().empty() && memory.gpu() != gpu.pci())
    return fail(Code::invalid_argument,
                fmt::format("the memory is of the GPU {}, not of {}", gpu.pci(), memory.gpu()));
  Place place;
  place.kind = MemoryKind::device;
  // A virtual machine may hide where a GPU is plugged in.
  const auto known = find_gpu(rails_.locality().topology(), gpu.pci());
  if (!known) return place;
  place.device = *known;
  place.numa_node = rails_.locality().topology().gpus[static_cast<std::size_t>(*known)].numa_node;
  return place;
}

/// Memory that no NIC reaches goes through the bounce-buffer transport of those rails that would
/// reach it.
Result<void> Segments::prepare_staging(const Device& device, Rail& rail) {
  if (auto outside = check_outside_callbacks(); !outside) return outside;
  const auto served = std::make_shared<Result<void>>();  // a call that hangs may come back
  const auto serve = [served, &rail, &device] { *served = rail.serve(device); };
  if (!workers_.run_on(rail.worker(), serve, Deadline::in(longest_pinning)))
    return fail(Error(Code::timed_out, "the buffers were not pinned in time"));
  return *served;
}

/// What a NIC does not reach goes through the bounce-buffer transport; and so may what it reaches,
/// where the peer's does not.
Result<void> Segments::let_serve(Rail& rail, SegmentState& segment) {
  const Device& device = segment.device();
  const Capability& record = rail.capability();
  if (!device.direct())
    if (auto ready = prepare_staging(device, rail); !ready) return ready;
  if (device.direct() && !record.local_registration) {
    segment.add_rail(rail.index(), nullptr);
    return {};
  }
  segment.nics().prepare(record);
  const auto access = segment.read_only() ? providers::Access::source : providers::Access::local;
  auto made = segment.nics().open(rail.endpoint(), 0, segment.size(), access);
  if (made)
    segment.add_rail(rail.index(), std::move(*made));
  else if (device.direct())
    return fail(std::move(made.error()));
  else
    segment.add_staging_rail(rail.index(), made.error().message());
  return {};
}

Result<std::shared_ptr<SegmentState>> Segments::add(const Memory& memory) {
  if (auto room = check_room(memory); !room) return fail(std::move(room.error()));
  auto allocation = Allocation::make(memory);
  if (!allocation) return fail(std::move(allocation.error()));
  const auto device = memory.source() == Memory::Source::adopt
                          ? device_of(allocation->address(), allocation->size())
                          : &host_device();
  if (!device) return fail(device.error());
  if ((*device)->may_be_remapped(allocation->address()) && !told_of_remapping_.exchange(true))
    log(LogLevel::warning,
        "GPU memory was added that is mapped in parts (cuMemMap: expandable segments, sleep mode): "
        "it must not be unmapped or remapped before its segment is released");
  const auto place = locate(memory, *allocation, **device);
  if (!place) return fail(place.error());
  auto segment = std::make_shared<SegmentState>(next_id_++, owner_.keep_alive(),
                                                std::move(*allocation), *place, **device);
  for (const std::size_t index : rails_.serving(*place)) {
    Rail& rail = *rails_[index];
    if (rail.closed()) continue;  // its NIC is gone
    if (auto serves = let_serve(rail, *segment); !serves)
      return fail(std::move(serves.error().with_rail(rail.name())));
  }
  if (!(*device)->direct()) segment->set_lent((*device)->lend(segment->address(), segment->size()));
  const Lock lock(mutex_);
  if (all_.size() >= sweep_at_) {
    std::erase_if(all_, [](const Known& each) { return each.keys->closed(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * all_.size());
  }
  all_.push_back({segment->keys(), segment});
  // One that was opened again since it was asked to serve did not know of the segment.
  for (const auto& rail : rails_)
    if (rail->openings() > 0) segment->keys()->rail_opened(rail->index());
  return segment;
}

std::uint64_t Segments::count() const {
  const Lock lock(mutex_);
  return static_cast<std::uint64_t>(std::count_if(
      all_.begin(), all_.end(), [](const Known& each) { return !each.keys->closed(); }));
}

std::vector<std::shared_ptr<SegmentState>> Segments::quarantined() const {
  std::vector<std::shared_ptr<SegmentState>> found, others;  // let go of without the lock
  const Lock lock(mutex_);
  for (const Known& each : all_) {
    auto segment = each.segment.lock();
    if (!segment) continue;
    const UseCount& users = segment->users();
    (users.closed() && !users.idle() ? found : others).push_back(std::move(segment));
  }
  return found;
}

void Segments::rail_opened(const Rail& rail) {
  // A segment that is added later sees that the rail was opened again. Not under the lock: another
  // thread may be closing registrations, which takes long.
  const auto all = [&] {
    const Lock lock(mutex_);
    return all_;
  }();
  for (const auto& [keys, segment] : all)
    if (keys->rail_opened(rail.index()))
      log(LogLevel::warning, "rail {}: a GPU's memory is staged since it was opened again: {}",
          rail.name(), keys->why_staged(rail.index()));
}

void Segments::close() {
  const Lock lock(mutex_);
  for (const Known& each : all_) each.keys->close();
}

}  // namespace weft::core
