// From a source model and a configuration to a Program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/importer.hpp"
#include "io/dataset.hpp"
#include "quant/calibration.hpp"
#include "quant/placement.hpp"
#include "target/target.hpp"
#include "toolkit/feed.hpp"

namespace openrknn::facade {

// Refuses unknown values with the known ones, and values that openrknn has not got yet with a clear word.
Status check_config(const toolkit::Config& config);

// Of a source file, as the provenance of a program holds it.
std::string checksum_text(std::span<const std::byte> bytes);

// The samples of a calibration list as graph inputs, mean and std applied; read one by one.
class SampleReader {
 public:
  static Result<SampleReader> open(const std::string& dataset, const Infos& inputs, const toolkit::Config& config);
  // One sample without data, for a model without inputs.
  static SampleReader empty();
  Result<std::optional<Tensors>> next();
  Result<Tensors> read(size_t index) const;  // mean and std applied
  Result<Tensors> read_raw(size_t index) const;
  size_t count() const { return samples_.size(); }

 private:
  std::string place(size_t index) const;  // "LIST line N"
  Status check_finite(size_t index, const std::string& input, const Tensor& tensor) const;

  std::vector<io::Sample> samples_;
  std::string list_;
  Infos inputs_;
  ChannelMap mean_, std_dev_;
  std::vector<bool> bgr_;
  size_t next_ = 0;
};

// Warnings name tensors whose values are not finite or leave the range of fp16 in the first sample.
Result<std::vector<std::string>> check_values(const Graph& graph, const quant::Placement& placement,
                                              const Tensors& sample);

// Uses `imported` up.
Result<model::Program> build(const std::string& path, import::Imported imported, const toolkit::Config& config,
                             const std::string& dataset, std::vector<std::string>& warnings);

}  // namespace openrknn::facade
