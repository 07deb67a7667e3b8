// The free functions of the public interface: files, names, settings.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "io/dataset.hpp"
#include "io/npy.hpp"
#include "model/container.hpp"
#include "target/target.hpp"
#include "toolkit/convert.hpp"
#include "toolkit/feed.hpp"
#include "toolkit/state.hpp"

namespace openrknn::facade {
namespace {

// File systems end at 255 bytes; number, ending and the temporary name need some of them.
constexpr size_t kLongestStem = 200;

// DIR/<output>.npy, made unique without regard to case: some file systems have none. Of a long name the end is kept,
// which tells more than its beginning.
template <typename Named>
std::vector<std::string> output_files(const std::vector<Named>& outputs) {
  std::vector<std::string> files;
  std::set<std::string> taken;
  for (const auto& output : outputs) {
    std::string stem = file_name_of(output.name);
    if (stem.size() > kLongestStem) stem.erase(0, stem.size() - kLongestStem);
    std::string file = stem + ".npy";
    for (int n = 1; !taken.insert(to_lower(file)).second; ++n) file = stem + "_" + std::to_string(n) + ".npy";
    files.push_back(std::move(file));
  }
  return files;
}

Status write_outputs(const std::string& folder, std::vector<toolkit::Output> outputs, const Infos& infos,
                     toolkit::DataLayout layout) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    OPENRKNN_TRY(Tensor tensor, to_internal(outputs[i].tensor, outputs[i].name));
    const bool nhwc = i < infos.size() && infos[i].nhwc;
    const bool wanted = layout == toolkit::DataLayout::kModel ? nhwc : layout == toolkit::DataLayout::kNhwc;
    if (tensor.shape().rank() == 4 && wanted != nhwc) tensor = swap_layout(tensor.view(), wanted);
    outputs[i].tensor.shape = tensor.shape().to_vector();
    tensors.push_back(std::move(tensor));
  }
  OPENRKNN_CHECK_OK(make_folders(folder));
  const std::vector<std::string> files = output_files(outputs);
  const std::filesystem::path base(folder);
  for (size_t i = 0; i < outputs.size(); ++i)
    OPENRKNN_CHECK_OK(io::write_npy((base / files[i]).string(), tensors[i].view()));
  return write_file_atomically((base / "outputs.json").string(), toolkit::outputs_to_json(outputs));
}

}  // namespace
}  // namespace openrknn::facade

namespace openrknn::toolkit {

std::string Error::message() const { return facade::to_internal(*this).message(); }
std::string_view dtype_name(DType dtype) { return openrknn::dtype_name(facade::to_internal(dtype)); }
size_t dtype_size(DType dtype) { return openrknn::dtype_size(facade::to_internal(dtype)); }

DType dtype_from_name(std::string_view name) {
  const auto dtype = openrknn::dtype_from_name(name);
  return dtype ? facade::to_public(*dtype) : DType::kUndefined;
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  return count;
}

std::string version() { return OPENRKNN_VERSION; }

std::vector<TargetInfo> targets() {
  std::vector<TargetInfo> infos;
  for (const target::Target& t : target::all()) {
    const auto macs = t.macs_per_cycle.find("int8");
    infos.push_back({t.name, t.title, t.cores, t.clock_mhz, macs == t.macs_per_cycle.end() ? 0 : macs->second,
                     t.cbuf.bytes(), t.dram_gb_s, t.dtypes});
  }
  return infos;
}

std::vector<std::string> output_paths(const std::string& folder, const std::vector<TensorInfo>& infos) {
  const std::filesystem::path base(folder);
  std::vector<std::string> paths{(base / "outputs.json").string()};
  for (const std::string& file : facade::output_files(infos)) paths.push_back((base / file).string());
  return paths;
}

std::vector<std::string> dataset_files(const std::string& path) { return io::dataset_files(path); }

bool is_program_file(const std::string& path) {
  if (to_lower(path).ends_with(".rknn")) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // opening a pipe would wait for its writer
  std::ifstream file(path, std::ios::binary);
  std::array<char, 64> head{};
  file.read(head.data(), head.size());
  const auto bytes =
      std::as_bytes(std::span(head.data(), static_cast<size_t>(std::max<std::streamsize>(0, file.gcount()))));
  return model::looks_like_rknn(bytes);
}

Result<std::vector<std::pair<std::string, std::string>>> match_files(const std::vector<std::string>& arguments,
                                                                     const std::vector<TensorInfo>& inputs) {
  return facade::to_public(facade::match_files(arguments, inputs));
}

Result<Tensors> load_inputs(const std::vector<std::pair<std::string, std::string>>& files,
                            const std::vector<TensorInfo>& inputs, const FeedOptions& options) {
  auto loaded = facade::load_files(files, inputs, options);
  if (!loaded.ok()) return facade::to_public(loaded.error());
  Tensors tensors;
  for (const auto& [name, tensor] : *loaded) tensors.insert_or_assign(name, facade::to_public(tensor.view()));
  return tensors;
}

Result<std::vector<NamedShape>> bind_open_dimensions(const std::vector<std::pair<std::string, std::string>>& files,
                                                     const std::vector<TensorInfo>& inputs) {
  return facade::to_public(facade::bind_open_dimensions(files, inputs));
}

Result<Tensor> read_npy(const std::string& path) {
  auto tensor = io::read_npy(path);
  if (!tensor.ok()) return facade::to_public(tensor.error());
  return facade::to_public(tensor->view());
}

Status write_npy(const std::string& path, const Tensor& tensor) {
  auto internal = facade::to_internal(tensor, path);
  if (!internal.ok()) return facade::to_public(internal.error());
  return facade::to_public(io::write_npy(path, internal->view()));
}

Status write_text(const std::string& path, std::string_view text) {
  return facade::to_public(write_file_atomically(path, text));
}

Status write_outputs(const std::string& folder, const std::vector<Output>& outputs,
                     const std::vector<TensorInfo>& infos, DataLayout layout) {
  return facade::to_public(facade::write_outputs(folder, outputs, infos, layout));
}

std::string outputs_to_json(const std::vector<Output>& outputs) {
  const std::vector<std::string> files = facade::output_files(outputs);
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    nlohmann::ordered_json entry{{"name", outputs[i].name},
                                 {"file", files[i]},
                                 {"dtype", dtype_name(outputs[i].tensor.dtype)},
                                 {"shape", outputs[i].tensor.shape}};
    if (outputs[i].scale) entry["scale"] = *outputs[i].scale;
    if (outputs[i].zero_point) entry["zero_point"] = *outputs[i].zero_point;
    list.push_back(std::move(entry));
  }
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void set_threads(int count) { set_thread_count(count); }
void set_memory_budget(int64_t bytes) { openrknn::set_memory_budget(bytes); }
void set_log_level(LogLevel level) { openrknn::set_log_level(static_cast<openrknn::LogLevel>(level)); }
Status set_log_file(const std::string& path) { return facade::to_public(openrknn::set_log_file(path)); }
void set_progress(bool enabled) { set_progress_enabled(enabled); }
void log(LogLevel level, std::string_view text) { log_message(static_cast<openrknn::LogLevel>(level), text); }

}  // namespace openrknn::toolkit
