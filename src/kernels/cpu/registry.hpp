// The float kernels of every operator, by the operator's name: what the golden run and the CPU tasks of a Program call.
//
// A kernel gets views of its operands and writes into outputs whose dtype and shape are already right (shape inference
// has run). It knows nothing of graphs. Its result depends on neither the number of threads nor the instruction set.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/tensor.hpp"

namespace openrknn::cpu {

struct KernelArgs {
  std::span<const TensorView> inputs;          // absent optional operands have dtype kUndefined
  std::span<const MutableTensorView> outputs;  // absent optional results likewise
  const Attributes& attributes;

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
};

using Kernel = Status (*)(const KernelArgs&);

class Registry {
 public:
  void add(std::string_view op, Kernel kernel);
  Kernel find(std::string_view op) const;  // nullptr when there is none
  std::vector<std::string_view> names() const;

 private:
  std::vector<std::pair<std::string_view, Kernel>> kernels_;
};

// All kernels. Every file src/kernels/cpu/<family>.cpp defines `void register_<family>(Registry&)` and is found by the
// build.
const Registry& kernels();

}  // namespace openrknn::cpu
