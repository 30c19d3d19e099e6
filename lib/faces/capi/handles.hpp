// Contents of the C API's opaque handles.
#pragma once

#include <weft/weft.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <weft/engine.hpp>
#include <weft/kv.hpp>

struct weft_error {
  weft::Error value;
  std::string text = value.to_string();
};

struct weft_config {
  weft::Config value;
};

struct weft_engine {
  weft::Engine value;
};

struct weft_info {
  weft::Info value;
};

struct weft_text {
  std::string value;
};

struct weft_nics {
  std::vector<weft::NicCounters> value;
};

struct weft_peer {
  weft::Peer value;
  std::vector<std::string> rails = value.rails();
};

struct weft_segment {
  weft::Segment value;
};

struct weft_grant {
  weft::Grant value;
  weft::Blob blob = value.blob();
};

struct weft_remote {
  weft::Remote value;
};

struct weft_prepared {
  weft::Prepared value;
};

struct weft_path {
  explicit weft_path(weft::Path path) : value(std::move(path)) {
    stops.push_back(to_string(value.hops.front().from));
    for (const weft::Hop& hop : value.hops) stops.push_back(to_string(hop.to));
  }
  weft::Path value;
  std::vector<std::string> stops;  // as text, one more than there are hops
};

struct weft_transfer {
  weft::Transfer value;
};

struct weft_expectation {
  weft::Expectation value;
  std::optional<weft::Signals> arrived = {};
};

struct weft_receive {
  weft::Receive value;
  std::optional<weft::Message> arrived = {};
};

struct weft_kv_layout {
  weft::kv::Layout value;
};

struct weft_kv_cache {
  weft::kv::Cache value;
};

struct weft_kv_plan {
  std::vector<weft_kv_copy> copies;
  std::uint64_t bytes;
  std::uint64_t pieces;
};
