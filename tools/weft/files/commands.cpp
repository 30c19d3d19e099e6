#include "files/commands.hpp"

#include "common/options.hpp"

namespace weft::tool {

void add_options(CLI::App& command, ServeOptions& options) {
  OptionGroup files(command, "Files"), address(command, "Address");
  files
      .text("--dir", options.dir, "DIR",
            "The files in this folder and those below it are shared, each under its path there. "
            "Links are followed, wherever they lead; files that come later are not seen")
      ->required();
  files.flag("--writable", options.writable,
             "Peers may write the files, too, and those that links lead to");
  files.flag("--durable", options.durable,
             "A write is done only once the drive has the bytes for good");
  files.flag("--buffered", options.buffered, "Through the page cache, not by direct I/O");
  address
      .text("--listen", options.listen, "HOST:PORT",
            "Where peers reach this process; port 0: the system chooses")
      ->default_str(options.listen);
  add_advertise(address, options.advertise);
  add_unauthenticated(address, options.allow_unauthenticated_network);
  add_ready_fd(address, options.ready_fd);
  add_metrics(address, options.metrics);
  add_engine(command, options.engine);
  add_console(command, options.console, false);
  command.parse_complete_callback([&options] {
    const std::string wrong = complaint_about_listening(options.listen, options.advertise);
    if (!wrong.empty()) throw CLI::ParseError(wrong, exit_usage);
  });
}

void add_options(CLI::App& command, FetchOptions& options) {
  OptionGroup positionals(command, "Positionals"), files(command, "Files");
  positionals.text("name", options.name, "NAME",
                   "A file of the peer's; without it, they are listed");
  files.text("--peer", options.peer, "HOST:PORT", "Where weft serve listens")->required();
  files.file("--output", options.output,
             "Where to write it, instead of the last part of its name here; -: to standard output, "
             "alone");
  add_timeout(files, options.timeout);
  add_engine(command, options.engine);
  add_console(command, options.console, false);
}

}  // namespace weft::tool
