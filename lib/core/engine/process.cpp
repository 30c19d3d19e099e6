// The process as the public API tells of it.
#include <weft/process.hpp>

#include "providers/libfabric/environment.hpp"
#include "providers/libfabric/libfabric.hpp"
#include "providers/libfabric/loaded_files.hpp"

namespace weft {
namespace {

LibfabricInfo libfabric_info() {
  LibfabricInfo info;
  const providers::Libfabric* const used = providers::loaded_libfabric();
  if (used == nullptr) {
    info.problem = providers::libfabric_problem();
    return info;
  }
  info.version = used->version_text();
  info.file = used->file;
  info.found = used->found;
  info.warning = used->warning;
  info.others = providers::loaded_libfabrics();
  std::erase(info.others, used->file);
  return info;
}

}  // namespace

void prepare_process() {
  providers::settle_environment(ProcessVariable::SetBy::prepared);
}

ProcessInfo process_info() {
  return {libfabric_info(), providers::settled_environment()};
}

}  // namespace weft
