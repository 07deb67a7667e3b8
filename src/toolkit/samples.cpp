#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "toolkit/build.hpp"

namespace openrknn::facade {

SampleReader SampleReader::empty() {
  SampleReader reader;
  reader.samples_.resize(1);
  return reader;
}

Result<SampleReader> SampleReader::open(const std::string& dataset, const Infos& inputs,
                                        const toolkit::Config& config) {
  SampleReader reader;
  OPENRKNN_TRY(reader.samples_, io::read_dataset(dataset, inputs.size()));
  const auto wanted =
      static_cast<size_t>(std::min<int64_t>(config.max_samples, static_cast<int64_t>(reader.samples_.size())));
  reader.samples_.resize(wanted);
  OPENRKNN_TRY(reader.mean_, match_channels(config.mean, inputs, "--mean"));
  OPENRKNN_TRY(reader.std_dev_, match_channels(config.std_dev, inputs, "--std"));
  for (const auto& info : inputs) {
    reader.bgr_.push_back(config.bgr_all ||
                          std::find(config.bgr.begin(), config.bgr.end(), info.name) != config.bgr.end());
  }
  reader.list_ = dataset;
  reader.inputs_ = inputs;
  return reader;
}

std::string SampleReader::place(size_t index) const { return list_ + " line " + std::to_string(samples_[index].line); }

// Ranges and distances of such data mean nothing.
Status SampleReader::check_finite(size_t index, const std::string& input, const Tensor& tensor) const {
  if (tensor.dtype() != DType::kFloat32) return {};
  const auto data = tensor.as<float>();
  const auto bad = std::find_if(data.begin(), data.end(), [](float x) { return !std::isfinite(x); });
  if (bad == data.end()) return {};
  const auto at = std::find_if(inputs_.begin(), inputs_.end(), [&](const auto& i) { return i.name == input; });
  const std::string& file = samples_[index].files[static_cast<size_t>(at - inputs_.begin())];
  return Error{ErrorCode::kInvalidArgument, "cannot use the sample", place(index) + ": " + file,
               fmt::format("element {} of input \"{}\" is {}{}", bad - data.begin(), input, *bad,
                           mean_.contains(input) || std_dev_.contains(input) ? " after mean and std" : ""),
               "give finite data, and a std that does not overflow it"};
}

Result<Tensors> SampleReader::read_raw(size_t index) const {
  Tensors tensors;
  const io::Sample& sample = samples_[index];
  for (size_t i = 0; i < inputs_.size(); ++i) {
    auto tensor = load_file(sample.files[i], inputs_[i], bgr_[i], toolkit::DataLayout::kModel);
    if (!tensor.ok()) return tensor.error().within(place(index));
    tensors.insert_or_assign(inputs_[i].name, std::move(tensor).value());
  }
  return tensors;
}

Result<Tensors> SampleReader::read(size_t index) const {
  OPENRKNN_TRY(Tensors tensors, read_raw(index));
  for (const auto& info : inputs_) {
    OPENRKNN_TRY(tensors[info.name], normalize(tensors[info.name], info, mean_, std_dev_));
    OPENRKNN_CHECK_OK(check_finite(index, info.name, tensors[info.name]));
  }
  return tensors;
}

Result<std::optional<Tensors>> SampleReader::next() {
  if (next_ >= samples_.size()) return std::optional<Tensors>{};
  OPENRKNN_TRY(Tensors tensors, read(next_++));
  return std::optional<Tensors>(std::move(tensors));
}

}  // namespace openrknn::facade
