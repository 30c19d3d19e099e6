#include "look/graphviz.hpp"

#include "common/drawing_program.hpp"
#include "common/output.hpp"

namespace weft::tool {

Result<std::string> render(const std::string& graph, const std::string& format) {
  return draw({"dot", "-T" + format,
               "Graphviz's program 'dot' is not installed: the package graphviz has it"},
              graph);
}

Result<void> render_to(const std::string& file, const std::string& graph,
                       const std::string& format) {
  if (file.empty()) return {};
  return render(graph, format).and_then([&](const std::string& picture) {
    return write_output(file, picture);
  });
}

}  // namespace weft::tool
