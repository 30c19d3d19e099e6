#include "services/segments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/process.hpp"
#include "device/device.hpp"
#include "device/file/disk.hpp"
#include "memory/cover.hpp"
#include "services/outside_callbacks.hpp"
#include "services/room.hpp"
#include "topo/drive.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

// For pinning a rail's bounce buffers, some megabytes: far more than any driver takes.
constexpr auto longest_pinning = std::chrono::seconds(10);

// That NICs see. Transparent huge pages can't be counted on.
constexpr std::uint64_t small_page = 4096;
// NVIDIA_P2P_PAGE_SIZE_64KB (nv-p2p.h): what a NIC pins of a GPU's memory.
constexpr std::uint64_t gpu_page = std::uint64_t{64} << 10;

std::uint64_t page_bytes_of(const Memory& memory, const Device& device) {
  if (!device.direct()) return gpu_page;
  return memory.source() == Memory::Source::huge ? memory.page_bytes() : small_page;
}

/// Of a segment that is a file.
const Disk& disk_of(const SegmentState& segment) {
  return static_cast<const Disk&>(segment.device());
}

struct Held {
  Allocation allocation;
  const Device* device;
};

/// The addresses that stand for the file's bytes are its own memory's, as far as others see.
Result<Held> hold_file(const Memory& memory) {
  auto file = OpenFile::open(memory);
  if (!file) return fail(std::move(file.error()));
  const Disk& disk = (*file)->disk();
  const Memory stand_in = Memory::adopt((*file)->address(), (*file)->size(), *file);
  return Allocation::make((*file)->read_only() ? stand_in.read_only() : stand_in)
      .map([&](Allocation&& allocation) {
        return Held{std::move(allocation), &disk};
      });
}

Result<Held> hold(const Memory& memory) {
  if (memory.source() == Memory::Source::file) return hold_file(memory);
  auto allocation = Allocation::make(memory);
  if (!allocation) return fail(std::move(allocation.error()));
  const auto device = memory.source() == Memory::Source::adopt
                          ? device_of(allocation->address(), allocation->size())
                          : &host_device();
  if (!device) return fail(device.error());
  return Held{std::move(*allocation), *device};
}

/// In their order.
std::vector<std::size_t> touched_extents(const Extents& extents, const PieceList& pieces) {
  std::vector<bool> touches(extents.count());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Pair piece = pieces[i];
    if (piece.length == 0) continue;
    const std::size_t last = extents.of(piece.local + piece.length - 1);
    for (std::size_t each = extents.of(piece.local); each <= last; ++each) touches[each] = true;
  }
  std::vector<std::size_t> touched;
  for (std::size_t i = 0; i < touches.size(); ++i)
    if (touches[i]) touched.push_back(i);
  return touched;
}

}  // namespace

/// Where the memory is to be used, if the caller has said so; else where its pages are.
Result<Place> Segments::locate(const Memory& memory, const Allocation& allocation,
                               const Device& device) const {
  if (device.kind() == MemoryKind::device) return locate_on(device, memory);
  if (memory.source() == Memory::Source::file)
    return locate_file(static_cast<const Disk&>(device), allocation);
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

/// At the drive: it is there that its bytes come from.
Place Segments::locate_file(const Disk& disk, const Allocation& allocation) const {
  const auto file = disk.find(allocation.address());
  Place place;
  place.kind = file && file->direct() ? MemoryKind::file : MemoryKind::buffered_file;
  const topo::DrivePlace lies = topo::place_of_drive(disk.number());
  const Topology& topology = rails_.locality().topology();
  place.drive = topo::find_drive(topology, lies.name);
  place.numa_node = lies.numa_node;
  if (place.drive >= 0 && place.numa_node < 0)
    place.numa_node = topology.drives[static_cast<std::size_t>(place.drive)].numa_node;
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

Result<void> Segments::register_extent(Rail& rail, SegmentState& segment, std::size_t extent) {
  const auto access = segment.read_only() ? providers::Access::source : providers::Access::local;
  const Range part = segment.keys()->extents().range(extent);
  return segment.keys()->add(rail.index(), extent, [&] {
    return segment.nics().open(rail.endpoint(), part.offset, part.length, access);
  });
}

/// What a NIC does not reach goes through the bounce-buffer transport; and so may what it reaches,
/// where the peer's does not. One extent is registered at once: a NIC that can't have the memory
/// says so here.
Result<void> Segments::let_serve(Rail& rail, SegmentState& segment) {
  const Device& device = segment.device();
  const Capability& record = rail.capability();
  if (!device.direct())
    if (auto ready = prepare_staging(device, rail); !ready) return ready;
  if (device.direct() && !record.local_registration) {
    segment.keys()->serve(rail.index(), false);
    return {};
  }
  if (is_file(device.kind())) {
    segment.keys()->add_staging(rail.index(), disk_of(segment).find(segment.address())->how());
    return {};
  }
  segment.nics().prepare(record);
  segment.keys()->serve(rail.index(), true);
  auto made = register_extent(rail, segment, 0);
  if (made || device.direct()) return made;
  const std::uint64_t size = segment.extent_bytes();
  if (is_full(made.error()) && smaller_extent(segment.size(), size) != 0) return made;
  segment.keys()->add_staging(rail.index(), made.error().message());
  return {};
}

/// In the largest extents that all of their NICs take. A NIC that is full does not serve it where
/// another of its kind does.
Result<void> Segments::serve_by_rails(SegmentState& segment, std::uint64_t page_bytes) {
  std::vector<Rail*> rails;
  std::uint64_t largest = no_seams;
  for (const std::size_t index : rails_.serving(segment.place())) {
    Rail& rail = *rails_[index];
    if (rail.closed()) continue;  // its NIC is gone
    rails.push_back(&rail);
    largest = std::min(largest, extent_bytes_for(rail.capability().registration_pages, page_bytes));
  }
  for (std::uint64_t size = largest;;) {
    segment.set_extents(size);
    Result<void> served;
    const auto refuses = std::find_if(rails.begin(), rails.end(), [&](Rail* rail) {
      served = let_serve(*rail, segment);
      return !served;
    });
    if (served) return served;
    const Rail& rail = **refuses;
    Error error = std::move(served.error().with_rail(rail.name()));
    if (!is_full(error)) return fail(std::move(error));
    const auto is_alike = [&](const Rail* other) {
      return other != &rail && rails_.kind_of(*other) == rails_.kind_of(rail);
    };
    const bool others = std::any_of(rails.begin(), rails.end(), [&](const Rail* other) {
      return is_alike(other) && segment.keys()->reaches(other->index(), 0);
    });
    size = others ? 0 : smaller_extent(segment.size(), size);
    if (size != 0) continue;
    // It is full: the others go on without it.
    size = largest;
    if (std::none_of(rails.begin(), rails.end(), is_alike)) return fail(std::move(error));
    log(LogLevel::warning, "rail {} does not serve memory of {} bytes: {}", rail.name(),
        segment.size(), error.message());
    rails.erase(refuses);
  }
}

Result<void> Segments::register_touched(SegmentState& segment, const PieceList& pieces) {
  LocalKeys& keys = *segment.keys();
  if (keys.extents().count() == 1) return {};
  std::vector<Rail*> rails;
  for (const auto& rail : rails_)
    if (keys.registers(rail->index()) && !rail->closed()) rails.push_back(rail.get());
  if (rails.empty()) return {};
  const std::vector<std::size_t> touched = touched_extents(keys.extents(), pieces);
  for (const auto& [kind, alike] : rails_.by_kind(rails)) {
    auto covered = cover(
        touched, alike,
        [&](std::size_t rail, std::size_t extent) { return keys.reaches(rail, extent); },
        [&](std::size_t rail, std::size_t extent) { return keys.refused(rail, extent); },
        [&](std::size_t rail, std::size_t extent) {
          return register_extent(*rails_[rail], segment, extent);
        });
    if (!covered) return covered;
  }
  return {};
}

/// Peers read and write whole ones.
Result<void> Segments::check_blocks(const Memory& memory) const {
  const std::uint64_t block = memory.file_options().checked_block;
  if (memory.source() != Memory::Source::file || block <= config_.bounce_buffer_bytes) return {};
  return fail(Code::invalid_argument,
              fmt::format("checked_block is {} bytes, more than bounce_buffer_bytes ({})", block,
                          config_.bounce_buffer_bytes));
}

Result<std::shared_ptr<SegmentState>> Segments::add(const Memory& memory) {
  fill_standard_descriptors();
  if (auto room = check_room(memory); !room) return fail(std::move(room.error()));
  if (auto fits = check_blocks(memory); !fits) return fail(std::move(fits.error()));
  auto held = hold(memory);
  if (!held) return fail(std::move(held.error()));
  const Device& device = *held->device;
  if (device.may_be_remapped(held->allocation.address()) && !told_of_remapping_.exchange(true))
    log(LogLevel::warning,
        "GPU memory was added that is mapped in parts (cuMemMap: expandable segments, sleep mode): "
        "it must not be unmapped or remapped before its segment is released");
  const auto place = locate(memory, held->allocation, device);
  if (!place) return fail(place.error());
  auto segment = std::make_shared<SegmentState>(next_id_++, owner_.keep_alive(),
                                                std::move(held->allocation), *place, device);
  if (const std::uint64_t block = memory.file_options().checked_block; block > 0)
    segment->set_block_bytes(block);
  if (auto served = serve_by_rails(*segment, page_bytes_of(memory, device)); !served)
    return fail(std::move(served.error()));
  if (!device.direct()) segment->set_lent(device.lend(segment->address(), segment->size()));
  const Lock lock(mutex_);
  if (all_.size() >= sweep_at_) {
    std::erase_if(all_, [](const Known& each) { return each.keys->closed(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * all_.size());
  }
  all_.push_back({segment->keys(), segment->shared_keys(), segment});
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
  for (const auto& [keys, shared, segment] : all)
    if (keys->rail_opened(rail.index()))
      log(LogLevel::warning, "rail {}: a GPU's memory is staged since it was opened again: {}",
          rail.name(), keys->why_staged(rail.index()));
}

void Segments::close() {
  const Lock lock(mutex_);
  for (const Known& each : all_) {
    each.shared->close();
    each.keys->close();
  }
}

}  // namespace weft::core
