#include "eval/schedule.hpp"

#include <algorithm>
#include <string_view>

#include "base/checked.hpp"

namespace openrknn::eval {
namespace {

constexpr size_t kNever = SIZE_MAX;
constexpr int64_t kAlignment = 64;

bool has_type(const Value& value) { return value.shape.has_value() && value.dtype != DType::kUndefined; }

Step::Kind kind_of(const Graph& graph, const Node& node) {
  static constexpr std::string_view kViews[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
  const bool typed = std::all_of(node.outputs.begin(), node.outputs.end(),
                                 [&](ValueId id) { return !id.valid() || has_type(graph.value(id)); });
  if (!typed) return Step::Kind::kInferred;
  const bool view = std::find(std::begin(kViews), std::end(kViews), node.op) != std::end(kViews);
  return view && node.outputs.size() == 1 && !node.inputs.empty() && node.inputs[0].valid() ? Step::Kind::kView
                                                                                            : Step::Kind::kKernel;
}

std::unique_ptr<cpu::NodeMemory> memory_of(const Graph& graph, const Node& node) {
  std::vector<bool> constants;
  for (const ValueId id : node.inputs) {
    if (id.valid() && !has_type(graph.value(id))) return nullptr;
    constants.push_back(graph.constant(id) != nullptr);
  }
  return std::make_unique<cpu::NodeMemory>(std::move(constants));
}

// Room in the arena for what is alive: each block takes the smallest gap that holds it.
class Room {
 public:
  std::optional<int64_t> take(int64_t bytes) {
    int64_t best = -1;
    int64_t best_gap = INT64_MAX;
    size_t before = 0;
    int64_t end = 0;
    for (size_t i = 0; i <= taken_.size(); ++i) {
      const int64_t gap = (i < taken_.size() ? taken_[i].offset : std::max(size_, end)) - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
        before = i;
      }
      if (i < taken_.size()) end = taken_[i].offset + taken_[i].bytes;
    }
    if (best < 0) {
      best = end;
      before = taken_.size();
    }
    const auto last = checked_add(best, bytes);
    if (!last) return std::nullopt;
    size_ = std::max(size_, *last);
    taken_.insert(taken_.begin() + static_cast<std::ptrdiff_t>(before), {best, bytes});
    return best;
  }

  void give_back(int64_t offset) {
    std::erase_if(taken_, [&](const Block& b) { return b.offset == offset; });
  }

  int64_t size() const { return size_; }

 private:
  struct Block {
    int64_t offset, bytes;
  };
  std::vector<Block> taken_;  // by offset
  int64_t size_ = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, Schedule& schedule, size_t slots)
      : graph_(graph), schedule_(schedule), last_use_(slots, kNever), escapes_(slots, false) {
    schedule_.places.resize(slots);
    for (const ValueId id : graph.values()) {
      place(id).root = id;
      if (graph.constant(id) != nullptr) place(id).where = Place::Where::kConstant;
    }
    for (const ValueId id : graph.inputs()) place(id).where = Place::Where::kHeld;
  }

  Status run() {
    find_lifetimes();
    std::vector<std::vector<ValueId>> dies(schedule_.steps.size());
    for (const ValueId id : graph_.values()) {
      const size_t last = last_use_[id.index];
      if (place(id).root == id && last != kNever && !escapes_[id.index]) dies[last].push_back(id);
    }
    Room room;
    for (size_t i = 0; i < schedule_.steps.size(); ++i) {
      Step& step = schedule_.steps[i];
      for (const ValueId id : step.unit.node->outputs) {
        if (id.valid()) OPENRKNN_CHECK_OK(settle(step, id, room));
      }
      for (const ValueId id : dies[i]) {
        if (place(id).where == Place::Where::kArena) room.give_back(place(id).offset);
        if (place(id).where == Place::Where::kHeld && !graph_.is_input(id)) step.dies.push_back(id);
      }
    }
    schedule_.arena_bytes = room.size();
    for (const ValueId id : graph_.values()) {
      if (place(id).where == Place::Where::kHeld) schedule_.held.push_back(id);
    }
    return {};
  }

 private:
  Place& place(ValueId id) { return schedule_.places[id.index]; }

  // Of roots: a view is a use of what it shows.
  void find_lifetimes() {
    for (size_t i = 0; i < schedule_.steps.size(); ++i) {
      const Node& node = *schedule_.steps[i].unit.node;
      if (schedule_.steps[i].kind == Step::Kind::kView) place(node.outputs[0]).root = place(node.inputs[0]).root;
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (const ValueId id : *ids) {
          if (id.valid()) last_use_[place(id).root.index] = i;
        }
      }
    }
    for (const ValueId id : graph_.outputs()) escapes_[place(id).root.index] = true;
  }

  Status settle(const Step& step, ValueId id, Room& room) {
    Place& at = place(id);
    if (step.kind == Step::Kind::kView) return {};
    at.where = Place::Where::kHeld;
    if (step.kind == Step::Kind::kInferred) return {};
    const Value& value = graph_.value(id);
    const auto bytes = checked_mul(value.shape->elements(), static_cast<int64_t>(dtype_size(value.dtype)));
    const auto padded = bytes ? checked_add(*bytes, kAlignment) : std::nullopt;
    const auto results = padded ? checked_add(schedule_.result_bytes, *padded) : std::nullopt;
    if (escapes_[id.index] && results) {
      at.where = Place::Where::kResult;
      schedule_.result_bytes = *results;
      return {};
    }
    at.where = Place::Where::kArena;
    const auto offset = padded ? room.take(*padded / kAlignment * kAlignment) : std::nullopt;
    if (!offset) {
      return Error{ErrorCode::kResource, "cannot run the graph", graph_.source_file,
                   "its tensors take more bytes than can be counted", "use a smaller model or input"};
    }
    at.offset = *offset;
    return {};
  }

  const Graph& graph_;
  Schedule& schedule_;
  std::vector<size_t> last_use_;  // by root
  std::vector<bool> escapes_;     // by root: some graph output shows it
};

}  // namespace

Result<Schedule> make_schedule(const Graph& graph, std::vector<Unit> units, size_t slots, bool keeps) {
  Schedule made;
  for (Unit& unit : units) {
    Step step;
    step.kind = kind_of(graph, *unit.node);
    if (keeps && step.kind == Step::Kind::kKernel) step.memory = memory_of(graph, *unit.node);
    step.unit = std::move(unit);
    made.steps.push_back(std::move(step));
  }
  OPENRKNN_CHECK_OK(Planner(graph, made, slots).run());
  return made;
}

}  // namespace openrknn::eval
