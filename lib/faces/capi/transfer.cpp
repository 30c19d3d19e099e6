// The C API: prepared lists and transfers.
#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

std::vector<Pair> from_c(const weft_pair* pairs, std::size_t count) {
  std::vector<Pair> list;
  list.reserve(count);
  for (const weft_pair& pair : std::span(pairs, count))
    list.push_back({pair.local, pair.remote, pair.length});
  return list;
}

Strided from_c(const weft_strided& pieces) {
  return {{pieces.first.local, pieces.first.remote, pieces.first.length},
          pieces.count,
          pieces.local_stride,
          pieces.remote_stride};
}

Result<Paged> from_c(const weft_paged& pieces) {
  return check({list("pieces->local_pages", pieces.local_pages, pieces.count),
                list("pieces->remote_pages", pieces.remote_pages, pieces.count)})
      .map([&] {
        return Paged{pieces.page_bytes,
                     pieces.local_base,
                     pieces.local_stride,
                     pieces.remote_base,
                     pieces.remote_stride,
                     {pieces.local_pages, pieces.count},
                     {pieces.remote_pages, pieces.count}};
      });
}

/// Prepares what `pieces()` gives: a Result of any form of pieces.
template <typename Pieces>
weft_code prepare(weft_engine* engine, const weft_segment* local, const weft_remote* remote,
                  std::int32_t direction, Argument given, weft_prepared** prepared,
                  weft_error** error, Pieces&& pieces) {
  return call(
      error,
      {{"engine", engine}, {"local", local}, {"remote", remote}, given, {"prepared", prepared}},
      [&] {
        return enumerator("direction", direction, Direction::write, Direction::read)
            .and_then([&](Direction known) {
              return pieces().and_then([&](const auto& form) {
                return give(prepared,
                            engine->value.prepare(local->value, remote->value, known, form));
              });
            });
      });
}

}  // namespace

weft_code weft_segment_copy(weft_segment* target, const weft_segment* source,
                            const weft_pair* pairs, size_t count, int64_t timeout_ns,
                            weft_error** error) {
  return call(error, {{"target", target}, {"source", source}, list("pairs", pairs, count)}, [&] {
    return target->value.copy_from(source->value, from_c(pairs, count), in(timeout_ns));
  });
}

namespace {

/// Submits by `start(TransferOptions)`.
template <typename Start>
weft_code submit(std::initializer_list<Argument> arguments, const weft_transfer_options* given,
                 weft_transfer** transfer, weft_error** error, Start&& start) {
  return call(error, arguments, [&] {
    return check({{"transfer", transfer}})
        .and_then([&] { return read_optional("options", given); })
        .and_then([](const weft_transfer_options& options) { return weft::capi::from_c(options); })
        .and_then(
            [&](TransferOptions&& options) { return give(transfer, start(std::move(options))); });
  });
}

}  // namespace

namespace weft::capi {

Result<TransferOptions> from_c(const weft_transfer_options& c) {
  auto transport = enumerator("options->transport", c.transport, TransportKind::automatic,
                              TransportKind::device_copy);
  if (!transport) return fail(transport.error());
  auto priority = enumerator("options->priority", c.priority, Priority::latency, Priority::bulk);
  if (!priority) return fail(priority.error());
  if (auto checked = check({list("options->signal_data", c.signal_data, c.signal_bytes)}); !checked)
    return fail(checked.error());
  auto policy = policy_of("options->policy", c.policy);
  if (!policy) return fail(std::move(policy.error()));
  TransferOptions options;
  if (c.policy != nullptr) options.policy = std::move(*policy);
  if (c.timeout_ns != 0) options.deadline = in(c.timeout_ns);
  if (c.signal) options.signal = Signal{c.signal_id, bytes_of(c.signal_data, c.signal_bytes)};
  options.cookie = c.cookie;
  options.event = c.event;
  options.transport = *transport;
  options.priority = *priority;
  options.verify = c.verify;
  options.after_gpu_event = c.after_gpu_event;
  if (c.wait_for_room_ns != 0) options.wait_for_room = in(c.wait_for_room_ns);
  if (c.on_end != nullptr)
    options.on_end = [on_end = c.on_end, context = c.context](const Ended& ended) {
      on_end(context, ended.cookie, static_cast<std::int32_t>(ended.state),
             make_error(ended.error).get());
    };
  return options;
}

}  // namespace weft::capi

weft_code weft_engine_prepare_pairs(weft_engine* engine, const weft_segment* local,
                                    const weft_remote* remote, int32_t direction,
                                    const weft_pair* pairs, size_t count, weft_prepared** prepared,
                                    weft_error** error) {
  return prepare(engine, local, remote, direction, list("pairs", pairs, count), prepared, error,
                 [&] { return Result<std::vector<Pair>>(from_c(pairs, count)); });
}

weft_code weft_engine_prepare_strided(weft_engine* engine, const weft_segment* local,
                                      const weft_remote* remote, int32_t direction,
                                      const weft_strided* pieces, weft_prepared** prepared,
                                      weft_error** error) {
  return prepare(engine, local, remote, direction, {"pieces", pieces}, prepared, error,
                 [&] { return Result<Strided>(from_c(*pieces)); });
}

weft_code weft_engine_prepare_paged(weft_engine* engine, const weft_segment* local,
                                    const weft_remote* remote, int32_t direction,
                                    const weft_paged* pieces, weft_prepared** prepared,
                                    weft_error** error) {
  return prepare(engine, local, remote, direction, {"pieces", pieces}, prepared, error,
                 [&] { return from_c(*pieces); });
}

void weft_prepared_free(weft_prepared* prepared) {
  delete prepared;
}

size_t weft_prepared_size(const weft_prepared* prepared) {
  return prepared != nullptr ? prepared->value.size() : 0;
}
uint64_t weft_prepared_bytes(const weft_prepared* prepared) {
  return prepared != nullptr ? prepared->value.bytes() : 0;
}

weft_code weft_engine_submit(weft_engine* engine, const weft_prepared* prepared,
                             const uint32_t* picks, size_t count,
                             const weft_transfer_options* options, weft_transfer** transfer,
                             weft_error** error) {
  return submit({{"engine", engine}, {"prepared", prepared}, list("picks", picks, count)}, options,
                transfer, error, [&](TransferOptions&& known) {
                  return engine->value.submit(prepared->value, {picks, count}, std::move(known));
                });
}

weft_code weft_engine_submit_all(weft_engine* engine, const weft_prepared* prepared,
                                 const weft_transfer_options* options, weft_transfer** transfer,
                                 weft_error** error) {
  return submit({{"engine", engine}, {"prepared", prepared}}, options, transfer, error,
                [&](TransferOptions&& known) {
                  return engine->value.submit(prepared->value, std::move(known));
                });
}

weft_code weft_engine_write(weft_engine* engine, const weft_segment* local,
                            const weft_remote* remote, const weft_pair* pairs, size_t count,
                            const weft_transfer_options* options, weft_transfer** transfer,
                            weft_error** error) {
  return submit(
      {{"engine", engine}, {"local", local}, {"remote", remote}, list("pairs", pairs, count)},
      options, transfer, error, [&](TransferOptions&& known) {
        return engine->value.write(local->value, remote->value, from_c(pairs, count),
                                   std::move(known));
      });
}

weft_code weft_engine_read(weft_engine* engine, const weft_segment* local,
                           const weft_remote* remote, const weft_pair* pairs, size_t count,
                           const weft_transfer_options* options, weft_transfer** transfer,
                           weft_error** error) {
  return submit(
      {{"engine", engine}, {"local", local}, {"remote", remote}, list("pairs", pairs, count)},
      options, transfer, error, [&](TransferOptions&& known) {
        return engine->value.read(local->value, remote->value, from_c(pairs, count),
                                  std::move(known));
      });
}

weft_code weft_engine_warm(weft_engine* engine, const weft_segment* local,
                           const weft_remote* remote, const weft_transfer_options* options,
                           weft_transfer** transfer, weft_error** error) {
  return submit({{"engine", engine}, {"local", local}, {"remote", remote}}, options, transfer,
                error, [&](TransferOptions&& known) {
                  return engine->value.warm(local->value, remote->value, std::move(known));
                });
}

void weft_transfer_free(weft_transfer* transfer) {
  delete transfer;
}

int32_t weft_transfer_state(const weft_transfer* transfer) {
  return transfer != nullptr ? static_cast<int32_t>(transfer->value.state()) : -1;
}
bool weft_transfer_quiescent(const weft_transfer* transfer) {
  return transfer != nullptr && transfer->value.quiescent();
}

weft_code weft_transfer_wait(weft_transfer* transfer, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"transfer", transfer}},
              [&] { return transfer->value.wait(in(timeout_ns)); });
}

weft_code weft_transfer_wait_quiescent(weft_transfer* transfer, int64_t timeout_ns,
                                       weft_error** error) {
  return call(error, {{"transfer", transfer}},
              [&] { return transfer->value.wait_quiescent(in(timeout_ns)); });
}

weft_code weft_transfer_cancel(weft_transfer* transfer, weft_error** error) {
  return call(error, {{"transfer", transfer}}, [&]() -> Result<void> {
    transfer->value.cancel();
    return {};
  });
}

weft_code weft_transfer_report(const weft_transfer* transfer, weft_report* report,
                               weft_error** error) {
  return call(error, {{"transfer", transfer}, {"report", report}}, [&] {
    const Report known = transfer->value.report();
    weft_report c{};
    c.state = static_cast<std::int32_t>(known.state);
    c.transport = static_cast<std::int32_t>(known.transport);
    c.bytes = known.bytes;
    c.bytes_done = known.bytes_done;
    c.ranges = known.ranges;
    c.runs = known.runs;
    c.operations = known.operations;
    c.elapsed_ns = known.elapsed.count();
    c.rail_count = known.rails.size();
    known.fallback.copy(c.fallback, sizeof c.fallback - 1);
    c.retries = known.retries;
    c.queued_ns = known.queued.count();
    c.carried_ns = known.carried.count();
    c.copied_count = known.copied.size();
    c.amplification = known.amplification;
    return fill("report", report, c);
  });
}

weft_code weft_transfer_placed(const weft_transfer* transfer, uint8_t* placed, size_t count,
                               weft_error** error) {
  return call(
      error, {{"transfer", transfer}, list("placed", placed, count)}, [&]() -> Result<void> {
        const std::vector<Placed> known = transfer->value.placed();
        if (known.size() != count)
          return fail(Code::invalid_argument,
                      fmt::format("the transfer has {} pieces, not {}", known.size(), count));
        std::transform(known.begin(), known.end(), placed,
                       [](Placed each) { return static_cast<std::uint8_t>(each); });
        return {};
      });
}

weft_code weft_transfer_rail_share(const weft_transfer* transfer, size_t index,
                                   weft_rail_share* share, weft_error** error) {
  return call(error, {{"transfer", transfer}, {"share", share}}, [&] {
    const Report report = transfer->value.report();
    return at("rail", report.rails, index).map([&](const Report::RailShare* found) {
      *share = {};
      found->rail.copy(share->rail, sizeof share->rail - 1);
      share->operations = found->operations;
      share->bytes = found->bytes;
    });
  });
}

weft_code weft_transfer_copied(const weft_transfer* transfer, size_t index, weft_copied* copied,
                               weft_error** error) {
  return call(error, {{"transfer", transfer}, {"copied", copied}}, [&] {
    const Report report = transfer->value.report();
    return at("copy", report.copied, index).map([&](const Report::Copied* found) {
      *copied = {static_cast<std::int32_t>(found->known), static_cast<std::int32_t>(found->by),
                 found->at_peer, found->bytes};
    });
  });
}
