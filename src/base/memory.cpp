#include "base/memory.hpp"

#include <atomic>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace openrknn {
namespace {

std::atomic<int64_t> budget{kDefaultMemoryBudget};
std::atomic<int64_t> in_use{0};

}  // namespace

void set_memory_budget(int64_t bytes) { budget = bytes > 0 ? bytes : kDefaultMemoryBudget; }

int64_t memory_budget() { return budget; }

bool reserve_memory(int64_t bytes) {
  if (in_use.fetch_add(bytes) + bytes <= budget) return true;
  in_use -= bytes;
  return false;
}

void release_memory(int64_t bytes) { in_use -= bytes; }

void return_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace openrknn
