// Pictures made by Graphviz.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::tool {

/// Runs Graphviz's program `dot` on a graph, and returns the picture. `format` is "svg" or "png".
/// Ends early, as cancelled, when a signal has come, which can still be read.
Result<std::string> render(const std::string& graph, const std::string& format);

/// Puts the picture into a file, if there is to be one.
Result<void> render_to(const std::string& file, const std::string& graph,
                       const std::string& format);

}  // namespace weft::tool
