// The process as the public API tells of it.
#include <weft/process.hpp>

#include "providers/environment.hpp"
#include "providers/fabric.hpp"
#include "providers/loaded_library.hpp"

namespace weft {

void prepare_process() {
  providers::settle_environment(ProcessVariable::SetBy::prepared);
}

ProcessInfo process_info() {
  auto [in_use, others] = providers::loaded_libraries();
  return {providers::library_version(), std::move(in_use), std::move(others),
          providers::settled_environment()};
}

}  // namespace weft
