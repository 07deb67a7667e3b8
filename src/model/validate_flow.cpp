// The order of execution: every read follows its write, and nothing is overwritten while it is needed.
#include <algorithm>

#include "model/codec.hpp"
#include "model/validate.hpp"

namespace openrknn::model {
namespace {

class Flow {
 public:
  explicit Flow(const Program& p) : p_(p), valid_(p.tensors.size(), false), by_buffer_(p.buffers.size()) {
    regions_.reserve(p.tensors.size());
    for (size_t i = 0; i < p.tensors.size(); ++i) {
      regions_.push_back(region_of(p.tensors[i]));
      if (p.tensors[i].constant != kNone) {
        valid_[i] = true;
      } else {
        by_buffer_[static_cast<size_t>(p.tensors[i].buffer)].push_back(static_cast<int>(i));
      }
    }
  }

  Status run() {
    for (const Port& port : p_.inputs) OPENRKNN_CHECK_OK(write(port.tensor, -1, port.name));
    for (size_t i = 0; i < p_.tasks.size(); ++i) OPENRKNN_CHECK_OK(step(p_.tasks[i], static_cast<int>(i)));
    for (const Port& port : p_.outputs)
      OPENRKNN_CHECK_OK(read(port.tensor, static_cast<int>(p_.tasks.size()), port.name));
    return {};
  }

 private:
  const TensorDesc& tensor(int id) const { return p_.tensor(id); }
  const Region& region(int id) const { return regions_[static_cast<size_t>(id)]; }

  Status live(int id, int time, const std::string& where) const {
    if (tensor(id).buffer == kNone) return {};
    const Buffer& b = p_.buffers[static_cast<size_t>(tensor(id).buffer)];
    if (time >= b.first_task && time <= b.last_task) return {};
    return invalid(where, fmt::format("it uses tensor '{}' at step {}, but buffer '{}' lives from {} to {}",
                                      tensor(id).name, time, b.name, b.first_task, b.last_task));
  }

  Status read(int id, int time, const std::string& where) const {
    if (!valid_[static_cast<size_t>(id)])
      return invalid(
          where, fmt::format("it reads tensor '{}' before it is written or after it is overwritten", tensor(id).name));
    return live(id, time, where);
  }

  // Marks the tensor written and everything else that shares its bytes as gone.
  Status write(int id, int time, const std::string& where) {
    if (tensor(id).constant != kNone)
      return invalid(where, fmt::format("it writes the constant '{}'", tensor(id).name));
    OPENRKNN_CHECK_OK(live(id, time, where));
    const auto& neighbours = by_buffer_[static_cast<size_t>(tensor(id).buffer)];
    budget_ -= static_cast<int64_t>(neighbours.size());
    if (budget_ < 0) return invalid(where, "too many tensors share its buffers");
    for (const int other : neighbours) {
      if (other != id && valid_[static_cast<size_t>(other)] && overlap(region(id), region(other)))
        valid_[static_cast<size_t>(other)] = false;
    }
    valid_[static_cast<size_t>(id)] = true;
    return {};
  }

  // An in-place result shows bytes that its operands have left in the buffer.
  Status alias(const Task& task, int output, int time) {
    OPENRKNN_CHECK_OK(live(output, time, task.name));
    for (const int input : task.inputs) {
      if (input == kNone || tensor(input).constant != kNone) continue;
      if (tensor(input).buffer != tensor(output).buffer)
        return invalid(task.name, fmt::format("it works in place, but '{}' and '{}' lie in different buffers",
                                              tensor(input).name, tensor(output).name));
    }
    valid_[static_cast<size_t>(output)] = true;
    return {};
  }

  // A result may share bytes with an operand only where each element is read before it is written in its place.
  Status hazard(const Task& task, int input, int output) const {
    const TensorDesc& a = tensor(input);
    const TensorDesc& b = tensor(output);
    if (a.constant != kNone || a.buffer != b.buffer || !overlap(region(input), region(output))) return {};
    const bool residual =
        task.kind == TaskKind::kConv && task.inputs.size() == 2 && input == task.inputs[1] && input != task.inputs[0];
    const bool pointwise = task.kind == TaskKind::kElementwise || task.kind == TaskKind::kActivation || residual;
    const bool same = a.cube == b.cube && a.layout == b.layout && a.offset == b.offset && a.dtype == b.dtype &&
                      a.c2 == b.c2 && a.row_stride == b.row_stride && a.surface_stride == b.surface_stride &&
                      a.batch_stride == b.batch_stride;
    if (pointwise && same) return {};
    if (task.kind == TaskKind::kConcat && task.attributes.int_or("axis", 1) == 1 && stays(task, input, b)) return {};
    return invalid(task.name, fmt::format("its result '{}' overwrites its operand '{}'", b.name, a.name));
  }

  // A Concat operand that already lies where the result has it.
  bool stays(const Task& task, int input, const TensorDesc& result) const {
    int64_t channel = 0;
    for (const int other : task.inputs) {
      if (other == input) return lies_inside(tensor(input), result, channel);
      channel += tensor(other).cube.c;
    }
    return false;
  }

  Status step(const Task& task, int time) {
    for (const int input : task.inputs) {
      if (input != kNone) OPENRKNN_CHECK_OK(read(input, time, task.name));
    }
    for (const int output : task.outputs) {
      if (output == kNone) continue;
      if (task.in_place) {
        OPENRKNN_CHECK_OK(alias(task, output, time));
        continue;
      }
      for (const int input : task.inputs) {
        if (input != kNone) OPENRKNN_CHECK_OK(hazard(task, input, output));
      }
      OPENRKNN_CHECK_OK(write(output, time, task.name));
    }
    // A second result must not lie over the first.
    for (const int output : task.outputs) {
      if (output != kNone) OPENRKNN_CHECK_OK(read(output, time, task.name));
    }
    return {};
  }

  const Program& p_;
  std::vector<bool> valid_;
  std::vector<std::vector<int>> by_buffer_;
  std::vector<Region> regions_;
  int64_t budget_ = int64_t{1} << 28;  // comparisons; far above any real program
};

}  // namespace

Status validate_flow(const Program& program) { return Flow(program).run(); }

}  // namespace openrknn::model
