#include "nixl/connection.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "nixl/wire.hpp"

namespace weft::nixl {
namespace {

constexpr std::uint16_t version = 1;

}  // namespace

std::string this_host() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id.empty() ? "unknown" : id;
}

std::string this_network() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/ns/net", unreadable).string();
}

std::string encode(const Connection& connection) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::CreateConnectionDirect(builder, version, connection.engine.c_str(),
                                              connection.address.c_str(), connection.host.c_str(),
                                              connection.max_message, connection.network.c_str()));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

Result<Connection> decode_connection(const std::string& bytes) {
  const Verified<wire::Connection> verified(bytes.data(), bytes.size());
  if (!verified) return fail(Code::protocol_mismatch, "the connection info is not of this plug-in");
  if (verified->version() != version)
    return fail(Code::protocol_mismatch,
                fmt::format("the connection info has version {}, this plug-in reads {}",
                            verified->version(), version));
  const auto* const network = verified->network();
  return Connection{verified->engine()->str(), verified->address()->str(), verified->host()->str(),
                    verified->max_message(), network != nullptr ? network->str() : ""};
}

}  // namespace weft::nixl
