// The C API: segments, grants, and peers' grants.
#include "capi/boundary.hpp"

using namespace weft;
using namespace weft::capi;

namespace {

weft_code add(weft_engine* engine, const Memory& memory, weft_segment** segment,
              weft_error** error) {
  return call(error, {{"engine", engine}, {"segment", segment}},
              [&] { return give(segment, engine->value.add(memory)); });
}

/// Of a GPU that has to be named.
weft_code add_near(weft_engine* engine, const Memory& memory, const char* gpu,
                   weft_segment** segment, weft_error** error) {
  return call(error, {{"engine", engine}, {"gpu", gpu}, {"segment", segment}},
              [&] { return give(segment, engine->value.add(memory.near_gpu(gpu))); });
}

FileOptions from_c(const weft_file_options& c) {
  FileOptions options;
  options.direct = !c.buffered;
  options.read_only = c.read_only;
  options.create = c.create;
  options.durable = c.durable;
  if (c.queue_depth != 0) options.queue_depth = c.queue_depth;
  if (c.bytes_in_flight != 0) options.bytes_in_flight = c.bytes_in_flight;
  if (c.timeout_ns != 0) options.timeout = Nanoseconds(c.timeout_ns);
  options.checked_block = c.checked_block;
  if (c.sums != nullptr) options.sums = c.sums;
  options.reserve = c.reserve;
  return options;
}

/// 0 for one without end.
Nanoseconds ttl_of(std::int64_t nanoseconds) {
  return nanoseconds == 0 ? unlimited : Nanoseconds(nanoseconds);
}

Result<void> quiescent(const Grant& grant, const Result<Revoked>& revoked) {
  if (!revoked) return fail(revoked.error());
  if (*revoked == Revoked::quiescent) return {};
  return fail(grant.why_quarantined());
}

weft_range to_c(const Range& range) {
  return {range.offset, range.length};
}

}  // namespace

weft_code weft_engine_add_own(weft_engine* engine, size_t bytes, weft_segment** segment,
                              weft_error** error) {
  return add(engine, Memory::own(bytes), segment, error);
}
weft_code weft_engine_add_huge(weft_engine* engine, size_t bytes, weft_segment** segment,
                               weft_error** error) {
  return add(engine, Memory::huge(bytes), segment, error);
}
weft_code weft_engine_add_huge_pages(weft_engine* engine, size_t bytes, size_t page_bytes,
                                     weft_segment** segment, weft_error** error) {
  return add(engine, Memory::huge(bytes, page_bytes), segment, error);
}
weft_code weft_engine_add_shared(weft_engine* engine, size_t bytes, weft_segment** segment,
                                 weft_error** error) {
  return add(engine, Memory::shared(bytes), segment, error);
}
weft_code weft_engine_add_map(weft_engine* engine, int fd, uint64_t offset, size_t bytes,
                              weft_segment** segment, weft_error** error) {
  return add(engine, Memory::map(fd, offset, bytes), segment, error);
}
weft_code weft_engine_adopt(weft_engine* engine, void* address, size_t bytes,
                            weft_segment** segment, weft_error** error) {
  return add(engine, Memory::adopt(address, bytes), segment, error);
}
weft_code weft_engine_adopt_read_only(weft_engine* engine, const void* address, size_t bytes,
                                      weft_segment** segment, weft_error** error) {
  return add(engine, Memory::adopt(const_cast<void*>(address), bytes).read_only(), segment, error);
}
weft_code weft_engine_adopt_owned(weft_engine* engine, void* address, size_t bytes,
                                  void (*let_go)(void* context), void* context,
                                  weft_segment** segment, weft_error** error) {
  return call(
      error,
      {{"engine", engine}, {"let_go", reinterpret_cast<const void*>(let_go)}, {"segment", segment}},
      [&] {
        const std::shared_ptr<void> owner(context, let_go);
        return give(segment, engine->value.add(Memory::adopt(address, bytes, owner)));
      });
}

weft_code weft_engine_add_file(weft_engine* engine, const char* path, uint64_t offset, size_t bytes,
                               const weft_file_options* options, weft_segment** segment,
                               weft_error** error) {
  return call(error, {{"engine", engine}, {"path", path}, {"segment", segment}}, [&] {
    return read_optional("options", options).and_then([&](const weft_file_options& given) {
      return give(segment, engine->value.add(Memory::file(path, offset, bytes, from_c(given))));
    });
  });
}

weft_code weft_engine_add_own_near(weft_engine* engine, size_t bytes, const char* gpu,
                                   weft_segment** segment, weft_error** error) {
  return add_near(engine, Memory::own(bytes), gpu, segment, error);
}
weft_code weft_engine_adopt_near(weft_engine* engine, void* address, size_t bytes, const char* gpu,
                                 weft_segment** segment, weft_error** error) {
  return add_near(engine, Memory::adopt(address, bytes), gpu, segment, error);
}

weft_code weft_segment_release(weft_segment* segment, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"segment", segment}},
              [&] { return segment->value.release(in(timeout_ns)); });
}

void weft_segment_free(weft_segment* segment) {
  delete segment;
}

void* weft_segment_data(const weft_segment* segment) {
  return segment != nullptr ? segment->value.data() : nullptr;
}
uint64_t weft_segment_size(const weft_segment* segment) {
  return segment != nullptr ? segment->value.size() : 0;
}
int weft_segment_fd(const weft_segment* segment) {
  return segment != nullptr ? segment->value.fd() : -1;
}

weft_code weft_segment_place(const weft_segment* segment, weft_place* place, weft_error** error) {
  return call(error, {{"segment", segment}, {"place", place}}, [&]() -> Result<void> {
    *place = capi::to_c(segment->value.place());
    return {};
  });
}

weft_code weft_segment_grant(weft_segment* segment, const weft_range* ranges, size_t count,
                             int32_t rights, int64_t ttl_ns, int32_t keys, weft_grant** grant,
                             weft_error** error) {
  return call(error, {{"segment", segment}, list("ranges", ranges, count), {"grant", grant}}, [&] {
    return enumerator("rights", rights, Rights::read, Rights::read_write)
        .and_then([&](Rights known) {
          std::vector<Range> list;
          for (const weft_range& range : std::span(ranges, count))
            list.push_back({range.offset, range.length});
          return enumerator("keys", keys, Keys::automatic, Keys::own).and_then([&](Keys use) {
            return give(grant, segment->value.grant(list, known, ttl_of(ttl_ns), use));
          });
        });
  });
}

void weft_grant_free(weft_grant* grant) {
  delete grant;
}

const void* weft_grant_blob(const weft_grant* grant) {
  return grant != nullptr ? grant->blob.data() : nullptr;
}
size_t weft_grant_blob_size(const weft_grant* grant) {
  return grant != nullptr ? grant->blob.size() : 0;
}
uint64_t weft_grant_lease_id(const weft_grant* grant) {
  return grant != nullptr ? grant->value.lease_id() : 0;
}

weft_code weft_grant_renew(weft_grant* grant, int64_t ttl_ns, weft_error** error) {
  return call(error, {{"grant", grant}}, [&] { return grant->value.renew(ttl_of(ttl_ns)); });
}
weft_code weft_grant_revoke(weft_grant* grant, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"grant", grant}},
              [&] { return quiescent(grant->value, grant->value.revoke(in(timeout_ns))); });
}
weft_code weft_grant_fence(weft_grant* grant, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"grant", grant}},
              [&] { return quiescent(grant->value, grant->value.fence(in(timeout_ns))); });
}

weft_code weft_grant_fence_rails(weft_grant* grant, int64_t timeout_ns, weft_error** error) {
  return call(error, {{"grant", grant}}, [&] {
    return quiescent(grant->value, grant->value.fence(in(timeout_ns), FenceScope::rail));
  });
}

weft_code weft_engine_import(weft_engine* engine, const void* blob, size_t bytes,
                             weft_remote** remote, weft_error** error) {
  return call(error, {{"engine", engine}, list("blob", blob, bytes), {"remote", remote}},
              [&] { return give(remote, engine->value.import(bytes_of(blob, bytes))); });
}

weft_code weft_engine_publish(weft_engine* engine, const char* name, const weft_grant* grant,
                              weft_error** error) {
  return call(error, {{"engine", engine}, {"name", name}, {"grant", grant}},
              [&] { return engine->value.publish(name, grant->value); });
}

weft_code weft_peer_lookup(const weft_peer* peer, const char* name, int64_t timeout_ns,
                           weft_remote** remote, weft_error** error) {
  return call(error, {{"peer", peer}, {"name", name}, {"remote", remote}},
              [&] { return give(remote, peer->value.lookup(name, in(timeout_ns))); });
}

void weft_remote_free(weft_remote* remote) {
  delete remote;
}

const char* weft_remote_peer(const weft_remote* remote) {
  return remote != nullptr ? remote->value.peer().c_str() : nullptr;
}
uint64_t weft_remote_segment_size(const weft_remote* remote) {
  return remote != nullptr ? remote->value.segment_size() : 0;
}
int32_t weft_remote_rights(const weft_remote* remote) {
  return remote != nullptr ? static_cast<int32_t>(remote->value.rights()) : 0;
}
size_t weft_remote_range_count(const weft_remote* remote) {
  return remote != nullptr ? remote->value.ranges().size() : 0;
}

weft_code weft_remote_place(const weft_remote* remote, weft_place* place, weft_error** error) {
  return call(error, {{"remote", remote}, {"place", place}}, [&]() -> Result<void> {
    *place = capi::to_c(remote->value.place());
    return {};
  });
}

weft_code weft_remote_range(const weft_remote* remote, size_t index, weft_range* range,
                            weft_error** error) {
  return call(error, {{"remote", remote}, {"range", range}}, [&] {
    return at("range", remote->value.ranges(), index).map([&](const Range* found) {
      *range = to_c(*found);
    });
  });
}
