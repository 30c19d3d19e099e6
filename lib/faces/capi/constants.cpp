// The C API's numbers are those of the C++ enumerators.
#include <weft/weft.h>

#include <weft/engine.hpp>
#include <weft/kv_models.hpp>
#include <weft/log.hpp>

namespace weft {
namespace {

template <typename Enum>
constexpr bool same(std::int32_t value, Enum enumerator) {
  return value == static_cast<std::int32_t>(enumerator);
}

static_assert(same(WEFT_INVALID_ARGUMENT, Code::invalid_argument));
static_assert(same(WEFT_NOT_FOUND, Code::not_found));
static_assert(same(WEFT_UNSUPPORTED, Code::unsupported));
static_assert(same(WEFT_UNAVAILABLE, Code::unavailable));
static_assert(same(WEFT_PERMISSION_DENIED, Code::permission_denied));
static_assert(same(WEFT_OUT_OF_MEMORY, Code::out_of_memory));
static_assert(same(WEFT_QUEUE_FULL, Code::queue_full));
static_assert(same(WEFT_TIMED_OUT, Code::timed_out));
static_assert(same(WEFT_CANCELLED, Code::cancelled));
static_assert(same(WEFT_STALE, Code::stale));
static_assert(same(WEFT_PEER_DOWN, Code::peer_down));
static_assert(same(WEFT_PROTOCOL_MISMATCH, Code::protocol_mismatch));
static_assert(same(WEFT_FABRIC_FAILED, Code::fabric_failed));
static_assert(same(WEFT_REMOTE_FAILED, Code::remote_failed));
static_assert(same(WEFT_QUARANTINED, Code::quarantined));
static_assert(same(WEFT_CLOSED, Code::closed));
static_assert(same(WEFT_FORKED, Code::forked));
static_assert(same(WEFT_INTERNAL, Code::internal));
static_assert(same(WEFT_CORRUPT, Code::corrupt));
static_assert(same(WEFT_POLICY_REFUSED, last_code));

static_assert(same(WEFT_LOG_DEBUG, LogLevel::debug));
static_assert(same(WEFT_LOG_INFO, LogLevel::info));
static_assert(same(WEFT_LOG_WARNING, LogLevel::warning));
static_assert(same(WEFT_LOG_ERROR, LogLevel::error));
static_assert(same(WEFT_LOG_OFF, LogLevel::off));

static_assert(same(WEFT_SOURCE_DEFAULT, Setting::Source::standard));
static_assert(same(WEFT_SOURCE_FILE, Setting::Source::file));
static_assert(same(WEFT_SOURCE_ENVIRONMENT, Setting::Source::environment));
static_assert(same(WEFT_SOURCE_CALL, Setting::Source::call));

static_assert(same(WEFT_TRANSPORT_AUTOMATIC, TransportKind::automatic));
static_assert(same(WEFT_TRANSPORT_ONE_SIDED, TransportKind::one_sided));
static_assert(same(WEFT_TRANSPORT_BOUNCE, TransportKind::bounce));
static_assert(same(WEFT_TRANSPORT_DEVICE_COPY, TransportKind::device_copy));
static_assert(same(WEFT_PRIORITY_LATENCY, Priority::latency));
static_assert(same(WEFT_PRIORITY_NORMAL, Priority::normal));
static_assert(same(WEFT_PRIORITY_BULK, Priority::bulk));
static_assert(same(WEFT_COPIED_COUNTED, Report::Copied::Known::counted));
static_assert(same(WEFT_COPIED_DECLARED, Report::Copied::Known::declared));
static_assert(same(WEFT_COPIED_UNKNOWN, Report::Copied::Known::unknown));
static_assert(same(WEFT_MOVER_NIC, Mover::nic));
static_assert(same(WEFT_MOVER_COPY_ENGINE, Mover::copy_engine));
static_assert(same(WEFT_MOVER_CPU, Mover::cpu));
static_assert(same(WEFT_MOVER_KERNEL, Mover::kernel));
static_assert(same(WEFT_MOVER_DRIVE, Mover::drive));
static_assert(same(WEFT_STOP_HOST, Stop::Kind::host));
static_assert(same(WEFT_STOP_DEVICE, Stop::Kind::device));
static_assert(same(WEFT_STOP_BOUNCE_BUFFER, Stop::Kind::bounce_buffer));
static_assert(same(WEFT_STOP_PROVIDER_BUFFER, Stop::Kind::provider_buffer));
static_assert(same(WEFT_STOP_SOCKET_BUFFER, Stop::Kind::socket_buffer));
static_assert(same(WEFT_STOP_NIC, Stop::Kind::nic));
static_assert(same(WEFT_STOP_WIRE, Stop::Kind::wire));
static_assert(same(WEFT_STOP_FILE, Stop::Kind::file));
static_assert(same(WEFT_STOP_FILE_BUFFER, Stop::Kind::file_buffer));
static_assert(same(WEFT_SIDE_LOCAL, PathSide::local));
static_assert(same(WEFT_SIDE_REMOTE, PathSide::remote));
static_assert(same(WEFT_SIDE_BETWEEN, PathSide::between));
static_assert(same(WEFT_MEMORY_HOST, MemoryKind::host));
static_assert(same(WEFT_MEMORY_DEVICE, MemoryKind::device));
static_assert(same(WEFT_MEMORY_FILE, MemoryKind::file));
static_assert(same(WEFT_MEMORY_BUFFERED_FILE, MemoryKind::buffered_file));
static_assert(same(WEFT_KEYS_AUTOMATIC, Keys::automatic));
static_assert(same(WEFT_KEYS_OWN, Keys::own));
static_assert(same(WEFT_RIGHT_READ, Rights::read));
static_assert(same(WEFT_RIGHT_WRITE, Rights::write));
static_assert(same(WEFT_RIGHT_READ_WRITE, Rights::read_write));
static_assert(same(WEFT_WRITE, Direction::write));
static_assert(same(WEFT_READ, Direction::read));

static_assert(same(WEFT_LATE_KEEP, Late::keep));
static_assert(same(WEFT_LATE_HOLD, Late::hold));
static_assert(same(WEFT_LATE_DROP, Late::drop));

static_assert(same(WEFT_PLACED_ALL, Placed::all));
static_assert(same(WEFT_PLACED_NONE, Placed::none));
static_assert(same(WEFT_PLACED_UNKNOWN, Placed::unknown));

static_assert(same(WEFT_STATE_ACTIVE, State::active));
static_assert(same(WEFT_STATE_DONE, State::done));
static_assert(same(WEFT_STATE_FAILED, State::failed));
static_assert(same(WEFT_STATE_CANCELLED, State::cancelled));
static_assert(same(WEFT_STATE_TIMED_OUT, State::timed_out));

static_assert(same(WEFT_EVENT_TRANSFER_ENDED, Event::Kind::transfer_ended));
static_assert(same(WEFT_EVENT_SIGNALS_ARRIVED, Event::Kind::signals_arrived));
static_assert(same(WEFT_EVENT_MESSAGE_ARRIVED, Event::Kind::message_arrived));
static_assert(same(WEFT_EVENT_PEER_UP, Event::Kind::peer_up));
static_assert(same(WEFT_EVENT_PEER_DOWN, Event::Kind::peer_down));

static_assert(same(WEFT_KV_BF16, kv::DType::bf16));
static_assert(same(WEFT_KV_FP8, kv::DType::fp8));
static_assert(same(WEFT_KV_FP16, kv::DType::fp16));
static_assert(same(WEFT_KV_FP32, kv::DType::fp32));
static_assert(same(WEFT_KV_FP8_E5M2, kv::DType::fp8_e5m2));
static_assert(same(WEFT_KV_FP4, kv::DType::fp4));
static_assert(same(WEFT_KV_E8M0, kv::DType::e8m0));
static_assert(same(WEFT_KV_INT8, kv::DType::int8));
static_assert(same(WEFT_KV_SPLIT, kv::Placement::split));
static_assert(same(WEFT_KV_FUSED, kv::Placement::fused));
static_assert(same(WEFT_KV_LAYER_MAJOR, kv::Order::layer_major));
static_assert(same(WEFT_KV_BLOCK_MAJOR, kv::Order::block_major));
static_assert(same(WEFT_KV_NHD, kv::HeadOrder::nhd));
static_assert(same(WEFT_KV_HND, kv::HeadOrder::hnd));
static_assert(same(WEFT_KV_REGION_ONE, kv::Regions::one));
static_assert(same(WEFT_KV_REGION_PER_LAYER, kv::Regions::per_layer));
static_assert(same(WEFT_KV_REGION_PER_FIELD, kv::Regions::per_field));
static_assert(same(WEFT_KV_REGION_PER_LAYER_AND_FIELD, kv::Regions::per_layer_and_field));
static_assert(sizeof(weft_kv_hash) == sizeof(kv::BlockHash));

}  // namespace
}  // namespace weft
