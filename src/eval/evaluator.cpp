#include "eval/evaluator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/text.hpp"
#include "eval/fusion.hpp"
#include "kernels/cpu/registry.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace openrknn::eval {
namespace {

std::string place_of(const Graph& graph, const Node& node) {
  return fmt::format("{}node '{}' ({})", graph.source_file.empty() ? "" : graph.source_file + ": ", node.name, node.op);
}

// The first result is the first operand under another shape: no element is touched.
bool is_view(const Node& node) {
  static constexpr std::string_view kViews[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
  return std::find(std::begin(kViews), std::end(kViews), node.op) != std::end(kViews) && node.outputs.size() == 1;
}

std::string type_text(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", dtype_name(dtype), shape.to_string());
}

Status check_inputs(const Graph& graph, const Tensors& inputs) {
  std::vector<std::string> known;
  for (const ValueId id : graph.inputs()) known.push_back(graph.value(id).name);
  for (const auto& [name, tensor] : inputs) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Error{ErrorCode::kNotFound, "cannot run the graph", fmt::format("input '{}'", name),
                 "the graph has no such input", fmt::format("its inputs are {}", join_names(known))};
  }
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    const auto given = inputs.find(value.name);
    const std::string expected =
        value.shape ? type_text(value.dtype, *value.shape) : std::string(dtype_name(value.dtype));
    if (given == inputs.end() || !given->second.defined()) {
      return Error{ErrorCode::kInvalidArgument, "cannot run the graph", fmt::format("input '{}'", value.name),
                   "no data given", fmt::format("give {}", expected)};
    }
    const Tensor& tensor = given->second;
    if (tensor.dtype() != value.dtype || (value.shape && !(tensor.shape() == *value.shape))) {
      return Error{ErrorCode::kShape, "cannot run the graph", fmt::format("input '{}'", value.name),
                   fmt::format("given {}, expected {}", type_text(tensor.dtype(), tensor.shape()), expected),
                   "convert or reshape the data"};
    }
  }
  return {};
}

Status check_kernels(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<std::string> missing;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (cpu::kernels().find(node.op) == nullptr) missing.push_back(fmt::format("'{}' ({})", node.name, node.op));
  }
  if (missing.empty()) return {};
  return Error{ErrorCode::kUnsupported, "cannot evaluate the graph", graph.source_file,
               fmt::format("no float kernel for {}", join_names(missing)), "cut the graph before these nodes"};
}

}  // namespace

using FreeTensors = std::map<std::pair<DType, int64_t>, std::vector<Tensor>>;

struct Evaluator::Pool {
  std::mutex mutex;
  FreeTensors free;
};

void Evaluator::find_lifetimes(const Graph& graph, size_t slots, bool keeps, Schedule& schedule) {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> last_use(slots, kNever);
  for (size_t step = 0; step < schedule.nodes.size(); ++step) {
    const Node& node = *schedule.nodes[step];
    for (const ValueId id : node.inputs) {
      if (id.valid()) last_use[id.index] = step;
    }
    for (const ValueId id : node.outputs) {
      if (!id.valid()) continue;
      last_use[id.index] = step;  // a result without readers dies where it is made
      const Value& value = graph.value(id);
      if (value.shape) schedule.last_made[{value.dtype, value.shape->elements()}] = step;
    }
  }
  for (const auto& node : schedule.nodes) {
    const bool constant =
        keeps && node->inputs.size() > 1 && node->inputs[1].valid() && graph.constant(node->inputs[1]) != nullptr;
    schedule.packed.push_back(constant ? std::make_unique<cpu::PackedWeights>() : nullptr);
  }
  schedule.dies_after.resize(schedule.nodes.size());
  for (const ValueId id : graph.values()) {
    if (last_use[id.index] == kNever || graph.is_output(id) || graph.constant(id) != nullptr) continue;
    schedule.dies_after[last_use[id.index]].push_back(id);
  }
}

Result<Evaluator> Evaluator::make(const Graph& graph, Runs runs) {
  Evaluator made;
  made.graph_ = &graph;
  made.runs_ = runs;
  made.pool_ = std::make_shared<Pool>();
  OPENRKNN_TRY(const std::vector<NodeId> order, graph.topological_order());
  OPENRKNN_CHECK_OK(check_kernels(graph, order));
  for (const ValueId id : graph.values()) made.slots_ = std::max<size_t>(made.slots_, id.index + size_t{1});
  // Nodes of the graph, which outlives the evaluator: pointers that own nothing.
  for (const NodeId id : order) made.all_.nodes.emplace_back(std::shared_ptr<const Node>(), &graph.node(id));
  made.fused_.nodes = fuse_behind_convolutions(graph, order, made.slots_);
  find_lifetimes(graph, made.slots_, runs == Runs::kMany, made.all_);
  find_lifetimes(graph, made.slots_, runs == Runs::kMany, made.fused_);
  return made;
}

namespace {

constexpr size_t kMostKept = size_t{256} << 20;  // bytes that wait for the next run, if there may be one

// The state of one run.
class Run {
 public:
  Run(const Graph& graph, size_t slots, const std::map<std::pair<DType, int64_t>, size_t>& last_made, FreeTensors free,
      size_t most_kept)
      : graph_(graph), last_made_(last_made), most_kept_(most_kept), tensors_(slots), free_(std::move(free)) {
    for (const auto& [key, tensors] : free_) {
      for (const Tensor& tensor : tensors) free_bytes_ += tensor.bytes();
    }
  }

  FreeTensors take_free() { return std::move(free_); }

  void set(ValueId id, Tensor tensor) { tensors_[id.index] = std::move(tensor); }

  const Tensor& get(ValueId id) const {
    static const Tensor absent;
    if (!id.valid()) return absent;
    const Tensor* constant = graph_.constant(id);
    return constant != nullptr ? *constant : tensors_[id.index];
  }

  Status step(const Node& node, cpu::PackedWeights* packed) {
    if (is_view(node)) return view(node);
    const bool shaped = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return !id.valid() || (graph_.value(id).shape && graph_.value(id).dtype != DType::kUndefined);
    });
    return shaped ? run_kernel(node, packed) : run_inferred(node);
  }

  void release(ValueId id, size_t step) {
    Tensor tensor = std::move(tensors_[id.index]);
    tensors_[id.index] = Tensor();
    if (!tensor.defined() || !tensor.unique()) return;
    const std::pair<DType, int64_t> key{tensor.dtype(), tensor.elements()};
    const auto last = last_made_.find(key);
    const bool needed = last != last_made_.end() && last->second > step;
    if (!needed && free_bytes_ + tensor.bytes() > most_kept_) return;
    free_bytes_ += tensor.bytes();
    free_[key].push_back(std::move(tensor));
  }

 private:
  Status view(const Node& node) {
    const Tensor& from = get(node.inputs[0]);
    const Value& type = graph_.value(node.outputs[0]);
    if (!type.shape) return run_inferred(node);
    if (type.shape->elements() != from.elements() || type.dtype != from.dtype()) {
      return Error{ErrorCode::kShape, "the operator cannot be evaluated", "",
                   fmt::format("{} for an operand {}", type_text(type.dtype, *type.shape),
                               type_text(from.dtype(), from.shape())),
                   "repair the model"};
    }
    set(node.outputs[0], from.reshaped(*type.shape));
    return {};
  }

  Result<Tensor> take(DType dtype, const Shape& shape) {
    const auto free = free_.find({dtype, shape.elements()});
    if (free != free_.end() && !free->second.empty()) {
      Tensor tensor = free->second.back().reshaped(shape);
      free->second.pop_back();
      free_bytes_ -= tensor.bytes();
      return tensor;
    }
    auto fresh = Tensor::uninitialized(dtype, shape);
    if (fresh.ok() || free_bytes_ == 0) return fresh;
    // What waits for other sizes gives way.
    free_.clear();
    free_bytes_ = 0;
    return Tensor::uninitialized(dtype, shape);
  }

  Status run_kernel(const Node& node, cpu::PackedWeights* packed) {
    inputs_.clear();
    outputs_.clear();
    for (const ValueId id : node.inputs) inputs_.push_back(get(id).view());
    for (const ValueId id : node.outputs) {
      outputs_.emplace_back();
      if (!id.valid()) continue;
      const Value& value = graph_.value(id);
      OPENRKNN_TRY(Tensor tensor, take(value.dtype, *value.shape));
      set(id, std::move(tensor));
      outputs_.back() = tensors_[id.index].mutable_view();
    }
    return cpu::kernels().find(node.op)({inputs_, outputs_, node.attributes, packed});
  }

  // The shapes depend on data: they are inferred from the operands at hand.
  Status run_inferred(const Node& node) {
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(get(id));
    OPENRKNN_TRY(auto results, ops::evaluate(node.op, node.attributes, operands, node.outputs.size()));
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i].valid()) set(node.outputs[i], std::move(results[i]));
    }
    return {};
  }

  const Graph& graph_;
  const std::map<std::pair<DType, int64_t>, size_t>& last_made_;
  const size_t most_kept_;
  std::vector<Tensor> tensors_;
  FreeTensors free_;
  size_t free_bytes_ = 0;
  std::vector<TensorView> inputs_;
  std::vector<MutableTensorView> outputs_;
};

}  // namespace

Result<Tensors> Evaluator::run(const Tensors& inputs, const Observer& observer, const StepTimer& timer) const {
  using Clock = std::chrono::steady_clock;
  OPENRKNN_CHECK_OK(check_inputs(*graph_, inputs));
  const Schedule& schedule = observer ? all_ : fused_;
  FreeTensors free;
  {
    const std::lock_guard lock(pool_->mutex);
    free.swap(pool_->free);
  }
  Run run(*graph_, slots_, schedule.last_made, std::move(free), runs_ == Runs::kMany ? kMostKept : 0);
  for (const ValueId id : graph_->inputs()) {
    run.set(id, inputs.find(graph_->value(id).name)->second);
    if (observer) observer(id, run.get(id).view());
  }
  for (size_t step = 0; step < schedule.nodes.size(); ++step) {
    const Node& node = *schedule.nodes[step];
    const Clock::time_point start = timer ? Clock::now() : Clock::time_point();
    if (auto status = run.step(node, schedule.packed[step].get()); !status.ok())
      return status.error().within(place_of(*graph_, node));
    if (timer) timer(node, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    for (const ValueId id : node.outputs) {
      if (id.valid() && observer) observer(id, run.get(id).view());
    }
    for (const ValueId id : schedule.dies_after[step]) run.release(id, step);
  }
  Tensors outputs;
  for (const ValueId id : graph_->outputs()) outputs[graph_->value(id).name] = run.get(id);
  const std::lock_guard lock(pool_->mutex);
  if (pool_->free.empty()) pool_->free = run.take_free();
  return outputs;
}

namespace {

// SplitMix64: small, and the same everywhere.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

Tensors seeded_inputs(const Graph& graph, uint64_t seed) {
  Tensors inputs;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    if (!value.shape || dtype_size(value.dtype) == 0) continue;
    uint64_t state = seed * 1000003U + inputs.size();
    std::vector<float> values(static_cast<size_t>(value.shape->elements()));
    for (float& v : values) {
      const uint64_t r = next_random(state);
      // 24 bits make every float in [0, 1) exact; integers are 0 to 9 (bool: 0 or 1).
      v = is_float(value.dtype) ? static_cast<float>(r >> 40) * 0x1p-24F
                                : static_cast<float>(r % (value.dtype == DType::kBool ? 2U : 10U));
    }
    const Tensor floats = Tensor::from(*value.shape, values);
    inputs[value.name] = value.dtype == DType::kFloat32 ? floats : cast(floats.view(), value.dtype);
  }
  return inputs;
}

}  // namespace openrknn::eval
