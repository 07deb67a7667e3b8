// What executes one task. A runner prepares everything that does not depend on data when it is made.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/tensor.hpp"
#include "model/program.hpp"
#include "sim/view.hpp"

namespace openrknn::sim {

// The arena and where each tensor lies in it.
class Memory {
 public:
  static Result<Memory> make(const model::Program& program, Mode mode);

  Mode mode() const { return mode_; }
  const View& view(int tensor) const { return views_[static_cast<size_t>(tensor)]; }
  std::span<std::byte> arena() { return {arena_.get(), static_cast<size_t>(arena_size_)}; }
  void poison();                             // all of it
  void poison(const model::Buffer& buffer);  // what is not live any more

 private:
  struct Release {
    void operator()(std::byte* p) const;
  };
  using Bytes = std::unique_ptr<std::byte[], Release>;
  static Result<Bytes> allocate(int64_t size);
  static std::vector<bool> row_major_tensors(const model::Program& program);
  Status place(const model::Program& program, size_t tensor);

  Mode mode_ = Mode::kFast;
  Bytes arena_;
  int64_t arena_size_ = 0;
  std::vector<View> views_;
  std::vector<Bytes> constants_;  // NHWC copies of constant cubes
};

// Working memory that tasks share one after the other.
struct Scratch {
  std::vector<std::byte> slab, window, weights;
  Tensor tensors;

  // At least so many bytes for copies of tensors, with any values; refused when the memory budget does not hold them.
  Result<std::byte*> reserve_tensors(int64_t bytes);
};

// Pieces of such memory. Without a base they are only counted: the first of two rounds, the second of which hands them
// out.
class Pieces {
 public:
  explicit Pieces(std::byte* base = nullptr) : base_(base) {}

  std::byte* take(int64_t bytes) {
    constexpr int64_t kAlignment = 64;
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

struct Context {
  const model::Program& program;
  const Memory& memory;
  Scratch& scratch;

  const View& view(int tensor) const { return memory.view(tensor); }
  bool strict() const { return memory.mode() == Mode::kStrict; }
};

class Runner {
 public:
  Runner() = default;
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  virtual Status run(const Context& context) = 0;
};

using RunnerPtr = std::unique_ptr<Runner>;

RunnerPtr make_conv(const model::Program& program, const model::Task& task);
RunnerPtr make_pool(const model::Program& program, const model::Task& task);
RunnerPtr make_elementwise(const model::Program& program, const model::Task& task);
RunnerPtr make_activation(const model::Program& program, const model::Task& task);
RunnerPtr make_concat(const model::Program& program, const model::Task& task);
RunnerPtr make_convert(const model::Program& program, const model::Task& task);
Result<RunnerPtr> make_move(const model::Program& program, const model::Task& task);
Result<RunnerPtr> make_matmul(const model::Program& program, const model::Task& task);
Result<RunnerPtr> make_modelled(const model::Program& program, const model::Task& task);
Result<RunnerPtr> make_cpu(const model::Program& program, const model::Task& task);

// The runner of any task; one that does nothing for a task in place.
Result<RunnerPtr> make_runner(const model::Program& program, const model::Task& task);

}  // namespace openrknn::sim
