// Graph with placement and quantization parameters to Program.
#pragma once

#include <string>

#include "model/program.hpp"
#include "opt/pass.hpp"
#include "plan/planner.hpp"
#include "quant/calibration.hpp"
#include "quant/placement.hpp"
#include "target/target.hpp"

namespace openrknn::npu {

struct InputNormalization {
  std::vector<float> mean, std_dev;  // per channel; empty: none
};

struct CompileOptions {
  std::string dtype = "w8a8";
  plan::Strategy memory_plan = plan::Strategy::kOptimal;
  std::string compute_order = "WidthFirst";
  std::map<std::string, InputNormalization> normalization;  // by graph input
  // Largest output block of one tile, 0: as the convolution buffer allows. For tests of tiling.
  int64_t max_tile_rows = 0, max_tile_columns = 0, max_tile_channels = 0;
  std::string custom_string, provenance;
};

opt::Capabilities capabilities(const target::Target& target);
Result<model::Program> compile(const Graph& graph, const quant::Placement& placement, const target::Target& target,
                               const CompileOptions& options);

}  // namespace openrknn::npu
