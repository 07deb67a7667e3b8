// The float kernels of every operator, by the operator's name: what the golden run and the CPU tasks of a Program call.
//
// A kernel gets views of its operands and writes into outputs whose dtype and shape are already right (shape inference
// has run). It knows nothing of graphs. Its result depends on neither the number of threads nor the instruction set.
#pragma once

#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/tensor.hpp"

namespace openrknn::cpu {

// What a kernel makes of its constant operands (packed weights) at its first call and keeps for the later calls of the
// same node. Calls may run at the same time.
struct PackedWeights {
  std::once_flag once;
  std::vector<float> floats;
  int64_t layout = 0;  // which form `floats` has, in the kernel's own numbering
};

struct KernelArgs {
  std::span<const TensorView> inputs;          // absent optional operands have dtype kUndefined
  std::span<const MutableTensorView> outputs;  // absent optional results likewise
  const Attributes& attributes;
  PackedWeights* packed = nullptr;  // nullptr: the weights may differ at the next call

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
