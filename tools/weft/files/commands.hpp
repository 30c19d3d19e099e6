// The commands that share files: serve, and fetch, which reads one. They return the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <weft/deadline.hpp>

#include "command/ending.hpp"
#include "command/engine_options.hpp"

namespace weft::tool {

/// Under which serve publishes the list of its names: no file is called so. Its segment has a line
/// for each file, "BYTES NAME", and spaces behind the last one. A file without bytes is in the list
/// and has no segment.
constexpr const char* list_of_files = "/";

struct ServeOptions {
  ConsoleOptions console;
  EngineOptions engine;
  std::string dir;
  bool writable = false;
  bool buffered = false;
  bool durable = false;
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  bool allow_unauthenticated_network = false;
  std::string metrics;  ///< Where to listen; empty: nowhere.
  int ready_fd = -1;
};

struct FetchOptions {
  ConsoleOptions console;
  EngineOptions engine;
  std::string peer;
  std::string name;    ///< Empty: shows the list.
  std::string output;  ///< Empty: the last part of the name, here.
  Nanoseconds timeout = std::chrono::seconds(60);
};

void add_options(CLI::App& command, ServeOptions& options);
void add_options(CLI::App& command, FetchOptions& options);

int run_serve(const ServeOptions& options);
int run_fetch(const FetchOptions& options);

}  // namespace weft::tool
