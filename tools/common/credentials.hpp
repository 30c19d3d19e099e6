/// @file
/// By what both sides of a command's connection prove themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>
#include <weft/engine.hpp>

namespace weft::tool {

/// Paths of files; empty where nothing was given.
struct Credentials {
  std::string secret_file;
  std::string tls_certificate, tls_key, tls_authorities;
  bool tls_check_host = false;
};

void add_credentials(CLI::App& command, Credentials& credentials);
void apply(const Credentials& credentials, Config& config);
/// As they were given.
std::vector<std::string> arguments(const Credentials& credentials);

}  // namespace weft::tool
