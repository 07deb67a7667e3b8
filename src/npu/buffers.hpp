// From tensors that lie in one another to buffers with lifetimes and planned offsets.
#pragma once

#include <vector>

#include "npu/lowering.hpp"

namespace openrknn::npu {

class BufferPlanner {
 public:
  explicit BufferPlanner(Lowering& l);
  Status run();

 private:
  int root(int tensor) const;
  int64_t first_plane(int tensor) const;
  void note_lifetimes();
  void reuse_operands();
  bool may_overwrite(const model::Task& task, int step, int operand, int result) const;
  void lay_out();
  Status plan();

  Lowering& l_;
  std::vector<int> first_, last_;  // per root tensor: steps that touch it
};

}  // namespace openrknn::npu
