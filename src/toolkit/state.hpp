// What stands behind the handles of the public interface.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "import/importer.hpp"
#include "model/program.hpp"
#include "openrknn/toolkit.hpp"
#include "sim/machine.hpp"

namespace openrknn::toolkit {

struct Model::State {
  std::string path;
  import::Imported imported;
  std::vector<TensorInfo> inputs, outputs;
};

struct Program::State {
  std::string path;  // empty for one that was just built
  model::Program program;
  std::optional<sim::Machine> machine;  // made at the first run
  std::vector<TensorInfo> inputs, outputs;
  std::vector<std::string> warnings;
  double load_ms = 0;

  openrknn::Result<sim::Machine*> loaded_machine();
};

}  // namespace openrknn::toolkit
