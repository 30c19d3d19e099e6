// The boxes of a picture: labels in Graphviz's language, each with its < and >.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>
#include <weft/topology.hpp>

namespace weft::tool {

/// As text of a label between < and >, where dot takes no empty text and expands \N and its like.
std::string html(std::string_view text);

std::string node_label(const NumaNode& node);
std::string unknown_node_label();
std::string switch_label(const PciSwitch& each);
std::string gpu_label(const Gpu& gpu, std::size_t index);
/// With the numbers and colours of the GPUs that it serves.
std::string nic_label(const Nic& nic, const std::vector<std::size_t>& gpus);
std::string drive_label(const Drive& drive);
/// NICs that are not used, in one box.
std::string unused_label(const std::vector<std::string>& names);

}  // namespace weft::tool
