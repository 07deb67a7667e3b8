// The machine that runs a Program: only what stands in the Program, nothing of the compiler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.hpp"
#include "model/program.hpp"

namespace openrknn::sim {

using Tensors = std::map<std::string, Tensor, std::less<>>;

struct RunOptions {
  // One poisoned arena at the Program's own addresses: packed weights, NC1HWC2 tensors, tile by tile with only the
  // tile's convolution buffer contents. Same bytes, slower.
  bool strict = false;
  // Outputs as the program's own dtype instead of float32.
  bool raw_outputs = false;
  // Called with every tensor once it is complete (graph inputs too): raw dtype, row-major, logical shape.
  std::function<void(int tensor, const Tensor& data)> observer;
  // Called before each task with its index, for progress.
  std::function<void(int task)> on_task;
};

class Machine {
 public:
  // The program must outlive the machine and be valid (model::validate).
  static Result<Machine> load(const model::Program& program);
  Machine(Machine&&) noexcept;
  Machine& operator=(Machine&&) noexcept;
  ~Machine();

  // `inputs`: one tensor a port, by name, in the source model's shape; any numeric dtype, taken as the real value
  // before mean and std. Outputs by port name: float32 in the source shape (or raw).
  Result<Tensors> run(const Tensors& inputs, const RunOptions& options = {});
  // Milliseconds of each task in the last run.
  const std::vector<double>& task_ms() const;

 private:
  struct State;
  explicit Machine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace openrknn::sim
