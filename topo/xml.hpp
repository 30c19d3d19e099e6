// What a text is that claims to be hwloc's XML, before hwloc parses it.
#pragma once

#include <string>
#include <string_view>

namespace weft::topo {

/// The document without comments and carriage returns, and with each header on a line of its own,
/// as hwloc's own parser wants it, which it uses where it was built without libxml2.
std::string plain_xml(std::string_view xml);

/// How many elements lie within one another, as hwloc's parser sees it.
int nesting(std::string_view xml);

/// Why hwloc does not read it: of which format it is, and what to do.
std::string why_refused(std::string_view xml);

}  // namespace weft::topo
