#include "look/graphviz.hpp"

#include "common/drawing_program.hpp"

namespace weft::tool {

Result<std::string> render(const std::string& graph, const std::string& format) {
  return draw({"dot", "-T" + format,
               "Graphviz's program 'dot' is not installed: the package graphviz has it"},
              graph);
}

}  // namespace weft::tool
