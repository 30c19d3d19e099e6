// The names of what paths, records and reports are made of: one table for each enumeration.
#include <array>
#include <weft/path.hpp>
#include <weft/transfer.hpp>

#include "base/named.hpp"

namespace weft {
namespace {

using Known = Report::Copied::Known;

template <typename Value, std::size_t rows>
constexpr std::string_view find_name(const core::Named<Value> (&table)[rows], Value value) {
  return core::name_of<Value>(table, value);
}

constexpr core::Named<Mover> movers[] = {{"nic", Mover::nic},
                                         {"copy_engine", Mover::copy_engine},
                                         {"cpu", Mover::cpu},
                                         {"kernel", Mover::kernel},
                                         {"drive", Mover::drive}};
constexpr core::Named<Mover> movers_in_words[] = {{"the NIC", Mover::nic},
                                                  {"the GPU's copy engine", Mover::copy_engine},
                                                  {"the CPU", Mover::cpu},
                                                  {"the kernel", Mover::kernel},
                                                  {"the drive", Mover::drive}};
constexpr core::Named<Stop::Kind> stop_kinds[] = {{"host", Stop::Kind::host},
                                                  {"device", Stop::Kind::device},
                                                  {"file", Stop::Kind::file},
                                                  {"file_buffer", Stop::Kind::file_buffer},
                                                  {"bounce_buffer", Stop::Kind::bounce_buffer},
                                                  {"provider_buffer", Stop::Kind::provider_buffer},
                                                  {"socket_buffer", Stop::Kind::socket_buffer},
                                                  {"nic", Stop::Kind::nic},
                                                  {"wire", Stop::Kind::wire}};
constexpr core::Named<PathSide> sides[] = {
    {"local", PathSide::local}, {"remote", PathSide::remote}, {"between", PathSide::between}};
constexpr core::Named<FenceScope> fence_scopes[] = {
    {"grant", FenceScope::grant}, {"segment", FenceScope::segment}, {"rail", FenceScope::rail}};
constexpr core::Named<Origin> origins[] = {{"native", Origin::native},
                                           {"emulated", Origin::emulated}};
constexpr core::Named<CompletionProof> proofs[] = {{"visible", CompletionProof::visible},
                                                   {"received", CompletionProof::received}};
constexpr core::Named<Known> kinds_of_knowledge[] = {
    {"counted", Known::counted}, {"declared", Known::declared}, {"unknown", Known::unknown}};

}  // namespace

std::string_view to_string(Mover mover) noexcept {
  return find_name(movers, mover);
}

std::string_view in_words(Mover mover) noexcept {
  return find_name(movers_in_words, mover);
}

std::string_view to_string(Stop::Kind kind) noexcept {
  return find_name(stop_kinds, kind);
}

std::string_view to_string(PathSide side) noexcept {
  return find_name(sides, side);
}

std::string_view to_string(FenceScope scope) noexcept {
  return find_name(fence_scopes, scope);
}

std::string_view to_string(Origin origin) noexcept {
  return find_name(origins, origin);
}

std::string_view to_string(CompletionProof proof) noexcept {
  return find_name(proofs, proof);
}

std::string_view to_string(Known known) noexcept {
  return find_name(kinds_of_knowledge, known);
}

}  // namespace weft
