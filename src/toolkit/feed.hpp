// From files and command arguments to input tensors: names, layouts, mean and std.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"
#include "import/importer.hpp"
#include "io/feed.hpp"
#include "model/program.hpp"
#include "openrknn/toolkit.hpp"

namespace openrknn::facade {

using Infos = std::vector<toolkit::TensorInfo>;
using FilePairs = std::vector<std::pair<std::string, std::string>>;
using Tensors = std::map<std::string, Tensor, std::less<>>;

// Per input: values per channel. `argument` names the option in messages.
using ChannelMap = std::map<std::string, std::vector<float>, std::less<>>;

Infos graph_infos(const Graph& graph, const std::vector<ValueId>& ids, import::Format format);
Infos port_infos(const std::vector<model::Port>& ports);
std::vector<std::string> names_of(const Infos& infos);

Result<FilePairs> match_files(const std::vector<std::string>& arguments, const Infos& inputs);
// By name, or in order when the name is empty. Counts are checked against each input's channels; one value stands for
// all.
Result<ChannelMap> match_channels(const std::vector<toolkit::ChannelValues>& values, const Infos& inputs,
                                  const std::string& argument);
// (x - mean) / std along the channel axis, for float32; absent entries change nothing.
Result<Tensor> normalize(const Tensor& tensor, const toolkit::TensorInfo& info, const ChannelMap& mean,
                         const ChannelMap& std_dev);
int64_t channels_of(const toolkit::TensorInfo& info);
int channel_axis_of(const toolkit::TensorInfo& info);
Result<Tensor> load_file(const std::string& path, const toolkit::TensorInfo& info, bool bgr,
                         toolkit::DataLayout layout);
Result<Tensors> load_files(const FilePairs& files, const Infos& inputs, const toolkit::FeedOptions& options);

Result<std::vector<toolkit::NamedShape>> bind_open_dimensions(const FilePairs& files, const Infos& inputs);

}  // namespace openrknn::facade
