// One task as JSON and arrays, for recomputation by hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "core/tensor.hpp"
#include "model/program.hpp"

namespace openrknn::analysis {

// Writes arrays under folder/constants and gives their names relative to `folder`.
class ConstantWriter {
 public:
  explicit ConstantWriter(std::string folder) : folder_(std::move(folder)) {}
  Result<std::string> write(const std::string& name, const TensorView& tensor);

 private:
  std::string folder_;
};

// The entry of tasks.json; `index` makes the file names.
Result<nlohmann::ordered_json> task_json(const model::Program& program, size_t index, ConstantWriter& constants);
// scale and zero_point of a tensor: numbers, or arrays by channel.
void add_quant(const std::optional<QuantParams>& quant, nlohmann::ordered_json& json);

}  // namespace openrknn::analysis
