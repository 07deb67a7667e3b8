// What executes one task. A runner prepares everything that does not depend on data when it is made.
#pragma once

#include <memory>
#include <span>
#include <vector>

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
  std::vector<std::byte> slab, window, weights, tensors;
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
