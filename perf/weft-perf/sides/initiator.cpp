// What an initiator measured, on its way between processes.
#include "sides/initiator.hpp"

namespace weft::perf {
namespace {

Json json_of(const Histogram& latency) {
  return {{"buckets", latency.buckets()},
          {"greatest", latency.greatest().count()},
          {"mean", latency.mean()}};
}

Histogram histogram_of(const Json& json) {
  return Histogram(json.at("buckets").get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>(),
                   Nanoseconds(json.at("greatest").get<Nanoseconds::rep>()),
                   json.at("mean").get<double>());
}

}  // namespace

void to_json(Json& json, const Part& part) {
  json = {{"operations", part.load.operations},
          {"start_ns", part.load.start.time_since_epoch().count()},
          {"seconds", part.load.seconds},
          {"latency", json_of(part.load.latency)},
          {"overloaded", part.load.overloaded},
          {"bytes", part.bytes},
          {"cpu_seconds", part.cpu_seconds},
          {"copies_per_byte", part.copies.per_byte},
          {"all_copies_known", part.copies.known},
          {"rails", part.rails},
          {"transfers", part.transfers},
          {"ceiling_gbps", part.ceiling_gbps}};
}

void from_json(const Json& json, Part& part) {
  json.at("operations").get_to(part.load.operations);
  part.load.start = Clock::time_point(Nanoseconds(json.at("start_ns").get<Nanoseconds::rep>()));
  json.at("seconds").get_to(part.load.seconds);
  part.load.latency = histogram_of(json.at("latency"));
  json.at("overloaded").get_to(part.load.overloaded);
  json.at("bytes").get_to(part.bytes);
  json.at("cpu_seconds").get_to(part.cpu_seconds);
  json.at("copies_per_byte").get_to(part.copies.per_byte);
  json.at("all_copies_known").get_to(part.copies.known);
  json.at("rails").get_to(part.rails);
  json.at("transfers").get_to(part.transfers);
  json.at("ceiling_gbps").get_to(part.ceiling_gbps);
}

}  // namespace weft::perf
