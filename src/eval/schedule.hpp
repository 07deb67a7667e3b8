// What a run does with which memory, decided once: the steps, their kernels, and where every value lies.
//
// Values of known shape that leave no run lie in one arena, at offsets chosen by their lifetimes. What has its shape
// from data, and inputs, are Tensors of their own ("held"), and so are results, whose memory serves again when nobody
// else holds it any more. Results of views (Reshape, ...) are the operand's bytes: operand and result die together.
#pragma once

#include <memory>
#include <vector>

#include "eval/fusion.hpp"
#include "ir/graph.hpp"
#include "kernels/cpu/registry.hpp"

namespace openrknn::eval {

struct Step {
  enum class Kind {
    kKernel,
    kView,      // the first operand under another shape: no element is touched
    kInferred,  // the shapes depend on data: they are inferred from the operands at hand
  };
  Unit unit;
  Kind kind = Kind::kKernel;
  std::unique_ptr<cpu::NodeMemory> memory;  // for kernels of nodes whose operands keep their shapes, in many runs
  std::vector<ValueId> dies;                // held tensors that no later step needs
};

struct Place {
  enum class Where { kNowhere, kConstant, kArena, kHeld, kResult };
  Where where = Where::kNowhere;
  int64_t offset = 0;  // in the arena
  ValueId root;        // whose bytes these are: the value itself, or what it is a view of
};

struct Schedule {
  std::vector<Step> steps;
  std::vector<Place> places;  // by value
  std::vector<ValueId> held;  // values of that place
  int64_t arena_bytes = 0;
  int64_t result_bytes = 0;
};

// `slots`: larger than the index of any value. `keeps`: kernels may keep plans and packed weights.
Result<Schedule> make_schedule(const Graph& graph, std::vector<Unit> units, size_t slots, bool keeps);

}  // namespace openrknn::eval
