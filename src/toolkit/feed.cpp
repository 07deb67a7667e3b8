#include "toolkit/feed.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/text.hpp"
#include "io/image.hpp"
#include "io/npy.hpp"
#include "toolkit/convert.hpp"

namespace openrknn::facade {
namespace {

std::string dims_text(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// Channels come last when only the last extent can be a picture's: how networks exported from NHWC frameworks look.
bool channels_last(const std::vector<int64_t>& shape, import::Format format) {
  if (shape.size() != 4) return false;
  if (format == import::Format::kTflite || format == import::Format::kTensorflow) return true;
  const auto picture = [](int64_t c) { return c == 1 || c == 3 || c == 4; };
  return !picture(shape[1]) && picture(shape[3]) && shape[1] > 4 && shape[2] > 4;
}

const toolkit::TensorInfo* find_info(const Infos& infos, std::string_view name) {
  const auto it = std::find_if(infos.begin(), infos.end(), [&](const auto& i) { return i.name == name; });
  return it == infos.end() ? nullptr : &*it;
}

Error unknown_input(const std::string& argument, const std::string& name, const Infos& inputs) {
  return Error{ErrorCode::kNotFound, "unknown input", argument, fmt::format("the model has no input \"{}\"", name),
               inputs.empty() ? "the model takes no inputs" : "its inputs are: " + join_names(names_of(inputs))};
}

// The input whose name precedes '=' in the argument, the longest one first.
const toolkit::TensorInfo* named_input(const std::string& argument, const Infos& inputs) {
  const toolkit::TensorInfo* best = nullptr;
  for (const auto& info : inputs) {
    const bool fits = argument.size() > info.name.size() && argument.compare(0, info.name.size(), info.name) == 0 &&
                      argument[info.name.size()] == '=';
    if (fits && (best == nullptr || info.name.size() > best->name.size())) best = &info;
  }
  return best;
}

// The shape of the data in a file, for an input with open dimensions.
Result<std::vector<int64_t>> shape_of_file(const std::string& path, const toolkit::TensorInfo& info) {
  if (!io::looks_like_image(path)) {
    OPENRKNN_TRY(const Tensor tensor, io::read_npy(path));
    return tensor.shape().to_vector();
  }
  std::vector<int64_t> shape = info.shape;
  if (shape.size() != 4) {
    return Error{ErrorCode::kShape, "cannot size an input by a picture", path,
                 fmt::format("\"{}\" has {} dimensions, pictures need 4", info.name, shape.size()), "give a .npy file"};
  }
  OPENRKNN_TRY(const io::Image image, io::read_image(path));
  const auto picture = [](int64_t c) { return c == 1 || c == 3 || c == 4; };
  const bool nhwc = !picture(shape[1]) && picture(shape[3]);
  const std::array<int64_t, 4> own = nhwc ? std::array<int64_t, 4>{1, image.height, image.width, 3}
                                          : std::array<int64_t, 4>{1, 3, image.height, image.width};
  for (size_t i = 0; i < 4; ++i) {
    if (shape[i] < 0) shape[i] = own[i];
  }
  return shape;
}

}  // namespace

std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& i : infos) names.push_back(i.name);
  return names;
}

Infos graph_infos(const Graph& graph, const std::vector<ValueId>& ids, import::Format format) {
  Infos infos;
  for (const ValueId id : ids) {
    const Value& v = graph.value(id);
    toolkit::TensorInfo info{v.name, to_public(v.dtype), v.shape ? v.shape->to_vector() : std::vector<int64_t>{},
                             false};
    info.nhwc = channels_last(info.shape, format);
    infos.push_back(std::move(info));
  }
  return infos;
}

Infos port_infos(const std::vector<model::Port>& ports) {
  Infos infos;
  for (const model::Port& p : ports) {
    const bool nhwc = p.source_shape.rank() == 4 &&
                      (p.channel_axis == 3 || channels_last(p.source_shape.to_vector(), import::Format::kUnknown));
    infos.push_back({p.name, to_public(p.source_dtype), p.source_shape.to_vector(), nhwc});
  }
  return infos;
}

Result<FilePairs> match_files(const std::vector<std::string>& arguments, const Infos& inputs) {
  std::map<std::string, std::string> given;
  std::vector<std::string> unnamed;
  for (const std::string& argument : arguments) {
    if (argument.empty())
      return Error{ErrorCode::kInvalidArgument, "no file", "--input", "its text is empty", "give --input [NAME=]FILE"};
    if (const auto* info = named_input(argument, inputs)) {
      if (argument.size() == info->name.size() + 1) {
        return Error{ErrorCode::kInvalidArgument, "no file after the input's name", "--input " + argument,
                     fmt::format("\"{}\" is followed by nothing", argument), "give --input NAME=FILE"};
      }
      if (!given.emplace(info->name, argument.substr(info->name.size() + 1)).second) {
        return Error{ErrorCode::kInvalidArgument, "input given twice", "--input " + argument,
                     fmt::format("\"{}\" has a file already", info->name), "give each input once"};
      }
      continue;
    }
    std::error_code ignored;
    const size_t equals = argument.find('=');
    if (equals != std::string::npos && !std::filesystem::exists(argument, ignored)) {
      return unknown_input("--input " + argument, argument.substr(0, equals), inputs);
    }
    unnamed.push_back(argument);
  }
  FilePairs files;
  size_t next = 0;
  std::vector<std::string> missing;
  for (const auto& info : inputs) {
    const auto it = given.find(info.name);
    if (it != given.end()) {
      files.emplace_back(info.name, it->second);
    } else if (next < unnamed.size()) {
      files.emplace_back(info.name, unnamed[next++]);
    } else {
      missing.push_back(info.name);
    }
  }
  if (!missing.empty()) {
    return Error{ErrorCode::kInvalidArgument, "inputs without data", "--input", join_names(missing),
                 "give one --input NAME=FILE for each"};
  }
  if (next < unnamed.size()) {
    return Error{ErrorCode::kInvalidArgument, "more files than inputs", "--input " + unnamed[next],
                 fmt::format("the model takes {} input(s){}{}", inputs.size(), inputs.empty() ? "" : ": ",
                             join_names(names_of(inputs))),
                 "leave it out"};
  }
  return files;
}

int channel_axis_of(const toolkit::TensorInfo& info) {
  if (info.nhwc) return 3;
  return info.shape.size() > 1 ? 1 : 0;
}

int64_t channels_of(const toolkit::TensorInfo& info) {
  return info.shape.empty() ? 1 : info.shape[static_cast<size_t>(channel_axis_of(info))];
}

Result<ChannelMap> match_channels(const std::vector<toolkit::ChannelValues>& values, const Infos& inputs,
                                  const std::string& argument) {
  ChannelMap result;
  size_t next = 0;
  for (const auto& v : values) {
    const toolkit::TensorInfo* info = nullptr;
    if (!v.input.empty()) {
      info = find_info(inputs, v.input);
      if (info == nullptr) return unknown_input(argument, v.input, inputs);
    } else {
      while (next < inputs.size() && result.count(inputs[next].name) != 0) ++next;
      if (next == inputs.size()) {
        return Error{ErrorCode::kInvalidArgument, "more values than inputs", argument,
                     fmt::format("{} list(s) for {} input(s)", values.size(), inputs.size()),
                     "give at most one list an input"};
      }
      info = &inputs[next];
    }
    const int64_t channels = channels_of(*info);
    std::string list;
    for (const float x : v.values) list += (list.empty() ? "" : ",") + fmt::format("{}", x);
    if (v.values.empty() || (v.values.size() != 1 && static_cast<int64_t>(v.values.size()) != channels)) {
      return Error{ErrorCode::kInvalidArgument, "wrong number of values", argument + " " + list,
                   fmt::format("input {} (\"{}\", shape {}) has {} channel(s), the list has {} value(s)",
                               info - inputs.data(), info->name, dims_text(info->shape), channels, v.values.size()),
                   "give one value a channel, or one for all"};
    }
    for (const float x : v.values) {
      if (std::isfinite(x) && (argument != "--std" || x != 0)) continue;
      return Error{ErrorCode::kInvalidArgument, "value out of range", argument + " " + list,
                   fmt::format("{} is not usable", x),
                   argument == "--std" ? "std must be finite and not zero" : "mean must be finite"};
    }
    if (!result.emplace(info->name, v.values).second) {
      return Error{ErrorCode::kInvalidArgument, "values given twice", argument + " " + list,
                   fmt::format("input \"{}\" has values already", info->name), "give each input once"};
    }
  }
  return result;
}

Result<Tensor> normalize(const Tensor& tensor, const toolkit::TensorInfo& info, const ChannelMap& mean,
                         const ChannelMap& std_dev) {
  const auto m = mean.find(info.name);
  const auto s = std_dev.find(info.name);
  if (m == mean.end() && s == std_dev.end()) return tensor;
  if (tensor.dtype() != DType::kFloat32) {
    return Error{ErrorCode::kInvalidArgument, "cannot apply mean and std", info.name,
                 fmt::format("the input is {}, they need float32", dtype_name(tensor.dtype())),
                 "leave them out for this input"};
  }
  const int axis = channel_axis_of(info);
  const int64_t channels = channels_of(info);
  const int64_t inner = tensor.shape().elements(std::min(axis + 1, tensor.shape().rank()), tensor.shape().rank());
  Tensor out = tensor;
  const auto data = out.mutable_as<float>();
  const auto value = [&](const ChannelMap& map, ChannelMap::const_iterator it, int64_t c, float fallback) {
    if (it == map.end()) return fallback;
    return it->second.size() == 1 ? it->second[0] : it->second[static_cast<size_t>(c)];
  };
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / inner % channels;
    data[i] = (data[i] - value(mean, m, c, 0.0F)) / value(std_dev, s, c, 1.0F);
  }
  return out;
}

Result<Tensor> load_file(const std::string& path, const toolkit::TensorInfo& info, bool bgr,
                         toolkit::DataLayout layout) {
  std::vector<int64_t> dims = info.shape;
  const bool file_nhwc = layout == toolkit::DataLayout::kModel ? info.nhwc : layout == toolkit::DataLayout::kNhwc;
  const bool swapped = dims.size() == 4 && file_nhwc != info.nhwc;
  if (swapped && info.nhwc) dims = {dims[0], dims[3], dims[1], dims[2]};
  if (swapped && !info.nhwc) dims = {dims[0], dims[2], dims[3], dims[1]};
  OPENRKNN_TRY(const Shape shape, Shape::make(dims));
  OPENRKNN_TRY(Tensor tensor, io::load_input(path, {info.name, to_internal(info.dtype), shape, file_nhwc, bgr}));
  return swapped ? swap_layout(tensor.view(), info.nhwc) : tensor;
}

Result<Tensors> load_files(const FilePairs& files, const Infos& inputs, const toolkit::FeedOptions& options) {
  OPENRKNN_TRY(const ChannelMap mean, match_channels(options.mean, inputs, "--mean"));
  OPENRKNN_TRY(const ChannelMap std_dev, match_channels(options.std_dev, inputs, "--std"));
  Tensors tensors;
  for (const auto& [name, path] : files) {
    const toolkit::TensorInfo* info = find_info(inputs, name);
    if (info == nullptr) return unknown_input(path, name, inputs);
    OPENRKNN_TRY(Tensor tensor, load_file(path, *info, options.bgr, options.layout));
    OPENRKNN_TRY(tensor, normalize(tensor, *info, mean, std_dev));
    tensors.insert_or_assign(name, std::move(tensor));
  }
  return tensors;
}

Result<std::vector<toolkit::NamedShape>> bind_open_dimensions(const FilePairs& files, const Infos& inputs) {
  std::vector<toolkit::NamedShape> shapes;
  for (const auto& [name, path] : files) {
    const toolkit::TensorInfo* info = find_info(inputs, name);
    if (info == nullptr) return unknown_input(path, name, inputs);
    if (std::none_of(info->shape.begin(), info->shape.end(), [](int64_t d) { return d < 0; })) continue;
    OPENRKNN_TRY(std::vector<int64_t> shape, shape_of_file(path, *info));
    bool fits = shape.size() == info->shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = info->shape[i] < 0 || info->shape[i] == shape[i];
    if (!fits) {
      return Error{
          ErrorCode::kShape, "shape mismatch", path,
          fmt::format("given {}, input \"{}\" expects {} (-1: any)", dims_text(shape), name, dims_text(info->shape)),
          "give data of the model's shape"};
    }
    shapes.push_back({name, std::move(shape)});
  }
  return shapes;
}

}  // namespace openrknn::facade
