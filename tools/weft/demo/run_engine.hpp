// The run of a command with an engine.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <weft/engine.hpp>

#include "command/ending.hpp"
#include "command/engine_options.hpp"
#include "demo/report.hpp"

namespace weft::tool {

/// Opens an engine whose NICs serve `memory`, as check_memory() has it, lets `work` measure a run
/// with it, prints the report, and returns the exit code. A signal closes the engine and requests a
/// stop, which end `work` early; what fails in it may request the stop itself.
int run_with_engine(std::string_view command, const ConsoleOptions& console, Config config,
                    const std::string& memory,
                    const std::function<Result<RunReport>(Engine&, std::stop_source&)>& work);

}  // namespace weft::tool
