// The command nixl, which makes Weft a backend of an installed NIXL. It returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <weft/deadline.hpp>

#include "command/ending.hpp"
#include "common/names.hpp"

namespace weft::tool {

enum class NixlAction { install, status, uninstall };
inline const Names<NixlAction> nixl_action_names = {{"install", NixlAction::install},
                                                    {"status", NixlAction::status},
                                                    {"uninstall", NixlAction::uninstall}};

struct NixlOptions {
  ConsoleOptions console;
  NixlAction action = NixlAction::status;
  std::string python;  ///< Interpreter or folder of a virtual environment; empty: the usual one.
  std::string as;      ///< A backend's name; empty: Weft's own.
  Nanoseconds timeout = std::chrono::seconds(60);
};

void add_options(CLI::App& command, NixlOptions& options);

int run_nixl(const NixlOptions& options);

}  // namespace weft::tool
