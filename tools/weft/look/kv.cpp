// weft kv: what a model's caches hold, on which ranks, and how a page lies in memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <weft/kv_models.hpp>

#include "common/input.hpp"
#include "common/layout.hpp"
#include "common/names.hpp"
#include "common/units.hpp"
#include "look/commands.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// A model's name, or a file with its config.json.
Result<kv::Model> model_of(const std::string& name) {
  auto known = kv::find_model(name);
  if (known) return known;
  std::error_code none;
  // Models' names with a slash are Hugging Face's, and have one.
  const bool is_path = name.starts_with('/') || name.starts_with('.') || name.ends_with(".json");
  if (!is_path && !std::filesystem::exists(name, none)) return known;
  return read_input(name).and_then(
      [&](const std::string& text) { return kv::from_config(text, name); });
}

/// "0, 4-7, 9".
std::string ranges_text(const std::vector<std::uint32_t>& layers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    parts.push_back(end - i > 1 ? fmt::format("{}-{}", layers[i], layers[end - 1])
                                : fmt::format("{}", layers[i]));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string vector_text(const kv::Field& field) {
  std::vector<std::string> parts;
  for (const kv::Piece& piece : field.vector)
    parts.push_back(fmt::format("{} {}", piece.elements, kv::name_of(piece.type)));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::uint64_t vector_bytes(const kv::Field& field) {
  std::uint64_t bits = 0;
  for (const kv::Piece& piece : field.vector)
    bits += std::uint64_t{piece.elements} * kv::bits_of(piece.type);
  return bits / 8;
}

std::string rows_text(const kv::Group& group, const kv::Field& field) {
  if (group.tokens_per_block == 0) return fmt::format("{} rows", field.rows);
  if (field.tokens_per_row == 1) return fmt::format("{} tokens", group.tokens_per_block);
  return fmt::format("{} rows of {} tokens", group.tokens_per_block / field.tokens_per_row,
                     field.tokens_per_row);
}

/// One block of one layer: a line for each field, with the byte at which it begins.
std::string page_text(const kv::Layout& layout, std::size_t index) {
  const kv::Group& group = layout.groups()[index];
  std::string text;
  std::uint64_t at = 0;
  for (std::size_t f = 0; f < group.fields.size(); ++f) {
    const kv::Field& field = group.fields[f];
    const std::uint64_t rows =
        group.tokens_per_block == 0 ? field.rows : group.tokens_per_block / field.tokens_per_row;
    const std::uint64_t heads = layout.heads(index, f).count;
    const std::uint64_t bytes = rows * heads * vector_bytes(field);
    const bool pooled = group.placement == kv::Placement::split && !field.beside;
    if (pooled) at = 0;
    const std::string order = group.head_order == kv::HeadOrder::nhd
                                  ? fmt::format("[{}][{} heads]", rows_text(group, field), heads)
                                  : fmt::format("[{} heads][{}]", heads, rows_text(group, field));
    text += fmt::format("    {:>10}  {:<14} {}[{}]  {}{}\n", field.beside ? "beside" : grouped(at),
                        field.name, order, vector_text(field), binary_bytes(bytes),
                        pooled && group.fields.size() > 1 ? ", in a pool of its own" : "");
    at += bytes;
  }
  return text;
}

struct Shown {
  kv::Model model;
  kv::Layout layout;  ///< Of the rank that was asked for.
  std::vector<kv::Rank> writers;
};

kv::LayoutOptions layout_options(const KvOptions& options, kv::Share tp) {
  kv::LayoutOptions layout = options.layout;
  layout.blocks = layout.state_blocks = 1;
  layout.parallel.tp = tp;
  return layout;
}

/// The layouts of all stages of the other side.
Result<std::vector<kv::Layout>> stages_of(const KvOptions& options, const kv::Model& model) {
  std::vector<kv::Layout> stages;
  for (std::uint32_t stage = 0; stage < options.peer_pp; ++stage) {
    kv::LayoutOptions layout = layout_options(options, {options.peer_tp, 0});
    layout.layers = kv::stage_layers(model.layers, {options.peer_pp, stage});
    auto made = model.layout(layout);
    if (!made) return fail(std::move(made.error()));
    stages.push_back(std::move(*made));
  }
  return stages;
}

Result<Shown> shown(const KvOptions& options) {
  auto model = model_of(options.model);
  if (!model) return fail(std::move(model.error()));
  kv::LayoutOptions own = layout_options(options, options.layout.parallel.tp);
  own.layers = kv::stage_layers(model->layers, options.pp);
  auto layout = model->layout(own);
  if (!layout) return fail(std::move(layout.error()));
  auto stages = stages_of(options, *model);
  if (!stages) return fail(std::move(stages.error()));
  auto writers = kv::source_ranks(*stages, *layout, kv::TokenRange{0, options.tokens});
  if (!writers) return fail(std::move(writers.error()));
  return Shown{std::move(*model), std::move(*layout), std::move(*writers)};
}

std::string writers_text(const std::vector<kv::Rank>& writers) {
  std::vector<std::string> parts;
  for (const kv::Rank& rank : writers)
    parts.push_back(fmt::format("rank {} of stage {}", rank.tp, rank.pp));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string text_of(const Shown& shown, const KvOptions& options) {
  const kv::DType dtype = options.layout.dtype;
  const kv::Share tp = options.layout.parallel.tp, pp = options.pp;
  std::string text = fmt::format("{}: {} layers\n", shown.model.name, shown.model.layers);
  for (const kv::Kind& kind : shown.model.kinds)
    text += hanging(
        fmt::format("  {:<10} ", kind.name),
        fmt::format("{} layers: {}{}", kind.layers.size(), ranges_text(kind.layers),
                    kind.window != 0 ? fmt::format("; look back on {} tokens", kind.window) : ""));
  text += fmt::format("\nThe whole model, in {}\n", kv::name_of(dtype));
  text += fmt::format("  a token    {}\n", binary_bytes(shown.model.bytes_per_token(dtype)));
  if (shown.model.state_bytes() > 0)
    text += fmt::format("  states     {}  (of each request)\n",
                        binary_bytes(shown.model.state_bytes()));
  text += fmt::format("  a request  {}  ({} tokens)\n",
                      binary_bytes(shown.model.request_bytes(options.tokens, dtype)),
                      grouped(options.tokens));
  text += fmt::format("\nRank {} of {}, stage {} of {}\n", tp.rank, tp.size, pp.rank, pp.size);
  text += fmt::format("  a token    {}\n", binary_bytes(shown.layout.bytes_per_token()));
  if (shown.layout.state_bytes() > 0)
    text += fmt::format("  states     {}\n", binary_bytes(shown.layout.state_bytes()));
  text += fmt::format("  tensors    {}\n", shown.layout.region_bytes().size());
  text += hanging("  written by ", writers_text(shown.writers));
  for (std::size_t g = 0; g < shown.layout.groups().size(); ++g) {
    const kv::Group& group = shown.layout.groups()[g];
    text += "\n" + hanging("", fmt::format("A block of one layer of {}: byte, field, order, bytes",
                                           ranges_text(group.layers)));
    text += page_text(shown.layout, g);
  }
  return text;
}

OrderedJson json_of(const kv::Field& field, kv::HeadRange heads) {
  return {{"name", field.name},
          {"heads", field.heads},
          {"first_head_of_rank", heads.first},
          {"heads_of_rank", heads.count},
          {"vector", vector_text(field)},
          {"vector_bytes", vector_bytes(field)},
          {"tokens_per_row", field.tokens_per_row},
          {"rows", field.rows},
          {"beside", field.beside}};
}

OrderedJson json_of(const Shown& shown, const KvOptions& options) {
  OrderedJson groups = OrderedJson::array();
  for (std::size_t g = 0; g < shown.layout.groups().size(); ++g) {
    const kv::Group& group = shown.layout.groups()[g];
    OrderedJson fields = OrderedJson::array();
    for (std::size_t f = 0; f < group.fields.size(); ++f)
      fields.push_back(json_of(group.fields[f], shown.layout.heads(g, f)));
    groups.push_back({{"layers", group.layers},
                      {"tokens_per_block", group.tokens_per_block},
                      {"window", group.window},
                      {"fields", std::move(fields)}});
  }
  OrderedJson writers = OrderedJson::array();
  for (const kv::Rank& rank : shown.writers) writers.push_back({{"pp", rank.pp}, {"tp", rank.tp}});
  const kv::DType dtype = options.layout.dtype;
  return {{"model", shown.model.name},
          {"layers", shown.model.layers},
          {"dtype", kv::name_of(dtype)},
          {"bytes_per_token", shown.model.bytes_per_token(dtype)},
          {"state_bytes", shown.model.state_bytes()},
          {"tokens", options.tokens},
          {"request_bytes", shown.model.request_bytes(options.tokens, dtype)},
          {"rank",
           {{"bytes_per_token", shown.layout.bytes_per_token()},
            {"state_bytes", shown.layout.state_bytes()},
            {"tensors", shown.layout.region_bytes().size()},
            {"written_by", std::move(writers)},
            {"groups", std::move(groups)}}}};
}

}  // namespace

int run_kv(const KvOptions& options) {
  KvOptions chosen = options;
  if (!options.server.empty()) {
    const auto layout = kv::with_server(options.server, options.layout);
    if (!layout) return end_with("kv", options.console, layout.error());
    chosen.layout = *layout;
  }
  const auto what = shown(chosen);
  if (!what) return end_with("kv", options.console, what.error());
  print(options.console.json ? dump(json_of(*what, chosen)) + "\n" : text_of(*what, chosen));
  return exit_success;
}

}  // namespace weft::tool
