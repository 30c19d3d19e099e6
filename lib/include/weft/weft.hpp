/// @file
/// All of Weft's public API.
///
/// @namespace weft
/// The C++ API. Start with Engine, then Segment, Grant and Transfer.
///
/// @namespace weft::kv
/// Layouts of paged KV caches, and the copies between them. Arithmetic only.
///
/// @namespace weft::weights
/// A model's new weights, from trainers to inference ranks.
#pragma once

#include <weft/capability.hpp>
#include <weft/config.hpp>
#include <weft/deadline.hpp>
#include <weft/engine.hpp>
#include <weft/error.hpp>
#include <weft/file_options.hpp>
#include <weft/grant.hpp>
#include <weft/health.hpp>
#include <weft/kv.hpp>
#include <weft/kv_models.hpp>
#include <weft/log.hpp>
#include <weft/memory.hpp>
#include <weft/message.hpp>
#include <weft/metrics.hpp>
#include <weft/nic_counters.hpp>
#include <weft/path.hpp>
#include <weft/place.hpp>
#include <weft/policy.hpp>
#include <weft/process.hpp>
#include <weft/remote.hpp>
#include <weft/segment.hpp>
#include <weft/topology.hpp>
#include <weft/transfer.hpp>
#include <weft/version.hpp>
#include <weft/weights.hpp>
#include <weft/weights_models.hpp>
#include <weft/weights_plan.hpp>
