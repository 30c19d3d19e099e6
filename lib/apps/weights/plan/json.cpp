// Worlds as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <weft/weights_plan.hpp>

namespace weft::weights {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// Caught where reading ends.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value of the file, and where it stands: "publishers[0].shards[3]".
class Value {
 public:
  Value(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw Refused(fmt::format("{} {}", place_.empty() ? "the file" : place_, why));
  }
  const Value& object(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) refuse("must be an object");
    for (const auto& [key, value] : json_.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        refuse(fmt::format("has the key \"{}\", which is unknown", key));
    return *this;
  }
  bool has(const char* key) const { return json_.contains(key); }
  Value at(const char* key) const {
    if (!has(key)) refuse(fmt::format("lacks \"{}\"", key));
    return {json_[key], place_.empty() ? key : fmt::format("{}.{}", place_, key)};
  }
  std::string text() const {
    if (!json_.is_string()) refuse("must be a text");
    return json_.get<std::string>();
  }
  std::uint64_t number(std::uint64_t most = std::uint64_t{1} << 62) const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > most)
      refuse(fmt::format("must be a whole number from 0 to {}", most));
    return json_.get<std::uint64_t>();
  }
  double real() const {
    if (!json_.is_number()) refuse("must be a number");
    return json_.get<double>();
  }
  template <typename Read>
  void each(Read read) const {
    if (!json_.is_array()) refuse("must be a list");
    for (std::size_t i = 0; i < json_.size(); ++i)
      read(Value(json_[i], fmt::format("{}[{}]", place_, i)));
  }

 private:
  const Json& json_;
  std::string place_;
};

Dims dims_from(const Value& value) {
  std::vector<std::uint64_t> numbers;
  value.each([&](const Value& number) {
    if (numbers.size() == Dims::most)
      value.refuse(fmt::format("has more than {} dimensions", Dims::most));
    numbers.push_back(number.number());
  });
  return Dims(numbers);
}

Shard shard_from(const Value& value) {
  value.object({"name", "dtype", "shape", "begin", "extent", "segment", "offset", "strides"});
  Shard shard;
  shard.name = value.at("name").text();
  const auto type = dtype_named(value.at("dtype").text());
  if (!type) value.at("dtype").refuse("is unknown: " + type.error().message());
  shard.dtype = *type;
  shard.shape = dims_from(value.at("shape"));
  if (value.has("begin") || value.has("extent")) {
    shard.begin = dims_from(value.at("begin"));
    shard.extent = dims_from(value.at("extent"));
  } else {
    shard.extent = shard.begin = shard.shape;
    for (std::size_t d = 0; d < shard.begin.size(); ++d) shard.begin[d] = 0;
  }
  constexpr std::uint64_t most_segments = 0xffff'ffff;
  if (value.has("segment"))
    shard.segment = static_cast<std::uint32_t>(value.at("segment").number(most_segments));
  if (value.has("offset")) shard.offset = value.at("offset").number();
  if (value.has("strides")) shard.strides = dims_from(value.at("strides"));
  return shard;
}

Rank rank_from(const Value& value) {
  value.object({"name", "host", "nics", "gbps", "shards"});
  Rank rank;
  rank.name = value.at("name").text();
  if (value.has("host")) rank.host = value.at("host").text();
  constexpr std::uint64_t most_nics = 1024;  // a machine has some tens
  if (value.has("nics")) rank.nics = static_cast<std::uint32_t>(value.at("nics").number(most_nics));
  if (value.has("gbps")) rank.gbps = value.at("gbps").real();
  if (value.has("shards"))
    value.at("shards").each([&](const Value& each) { rank.shards.push_back(shard_from(each)); });
  return rank;
}

World world_from(const Value& file) {
  file.object({"publishers", "subscribers"});
  World world;
  const auto read = [&](const char* key, std::vector<Rank>& ranks) {
    if (!file.has(key)) return;
    file.at(key).each([&](const Value& each) { ranks.push_back(rank_from(each)); });
  };
  read("publishers", world.publishers);
  read("subscribers", world.subscribers);
  return world;
}

OrderedJson json_of(const Dims& dims) {
  OrderedJson list = OrderedJson::array();
  for (const std::uint64_t each : dims) list.push_back(each);
  return list;
}

OrderedJson json_of(const Shard& shard) {
  OrderedJson json = {{"name", shard.name},
                      {"dtype", name_of(shard.dtype)},
                      {"shape", json_of(shard.shape)},
                      {"begin", json_of(shard.begin)},
                      {"extent", json_of(shard.extent)},
                      {"segment", shard.segment},
                      {"offset", shard.offset}};
  if (!shard.strides.empty()) json["strides"] = json_of(shard.strides);
  return json;
}

OrderedJson json_of(const std::vector<Rank>& ranks) {
  OrderedJson list = OrderedJson::array();
  for (const Rank& rank : ranks) {
    OrderedJson shards = OrderedJson::array();
    for (const Shard& shard : rank.shards) shards.push_back(json_of(shard));
    list.push_back({{"name", rank.name},
                    {"host", rank.host},
                    {"nics", rank.nics},
                    {"gbps", rank.gbps},
                    {"shards", std::move(shards)}});
  }
  return list;
}

}  // namespace

std::string to_json(const World& world) {
  const OrderedJson json = {{"publishers", json_of(world.publishers)},
                            {"subscribers", json_of(world.subscribers)}};
  // Names come from programs: what is no UTF-8 is replaced.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<World> world_from_json(std::string_view text) {
  try {
    const Json file = Json::parse(text);
    return world_from({file, {}});
  } catch (const Refused& refused) {
    return fail(Code::invalid_argument,
                fmt::format("The ranks can't be read: {}.", refused.what()));
  } catch (const Json::exception& error) {
    return fail(Code::invalid_argument, fmt::format("The ranks can't be read: {}.", error.what()));
  }
}

}  // namespace weft::weights
