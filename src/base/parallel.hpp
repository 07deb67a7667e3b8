// Work split over threads. A result never depends on the number of threads: every index writes its own output.
#pragma once

#include <cstdint>
#include <functional>

namespace openrknn {

// 0 = all cores. Set once by the program; results never depend on it.
void set_thread_count(int count);
int thread_count();

// Calls body(begin, end) over disjoint ranges that cover [0, count); ranges hold at least `grain` indices.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace openrknn
