// How much memory all tensors of the process may take together: a small hostile or mistaken file may legally ask for
// terabytes, and an error is better than a machine that swaps.
#pragma once

#include <cstdint>

namespace openrknn {

constexpr int64_t kDefaultMemoryBudget = int64_t{8} << 30;

// Bytes; 0 or less: the default.
void set_memory_budget(int64_t bytes);
int64_t memory_budget();
// Counts bytes that are about to be allocated; false, and nothing counted, when the budget does not hold them.
bool reserve_memory(int64_t bytes);
void release_memory(int64_t bytes);

// Gives what has been freed back to the system. Between the phases of a build this is as much as the model's weights,
// which would count again in the next phase.
void return_free_memory();

}  // namespace openrknn
