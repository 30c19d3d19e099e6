// The extension module weft._weft: weft/__init__.py shows what is for users.
#include <nanobind/nanobind.h>

#include <weft/process.hpp>
#include <weft/version.hpp>

#include "python/binding/config.hpp"
#include "python/binding/engine.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/gil.hpp"
#include "python/binding/info.hpp"
#include "python/binding/kv.hpp"
#include "python/binding/memory.hpp"
#include "python/binding/messages.hpp"
#include "python/binding/paths.hpp"
#include "python/binding/peers.hpp"
#include "python/binding/pieces.hpp"
#include "python/binding/testkit.hpp"
#include "python/binding/transfers.hpp"
#include "python/binding/weights.hpp"

NB_MODULE(_weft, module) {
  using namespace weft::python;
  // Before there are threads that call getenv(), as far as an import can be.
  weft::prepare_process();
  // What Python leaves behind at its end is not worth a warning.
  nanobind::set_leak_warnings(false);
  module.attr("__version__") = WEFT_VERSION;
  bind_errors();
  bind_exit(module);
  bind_memory(module);
  bind_pieces(module);
  bind_transfers(module);
  bind_messages(module);
  bind_paths(module);
  bind_peers(module);
  bind_config(module);
  bind_info(module);
  bind_engine(module);
  bind_testkit(module);
  bind_kv_layouts(module);
  bind_kv_plans(module);
  bind_kv_models(module);
  bind_weights_plan(module);
  bind_weights_steps(module);
  bind_weights_models(module);
}
