// The links to Weft's plug-in in a folder of NIXL's plug-ins.
#pragma once

#include <string>
#include <vector>
#include <weft/error.hpp>

namespace weft::tool {

/// Under which NIXL's users ask for Weft.
inline constexpr const char* nixl_own_name = "WEFT";

enum class NixlLinkState {
  linked,
  dangling,     ///< Leads to a file that is not there.
  interrupted,  ///< Of an installation that did not come to its end: there is no link.
  renewed,      ///< There is no link, because the wheel was installed anew since.
};

/// Something of Weft's in the folder.
struct NixlLink {
  std::string name;    ///< Of the backend.
  std::string path;    ///< Where the link is, or would be.
  std::string target;  ///< Where it leads to; empty: there is no link.
  std::string kept;    ///< The wheel's own file, whose name Weft has taken; empty: none.
  NixlLinkState state;
};

/// In the order of their names.
Result<std::vector<NixlLink>> find_links(const std::string& folder);

enum class NixlChange {
  linked,
  linked_already,
  led_elsewhere,  ///< A link of Weft's to another file was replaced.
  took_name,      ///< The wheel's own file is kept under another name.
  completed,      ///< An installation that was interrupted.
  removed,
  given_back,  ///< The wheel's own file has its name again.
  nothing,     ///< Of Weft's was there.
};

struct NixlChanged {
  NixlLink link;  ///< As it is now, or as it was where it was removed.
  NixlChange change;
  std::string before;  ///< Where `led_elsewhere` led.
};

/// Makes the backend `name` lead to `plugin`. A file that is not Weft's stays as it is, but one of
/// another name than Weft's own is kept beside. Whenever this is interrupted, the wheel's own file
/// is there under one of its two names, and to do it again completes it.
Result<NixlChanged> link_plugin(const std::string& folder, const std::string& name,
                                const std::string& plugin);

/// The inverse.
Result<NixlChanged> unlink_plugin(const std::string& folder, const std::string& name);

}  // namespace weft::tool
