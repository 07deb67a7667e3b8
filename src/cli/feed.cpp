#include "cli/feed.hpp"

#include "cli/cli.hpp"

namespace openrknn::cli {
namespace {

constexpr uint64_t kSeed = 1;

#define FEED_TRY(lhs, expr) FEED_TRY_IMPL(CLI_CONCAT(feed_result_, __LINE__), lhs, expr)
#define FEED_TRY_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                  \
  if (!tmp.ok()) return tmp.error();  \
  lhs = std::move(tmp).value()

tk::Result<tk::FeedOptions> feed_options(const FeedArguments& a) {
  tk::FeedOptions options;
  FEED_TRY(options.mean, parse_channel_list("--mean", a.mean));
  FEED_TRY(options.std_dev, parse_channel_list("--std", a.std_dev));
  FEED_TRY(options.layout, parse_layout(a.layout));
  options.bgr = a.bgr;
  return options;
}

}  // namespace

Files files_of(const FeedArguments& a) {
  Files files;
  files.reads("FILE", a.file);
  for (const std::string& argument : a.inputs) {
    files.reads("--input", argument);
    for (size_t at = argument.find('='); at != std::string::npos; at = argument.find('=', at + 1))
      files.reads("--input", argument.substr(at + 1));  // a name may hold '='
  }
  note_files(a.source, files);
  return files;
}

tk::Result<Loaded> load_and_feed(const FeedArguments& a) {
  FEED_TRY(const tk::FeedOptions options, feed_options(a));
  Loaded loaded;
  const bool random = a.seeded && a.inputs.empty();
  if (tk::is_program_file(a.file)) {
    if (!a.source.input_values.empty() || a.source.max_unrolled >= 0) {
      return argument_error("--input-value, --max-unrolled", "they are for source models, this is a .rknn",
                            "leave them out");
    }
    FEED_TRY(loaded.program, tk::Program::load(a.file));
    if (random) {
      loaded.inputs = tk::seeded_inputs(*loaded.program, kSeed);
      return loaded;
    }
    FEED_TRY(const auto files, tk::match_files(a.inputs, loaded.program->inputs()));
    FEED_TRY(loaded.inputs, tk::load_inputs(files, loaded.program->inputs(), options));
    return loaded;
  }
  tk::LoadOptions load;
  if (auto status = apply_model_options(a.file, a.source, load); !status.ok()) return status.error();
  if (random) {
    FEED_TRY(loaded.model, tk::Model::load(a.file, load));
    loaded.inputs = tk::seeded_inputs(*loaded.model, kSeed);
    return loaded;
  }
  FEED_TRY(auto signature, tk::model_inputs(a.file));
  std::erase_if(signature, [&](const tk::TensorInfo& info) { return load.input_values.contains(info.name); });
  FEED_TRY(const auto files, tk::match_files(a.inputs, signature));
  FEED_TRY(load.inputs, tk::bind_open_dimensions(files, signature));
  FEED_TRY(loaded.model, tk::Model::load(a.file, load));
  FEED_TRY(loaded.inputs, tk::load_inputs(files, loaded.model->inputs(), options));
  return loaded;
}

}  // namespace openrknn::cli
