#include "npu/buffers.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "model/codec.hpp"

namespace openrknn::npu {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

bool is_elementwise(const model::Task& t) {
  return t.kind == model::TaskKind::kElementwise || t.kind == model::TaskKind::kActivation;
}

}  // namespace

BufferPlanner::BufferPlanner(Lowering& l) : l_(l) {}

int BufferPlanner::root(int t) const {
  while (l_.inside_[static_cast<size_t>(t)].parent != model::kNone) t = l_.inside_[static_cast<size_t>(t)].parent;
  return t;
}

int64_t BufferPlanner::first_plane(int t) const {
  int64_t planes = 0;
  for (; l_.inside_[static_cast<size_t>(t)].parent != model::kNone; t = l_.inside_[static_cast<size_t>(t)].parent) {
    planes += l_.inside_[static_cast<size_t>(t)].planes;
  }
  return planes;
}

void BufferPlanner::note_lifetimes() {
  first_.assign(l_.program_.tensors.size(), kNever);
  last_.assign(l_.program_.tensors.size(), -1);
  const auto touch = [&](int t, int step) {
    if (t == model::kNone || l_.tensor(t).constant != model::kNone) return;
    const auto r = static_cast<size_t>(root(t));
    first_[r] = std::min(first_[r], step);
    last_[r] = std::max(last_[r], step);
  };
  const auto& tasks = l_.program_.tasks;
  for (int step = 0; step < static_cast<int>(tasks.size()); ++step) {
    for (const int t : tasks[static_cast<size_t>(step)].inputs) touch(t, step);
    for (const int t : tasks[static_cast<size_t>(step)].outputs) touch(t, step);
  }
  for (const model::Port& p : l_.program_.inputs) touch(p.tensor, -1);
  for (const model::Port& p : l_.program_.outputs) touch(p.tensor, static_cast<int>(tasks.size()));
}

// The result may take the operand's place: equal cubes, the operand's last use, nothing else of the task in that
// memory.
bool BufferPlanner::may_overwrite(const model::Task& task, int step, int operand, int result) const {
  if (operand == model::kNone || l_.tensor(operand).constant != model::kNone || l_.is_view(result) ||
      l_.is_view(operand))
    return false;
  const model::TensorDesc& a = l_.tensor(operand);
  const model::TensorDesc& y = l_.tensor(result);
  const bool same_place = a.layout == model::Layout::kNC1HWC2 && y.layout == a.layout && a.dtype == y.dtype &&
                          a.cube == y.cube && a.c2 == y.c2;
  const int r = root(operand);
  const bool last_use = last_[static_cast<size_t>(r)] == step && first_[static_cast<size_t>(r)] >= 0;
  if (!same_place || !last_use) return false;
  for (const int other : task.inputs) {
    if (other != model::kNone && other != operand && l_.tensor(other).constant == model::kNone && root(other) == r)
      return false;
  }
  return true;
}

void BufferPlanner::reuse_operands() {
  const auto& tasks = l_.program_.tasks;
  for (int step = 0; step < static_cast<int>(tasks.size()); ++step) {
    const model::Task& task = tasks[static_cast<size_t>(step)];
    std::vector<int> candidates;
    if (is_elementwise(task)) candidates = task.inputs;
    // A fused residual is read element by element where the result is written; the convolution's own input is not.
    if (task.kind == model::TaskKind::kConv && task.inputs.size() > 1 && task.inputs[1] != task.inputs[0])
      candidates = {task.inputs[1]};
    for (const int operand : candidates) {
      if (!may_overwrite(task, step, operand, task.outputs[0])) continue;
      const int result = task.outputs[0];
      if (!l_.place_inside(result, operand, 0)) continue;
      const auto r = static_cast<size_t>(root(operand));
      last_[r] = std::max(last_[r], last_[static_cast<size_t>(result)]);
      break;
    }
  }
}

void BufferPlanner::lay_out() {
  auto& program = l_.program_;
  for (int t = 0; t < static_cast<int>(program.tensors.size()); ++t) {
    model::TensorDesc& desc = l_.tensor(t);
    if (desc.constant != model::kNone || root(t) != t) continue;
    const auto align = l_.target_.input_width_align.find(std::string(dtype_name(desc.dtype)));
    const int width_align = align == l_.target_.input_width_align.end() ? 1 : align->second;
    const int64_t bytes = model::set_dense_strides(desc, l_.target_.plane_pixel_align, width_align);
    model::Buffer buffer;
    buffer.name = desc.name;
    buffer.size = align_up(std::max<int64_t>(bytes, 1), l_.target_.buffer_alignment);
    desc.buffer = static_cast<int>(program.buffers.size());
    desc.offset = 0;
    program.buffers.push_back(std::move(buffer));
  }
  for (int t = 0; t < static_cast<int>(program.tensors.size()); ++t) {
    model::TensorDesc& desc = l_.tensor(t);
    if (desc.constant != model::kNone || root(t) == t) continue;
    const model::TensorDesc& r = l_.tensor(root(t));
    desc.buffer = r.buffer;
    desc.offset = r.offset + first_plane(t) * r.surface_stride;
    desc.surface_stride = r.surface_stride;
    desc.batch_stride = r.batch_stride;
    desc.row_stride = r.row_stride;
  }
}

// Inputs and outputs are the application's memory (sdk.md 7.4): they lie behind the intermediate tensors, which alone
// are planned.
Status BufferPlanner::plan() {
  auto& program = l_.program_;
  const int steps = static_cast<int>(program.tasks.size());
  std::vector<plan::Request> requests(program.buffers.size());
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const model::TensorDesc& desc = program.tensors[t];
    if (desc.constant != model::kNone || root(static_cast<int>(t)) != static_cast<int>(t)) continue;
    model::Buffer& b = program.buffers[static_cast<size_t>(desc.buffer)];
    b.first_task = first_[t] == kNever ? -1 : first_[t];
    b.last_task = std::max(last_[t], b.first_task);
    requests[static_cast<size_t>(desc.buffer)] = {b.size, b.first_task + 1, std::min(b.last_task, steps) + 1};
  }
  std::vector<bool> apart(requests.size(), false);
  for (const auto* ports : {&program.inputs, &program.outputs}) {
    for (const model::Port& port : *ports) {
      const int buffer = program.tensor(port.tensor).buffer;
      if (buffer != model::kNone) apart[static_cast<size_t>(buffer)] = true;
    }
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    if (apart[i]) requests[i].size = 0;
  }
  OPENRKNN_TRY(const plan::Plan made, plan::make_plan(requests, l_.target_.buffer_alignment, l_.options_.memory_plan));
  int64_t end = made.size;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    program.buffers[i].offset = apart[i] ? end : made.offsets[i];
    if (apart[i]) end += program.buffers[i].size;
  }
  program.arena_size = end;
  program.arena_lower_bound = end - made.size + made.lower_bound;
  return {};
}

Status BufferPlanner::run() {
  note_lifetimes();
  reuse_operands();
  note_lifetimes();
  lay_out();
  return plan();
}

}  // namespace openrknn::npu
