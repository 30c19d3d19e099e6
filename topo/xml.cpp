#include "topo/xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "topo/read.hpp"

namespace weft::topo {
namespace {

constexpr std::size_t npos = std::string_view::npos;

/// A '<' begins no text and no attribute of XML, so that this is a comment wherever it stands. One
/// that does not end is left for the parser to refuse.
std::string without_comments(std::string_view xml) {
  constexpr std::string_view begin = "<!--", end = "-->";
  std::string rest;
  while (true) {
    const std::size_t comment = xml.find(begin);
    const std::size_t last = comment == npos ? npos : xml.find(end, comment + begin.size());
    if (last == npos) return rest.append(xml);
    rest.append(xml.substr(0, comment));
    xml.remove_prefix(last + end.size());
  }
}

/// Where the root element begins; npos if there is none.
std::size_t find_root(std::string_view xml) {
  for (std::size_t at = xml.find('<'); at < xml.size() - 1; at = xml.find('<', at + 1))
    if (std::isalpha(static_cast<unsigned char>(xml[at + 1])) != 0) return at;
  return npos;
}

/// "topology" and all up to its '>'.
std::string_view root_tag(std::string_view xml) {
  const std::size_t root = find_root(xml);
  if (root == npos) return {};
  return xml.substr(root + 1, xml.find('>', root) - root - 1);
}

/// Of an element; empty if it has no such attribute.
std::string_view attribute_of(std::string_view tag, std::string_view name) {
  const std::string begin = fmt::format(" {}=\"", name);
  const std::size_t at = tag.find(begin);
  if (at == npos) return {};
  tag.remove_prefix(at + begin.size());
  return tag.substr(0, tag.find('"'));
}

}  // namespace

std::string plain_xml(std::string_view xml) {
  std::string text = without_comments(xml);
  std::erase(text, '\r');  // of Windows' line ends
  const std::size_t root = find_root(text);
  if (root == npos) return text;
  const std::string_view headers = std::string_view(text).substr(0, root);
  if (headers.find('[') != npos) return text;  // a document type with declarations of its own
  std::string plain;
  for (std::size_t at = headers.find('<'); at != npos; at = headers.find('<', at)) {
    const std::size_t end = headers.find('>', at);
    if (end == npos) return text;
    plain.append(headers.substr(at, end + 1 - at)).append("\n");
    at = end;
  }
  return plain.append(text, root);
}

int nesting(std::string_view xml) {
  int depth = 0, deepest = 0;
  for (std::size_t at = xml.find('<'); at != npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == npos) break;
    const char first = xml[at + 1];
    if (first == '/')
      --depth;
    else if (first != '?' && first != '!' && xml[end - 1] != '/')
      deepest = std::max(deepest, ++depth);
  }
  return deepest;
}

std::string why_refused(std::string_view xml) {
  constexpr double newest = 2;  // version that hwloc 2 reads
  const std::string_view tag = root_tag(xml);
  constexpr std::size_t longest = 32;  // that is quoted: the file may be anything
  const std::string_view element = tag.substr(0, std::min(longest, tag.find_first_of(" \t\r\n/")));
  if (element.empty()) return "it is no XML";
  if (element == "system")
    return "it is in NCCL's format, which is another than hwloc's: `lstopo machine.xml` on that "
           "machine writes hwloc's";
  if (element != "topology")
    return fmt::format("its XML is not hwloc's, which has <topology> where this has <{}>", element);
  const std::string_view version = attribute_of(tag, "version").substr(0, longest);
  if (number_in(version) >= newest + 1)
    return fmt::format(
        "its XML is of hwloc's version {}, and has to be of version 2: `lstopo --export-xml-flags "
        "v2 machine.xml` on that machine writes it so",
        version);
  return "hwloc can't read it (its XML has to be of version 2)";
}

}  // namespace weft::topo
