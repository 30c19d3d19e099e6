#include "commands.hpp"

#include <memory>
#include <string>

#include "demo/commands.hpp"
#include "files/commands.hpp"
#include "look/commands.hpp"
#include "nixl/commands.hpp"

namespace weft::tool {
namespace {

constexpr const char* exit_codes =
    "Exit codes:\n"
    "  0    done, and every byte was right\n"
    "  1    failed; one sentence on standard error says why\n"
    "  2    the command line is wrong\n"
    "  130  interrupted by Ctrl-C (143: terminated)\n";

class Table {
 public:
  Table(CLI::App& program, std::function<int()>& chosen) : program_(program), chosen_(chosen) {}

  template <typename Options>
  void add(const char* name, int (*run)(const Options&), const char* description,
           const std::string& examples) {
    const auto options = std::make_shared<Options>();
    CLI::App* command = program_.add_subcommand(name, description);
    add_options(*command, *options);
    command->footer("Examples:\n" + examples + "\n" + exit_codes);
    command->final_callback(
        [&chosen = chosen_, options, run] { chosen = [options, run] { return run(*options); }; });
  }

 private:
  CLI::App& program_;
  std::function<int()>& chosen_;
};

}  // namespace

void add_commands(CLI::App& program, std::function<int()>& chosen) {
  program.footer(std::string("Examples:\n"
                             "  weft demo                    two processes on this machine\n"
                             "  weft info                    what this machine has\n"
                             "  weft topo                    where it lies, and who serves whom\n"
                             "  weft explain                 which path a transfer would take\n"
                             "  weft kv Llama-3.1-8B         what a model's caches hold\n"
                             "  weft weights plan FILE       who writes which weights to whom\n"
                             "  weft serve --dir DIR         shares files\n"
                             "  weft nixl install            Weft as a backend of an installed "
                             "NIXL\n"
                             "  weft help decode             all about one command\n\n") +
                 exit_codes);
  Table table(program, chosen);
  table.add("info", run_info,
            "Shows the versions, each provider and NIC with the reason why it is used or not, and "
            "the rails.",
            "  weft info\n"
            "  weft info --verbose\n"
            "  weft info --json --providers tcp\n");
  table.add("topo", run_topo,
            "Shows where memory, GPUs and NICs of a machine lie, what is between them, and which "
            "NICs serve which GPU and why.",
            "  weft topo\n"
            "  weft topo --json\n"
            "  weft topo --capture here.xml\n"
            "  weft topo --xml there.xml --svg there.svg\n"
            "  weft topo --xml here.xml --peer-xml there.xml\n");
  table.add("explain", run_explain,
            "Shows the path that a transfer would take: each hop, what moves the bytes on it, how "
            "often they are copied on either side, and why better paths are not used. Shows what "
            "the providers declare, and moves nothing.",
            "  weft explain\n"
            "  weft explain --memory gpu:0 --peer 10.0.0.2:7000 --peer-memory gpu:1 --json\n"
            "  weft explain --memory node:1 --peer 10.0.0.2:7000 --svg path.svg\n"
            "  weft explain --policy max-copies=0,forbid-cpu-copies\n");
  table.add("kv", run_kv,
            "Shows what the KV caches of a model hold: its layers, the bytes of a token and of a "
            "request, what one rank has and which ranks write to it, and draws a block.",
            "  weft kv Nemotron-3-Nano --tp-size 2\n"
            "  weft kv DeepSeek-V3.2 --pp-size 2 --pp-rank 1 --dtype fp8\n"
            "  weft kv Qwen3-32B --server vllm-flashinfer-hnd --tp-size 8 --peer-tp-size 4\n"
            "  weft kv path/to/config.json --tokens 128K --json\n");
  table.add("weights", run_weights,
            "Plans how a model's weights get from trainers to inference ranks: who sends what to "
            "whom, the bytes of each NIC, and the time that this takes at least.",
            "  weft weights plan ranks.json\n"
            "  weft weights plan trainers.json workers.json --gbps 400 --json\n"
            "  weft weights plan --config config.json --trainers fsdp=16 --ranks tp=8,replicas=2\n"
            "  weft weights plan --config config.json --trainers fsdp=64,ep=16 \\\n"
            "                    --ranks dp=4,tp=8,ep=32 --fan-out chain --result perf.json\n");
  table.add("decode", run_decode,
            "Waits for one prefill process, grants it blocks of a paged KV cache request by "
            "request, checks every byte that arrives and that nothing else was written, and ends.",
            "  weft decode --listen 127.0.0.1:7000\n"
            "  weft decode --listen 10.0.0.2:7000 --secret-file weft.secret \\\n"
            "              --model Llama-3.1-8B --block-tokens 64\n");
  table.add("prefill", run_prefill,
            "Fills the KV blocks of requests with a pattern that depends on every position, and "
            "writes them into the cache of a decode process, layer group by layer group.",
            "  weft prefill --peer 127.0.0.1:7000 --model Llama-3.1-8B\n"
            "  weft prefill --peer 10.0.0.2:7000 --secret-file weft.secret \\\n"
            "               --model DeepSeek-V3 --dtype fp8 --tokens 32K --requests 100\n");
  table.add("demo", run_demo,
            "Runs decode and prefill as two processes on this machine and shows what both "
            "measured.",
            "  weft demo\n"
            "  weft demo --model gpt-oss-20b --dtype fp8 --providers tcp\n"
            "  weft demo --decode-block-tokens 64 --decode-order block-major --json\n");
  table.add("serve", run_serve,
            "Shares the files of a folder with peers until it is interrupted: any engine may look "
            "them up by name, and read them as it reads memory.",
            "  weft serve --dir /nvme/pages\n"
            "  weft serve --dir /nvme/pages --listen 10.0.0.2:7000 --secret-file weft.secret\n");
  table.add("fetch", run_fetch, "Reads a file that weft serve shares, or lists what there is.",
            "  weft fetch --peer 10.0.0.2:7000 --secret-file weft.secret\n"
            "  weft fetch --peer 10.0.0.2:7000 --secret-file weft.secret layer0/pages\n");
  table.add("nixl", run_nixl,
            "Makes the installed NIXL of a Python find Weft as the backend WEFT, by a link in the "
            "wheel's folder of plug-ins; shows whether it works there; takes the link back.",
            "  weft nixl install --python ~/venv\n"
            "  weft nixl status --python ~/venv --json\n"
            "  weft nixl install --as UCX       for servers that know no other name\n"
            "  weft nixl uninstall\n");
}

}  // namespace weft::tool
