#include "eval/evaluator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/text.hpp"
#include "eval/fusion.hpp"
#include "eval/schedule.hpp"
#include "kernels/cpu/registry.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace openrknn::eval {
namespace {

std::string place_of(const Graph& graph, const Node& node) {
  return fmt::format("{}node '{}' ({})", graph.source_file.empty() ? "" : graph.source_file + ": ", node.name, node.op);
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

// The memory of one run; between runs it waits for the next one, since fresh pages cost as much as the work on them.
struct Evaluator::Frame {
  Tensor arena;
  std::vector<TensorView> views;  // by value
  std::vector<Tensor> held;       // by value: inputs, results, and what has its shape from data
};

struct Evaluator::Prepared {
  Schedule schedule;
  std::mutex mutex;
  std::unique_ptr<Frame> idle;
};

namespace {

constexpr int64_t kMostKept = int64_t{256} << 20;  // bytes that wait for the next run, if there may be one

}  // namespace

Result<Evaluator> Evaluator::make(const Graph& graph, Runs runs) {
  Evaluator made;
  made.graph_ = &graph;
  made.runs_ = runs;
  OPENRKNN_TRY(const std::vector<NodeId> order, graph.topological_order());
  OPENRKNN_CHECK_OK(check_kernels(graph, order));
  size_t slots = 0;  // one per value id
  for (const ValueId id : graph.values()) slots = std::max<size_t>(slots, id.index + size_t{1});
  made.all_ = std::make_shared<Prepared>();
  made.fused_ = std::make_shared<Prepared>();
  const bool keeps = runs == Runs::kMany;
  OPENRKNN_TRY(made.all_->schedule, make_schedule(graph, plain_units(graph, order), slots, keeps));
  OPENRKNN_TRY(made.fused_->schedule, make_schedule(graph, fused_units(graph, order, slots), slots, keeps));
  return made;
}

class Evaluator::Run {
 public:
  Run(const Graph& graph, const Schedule& schedule, Frame& frame) : graph_(graph), schedule_(schedule), frame_(frame) {}

  void set_input(ValueId id, const Tensor& tensor) { hold(id, tensor); }

  const TensorView& view(ValueId id) const {
    static const TensorView absent;
    return id.valid() ? frame_.views[id.index] : absent;
  }

  // A value that stays after the run.
  Tensor result(ValueId id) const {
    const ValueId root = schedule_.places[id.index].root;
    const Tensor* constant = graph_.constant(root);
    return (constant != nullptr ? *constant : frame_.held[root.index]).reshaped(view(id).shape);
  }

  Status execute(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kKernel:
        return run_kernel(step);
      case Step::Kind::kView:
        return show(*step.unit.node);
      case Step::Kind::kInferred:
        return run_inferred(*step.unit.node);
    }
    return {};
  }

  void release(const Step& step) {
    for (const ValueId id : step.dies) frame_.held[id.index] = Tensor();
  }

 private:
  void hold(ValueId id, Tensor tensor) {
    frame_.views[id.index] = tensor.view();
    frame_.held[id.index] = std::move(tensor);
  }

  Status show(const Node& node) {
    const TensorView& from = view(node.inputs[0]);
    const Value& type = graph_.value(node.outputs[0]);
    if (type.shape->elements() != from.elements() || type.dtype != from.dtype) {
      return Error{
          ErrorCode::kShape, "the operator cannot be evaluated", "",
          fmt::format("{} for an operand {}", type_text(type.dtype, *type.shape), type_text(from.dtype, from.shape)),
          "repair the model"};
    }
    frame_.views[node.outputs[0].index] = {type.dtype, *type.shape, from.data};
    return {};
  }

  Status run_kernel(const Step& step) {
    const Node& node = *step.unit.node;
    inputs_.clear();
    outputs_.clear();
    for (const ValueId id : node.inputs) inputs_.push_back(view(id));
    for (const ValueId id : node.outputs) {
      OPENRKNN_TRY(const MutableTensorView to, destination(id));
      outputs_.push_back(to);
    }
    return step.unit.kernel({inputs_, outputs_, node.attributes, step.memory.get(), step.unit.stages});
  }

  Result<MutableTensorView> destination(ValueId id) {
    if (!id.valid()) return MutableTensorView{};
    const Value& value = graph_.value(id);
    const Place& place = schedule_.places[id.index];
    if (place.where == Place::Where::kArena) return MutableTensorView{value.dtype, *value.shape, arena_ + place.offset};
    Tensor& kept = frame_.held[id.index];  // of the run before
    if (!kept.defined() || !kept.unique()) {
      OPENRKNN_TRY(kept, Tensor::uninitialized(value.dtype, *value.shape));
    }
    frame_.views[id.index] = kept.view();
    return kept.mutable_view();
  }

  Status run_inferred(const Node& node) {
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(operand(id));
    OPENRKNN_TRY(auto results, ops::evaluate(node.op, node.attributes, operands, node.outputs.size()));
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (!id.valid()) continue;
      // Kernels that keep plans rely on declared shapes.
      const Value& type = graph_.value(id);
      if (type.shape && (type.dtype != results[i].dtype() || !(*type.shape == results[i].shape()))) {
        return Error{ErrorCode::kShape, "the operator cannot be evaluated", "",
                     fmt::format("its result is {}, the graph says {}",
                                 type_text(results[i].dtype(), results[i].shape()), type_text(type.dtype, *type.shape)),
                     "repair the model"};
      }
      hold(id, std::move(results[i]));
    }
    return {};
  }

  Tensor operand(ValueId id) const {
    if (!id.valid()) return {};
    const Place& root = schedule_.places[schedule_.places[id.index].root.index];
    return root.where == Place::Where::kArena ? Tensor::copy_of(view(id)) : result(id);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  Frame& frame_;
  std::byte* arena_ = static_cast<std::byte*>(frame_.arena.mutable_data());
  std::vector<TensorView> inputs_;
  std::vector<MutableTensorView> outputs_;
};

Result<std::unique_ptr<Evaluator::Frame>> Evaluator::take_frame(Prepared& prepared) const {
  {
    const std::lock_guard lock(prepared.mutex);
    if (prepared.idle != nullptr) return std::move(prepared.idle);
  }
  const Schedule& schedule = prepared.schedule;
  auto frame = std::make_unique<Frame>();
  OPENRKNN_TRY(frame->arena, Tensor::uninitialized(DType::kUInt8, Shape{schedule.arena_bytes}));
  frame->views.resize(schedule.places.size());
  frame->held.resize(schedule.places.size());
  const auto* arena = static_cast<const std::byte*>(frame->arena.data());
  for (const ValueId id : graph_->values()) {
    const Value& value = graph_->value(id);
    const Place& place = schedule.places[id.index];
    if (place.where == Place::Where::kConstant) frame->views[id.index] = value.constant->view();
    if (place.where == Place::Where::kArena) frame->views[id.index] = {value.dtype, *value.shape, arena + place.offset};
  }
  return frame;
}

void Evaluator::give_back(Prepared& prepared, std::unique_ptr<Frame> frame) const {
  for (const ValueId id : prepared.schedule.held) frame->held[id.index] = Tensor();
  if (runs_ != Runs::kMany || prepared.schedule.arena_bytes > kMostKept - prepared.schedule.result_bytes) return;
  const std::lock_guard lock(prepared.mutex);
  prepared.idle = std::move(frame);
}

Result<Tensors> Evaluator::run(const Tensors& inputs, const Observer& observer, const StepTimer& timer) const {
  using Clock = std::chrono::steady_clock;
  OPENRKNN_CHECK_OK(check_inputs(*graph_, inputs));
  Prepared& prepared = observer ? *all_ : *fused_;
  OPENRKNN_TRY(std::unique_ptr<Frame> frame, take_frame(prepared));
  Run run(*graph_, prepared.schedule, *frame);
  for (const ValueId id : graph_->inputs()) {
    run.set_input(id, inputs.find(graph_->value(id).name)->second);
    if (observer) observer(id, run.view(id));
  }
  Clock::time_point start = timer ? Clock::now() : Clock::time_point();
  for (const Step& step : prepared.schedule.steps) {
    const Node& node = *step.unit.node;
    if (auto status = run.execute(step); !status.ok()) return status.error().within(place_of(*graph_, node));
    if (timer) {
      const Clock::time_point end = Clock::now();
      timer(node, std::chrono::duration<double, std::milli>(end - start).count());
      start = Clock::now();
    }
    for (const ValueId id : node.outputs) {
      if (id.valid() && observer) observer(id, run.view(id));
    }
    run.release(step);
  }
  Tensors outputs;
  for (const ValueId id : graph_->outputs()) outputs[graph_->value(id).name] = run.result(id);
  give_back(prepared, std::move(frame));
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
