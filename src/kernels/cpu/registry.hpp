// The float kernels of every operator, by the operator's name: what the golden run and the CPU tasks of a Program call.
//
// A kernel gets views of its operands and writes into outputs whose dtype and shape are already right (shape inference
// has run). It knows nothing of graphs. Its result depends on neither the number of threads nor the instruction set.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/attributes.hpp"
#include "core/tensor.hpp"
#include "kernels/cpu/support_stages.hpp"

namespace openrknn::cpu {

// What a kernel keeps of a node from call to call: plans, packed weights. Its type is the kernel's own.
struct Kept {
  Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  virtual ~Kept() = default;
};

// One node that is called again and again with operands of the same types and shapes. Calls may run at the same time.
class NodeMemory {
 public:
  // constants[i]: operand i has the same values at every call.
  explicit NodeMemory(std::vector<bool> constants) : constants_(std::move(constants)) {}

  bool constant(size_t operand) const { return operand < constants_.size() && constants_[operand]; }

  // What make() gives at the first call: a Result<std::unique_ptr<T>>, T derived from Kept and the same in all calls.
  template <typename T, typename Make>
  Result<const T*> keep(const Make& make) {
    std::call_once(once_, [&] {
      auto made = make();
      if (made.ok()) {
        kept_ = std::move(*made);
      } else {
        error_ = made.error();
      }
    });
    if (kept_ == nullptr) return *error_;
    return static_cast<const T*>(kept_.get());
  }

 private:
  std::vector<bool> constants_;
  std::once_flag once_;
  std::unique_ptr<const Kept> kept_;
  std::optional<Error> error_;
};

struct KernelArgs {
  std::span<const TensorView> inputs;          // absent optional operands have dtype kUndefined
  std::span<const MutableTensorView> outputs;  // absent optional results likewise
  const Attributes& attributes;
  NodeMemory* memory = nullptr;        // nullptr: anything may differ at the next call
  std::span<const Stage> stages = {};  // to be done behind the kernel's own work; only kernels that can are given some

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
  bool constant(size_t i) const { return memory != nullptr && memory->constant(i); }
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
