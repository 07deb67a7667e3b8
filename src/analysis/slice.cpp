#include "analysis/slice.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/checked.hpp"

namespace openrknn::analysis {
namespace {

constexpr int64_t kAlignment = 64;

class Slicer {
 public:
  Slicer(const model::Program& program, const std::function<bool(int)>& known) : program_(program), known_(known) {
    for (size_t t = 0; t < program.tasks.size(); ++t) {
      for (const int id : program.tasks[t].outputs) producer_[id] = static_cast<int>(t);
    }
  }

  model::Program run(int task) {
    out_.target = program_.target;
    out_.profile = program_.profile;
    out_.dtype = program_.dtype;
    out_.blobs = program_.blobs;
    out_.weights = program_.weights;
    out_.cbuf_bytes = program_.cbuf_bytes;
    need(task);
    for (const int t : tasks_) add_task(program_.tasks[static_cast<size_t>(t)]);
    for (const int id : ports_) out_.inputs.push_back(port(id));
    for (const int id : program_.tasks[static_cast<size_t>(task)].outputs) {
      if (id != model::kNone) out_.outputs.push_back(port(id));
    }
    place_buffers();
    return std::move(out_);
  }

 private:
  void need(int task) {
    if (!tasks_.insert(task).second) return;
    for (const int id : program_.tasks[static_cast<size_t>(task)].inputs) {
      if (id == model::kNone || program_.tensor(id).constant != model::kNone) continue;
      const auto it = producer_.find(id);
      if (it == producer_.end() || known_(id)) {
        ports_.insert(id);
      } else {
        need(it->second);
      }
    }
  }

  int tensor(int id) {
    if (id == model::kNone) return id;
    const auto [it, fresh] = tensors_.try_emplace(id, static_cast<int>(out_.tensors.size()));
    if (!fresh) return it->second;
    model::TensorDesc desc = program_.tensor(id);
    if (desc.buffer != model::kNone) desc.buffer = buffer(desc.buffer);
    out_.tensors.push_back(std::move(desc));
    return it->second;
  }

  int buffer(int id) {
    const auto [it, fresh] = buffers_.try_emplace(id, static_cast<int>(out_.buffers.size()));
    if (fresh) out_.buffers.push_back(program_.buffers[static_cast<size_t>(id)]);
    return it->second;
  }

  void add_task(model::Task task) {
    for (int& id : task.inputs) id = tensor(id);
    for (int& id : task.outputs) id = tensor(id);
    out_.tasks.push_back(std::move(task));
  }

  model::Port port(int id) {
    const model::TensorDesc& desc = program_.tensor(id);
    model::Port p;
    p.name = desc.name;
    p.tensor = tensor(id);
    const bool real = desc.quant.has_value() || is_float(desc.dtype);
    p.source_dtype = real ? DType::kFloat32 : desc.dtype;
    p.source_shape = desc.shape;
    p.channel_axis = desc.shape.rank() > 1 ? 1 : 0;
    return p;
  }

  // Every buffer lives through the whole slice: nothing is shared that was not shared before.
  void place_buffers() {
    std::set<int> read_first;
    for (const model::Port& p : out_.inputs) read_first.insert(out_.tensors[static_cast<size_t>(p.tensor)].buffer);
    for (size_t i = 0; i < out_.buffers.size(); ++i) {
      model::Buffer& b = out_.buffers[i];
      b.offset = out_.arena_size;
      b.first_task = read_first.count(static_cast<int>(i)) != 0 ? -1 : 0;
      b.last_task = static_cast<int>(out_.tasks.size());
      out_.arena_size += align_up(b.size, kAlignment);
    }
    out_.arena_lower_bound = out_.arena_size;
  }

  const model::Program& program_;
  const std::function<bool(int)>& known_;
  model::Program out_;
  std::map<int, int> producer_;
  std::set<int> tasks_, ports_;
  std::map<int, int> tensors_, buffers_;
};

}  // namespace

model::Program slice(const model::Program& program, int task, const std::function<bool(int)>& known) {
  return Slicer(program, known).run(task);
}

}  // namespace openrknn::analysis
