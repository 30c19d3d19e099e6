// The commands, each in a file of its own. They return the exit code.
#pragma once

#include "options.hpp"

namespace weft::tool {

int run_info(const InfoOptions& options);
int run_explain(const ExplainOptions& options);
int run_topo(const TopoOptions& options);
int run_decode(const DecodeOptions& options);
int run_prefill(const PrefillOptions& options);
int run_demo(const DemoOptions& options);
int run_nixl(const NixlOptions& options);

}  // namespace weft::tool
