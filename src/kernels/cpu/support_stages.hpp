// Elementwise operators that are computed together, a short stretch of elements at a time, while it lies in the first
// cache: behind a convolution, or one behind another. Each stage rounds as its operator does on its own, so the bits
// are those of the separate nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/gemm_kernels.hpp"

namespace openrknn::cpu {

struct KernelArgs;

struct StageOperand {
  enum class From {
    kValue,  // number 0 is the node's own result, i + 1 that of stage i
    kInput,  // an operand of the node
  };
  From from = From::kValue;
  size_t number = 0;
};

struct Stage {
  enum class Op {
    kCombine,     // a op b
    kActivation,  // of a
    kErf,         // of a
    kSqrt,        // of a
    kNormalize,   // BatchNormalization of a; b is the first of its four operands: scale, bias, mean, variance
  };
  Op op = Op::kCombine;
  Combine combine = Combine::kAdd;
  ActivationSpec activation;
  double epsilon = 0.0;
  StageOperand a, b;
};

constexpr size_t kMostStages = 12;
constexpr size_t kMostStageInputs = 8;  // of all stages

// What an operand gives to a stretch of elements: values `step` (0 or 1) apart.
struct Strip {
  const float* data = nullptr;
  int64_t step = 0;
};

// At most kMostStages stages, the buffers between them chosen.
class Stages {
 public:
  Stages() = default;
  explicit Stages(std::span<const Stage> stages);

  bool empty() const { return stages_.empty(); }
  // The operands of the node that stages read, in the order of the strips; those of kNormalize are no strips.
  const std::vector<size_t>& inputs() const { return inputs_; }

  // Factor and term of kNormalize stages, in their order, for the channel at hand.
  struct Affine {
    double factor = 1.0;
    double term = 0.0;
  };
  // to[i], 0 <= i < count, from value 0 at `head` (null when no stage reads it); to may be head.
  void run(int64_t count, const float* head, const Strip* strips, const Affine* affines, float* to) const;

 private:
  struct Source {
    enum class Kind { kHead, kBuffer, kStrip };
    Kind kind = Kind::kHead;
    size_t index = 0;
  };
  struct Planned {
    Stage stage;
    Source a, b;
    size_t buffer = 0;  // of the result; the last one's goes to `to`
  };
  Source source_of(const StageOperand& operand, const std::vector<size_t>& buffers);

  const GemmKernels* kernels_ = nullptr;
  std::vector<Planned> stages_;
  std::vector<size_t> inputs_;
};

// The kernel of a node that consists of stages alone, which read operands under broadcasting; all results of stages
// have the shape of the node's.
Status run_stages(const KernelArgs& args);

}  // namespace openrknn::cpu
