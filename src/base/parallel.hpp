// Work split over threads. A result never depends on the number of threads: every index writes its own output.
#pragma once

#include <cstdint>
#include <functional>

namespace openrknn {

// 0 = all cores. Set once by the program; results never depend on it.
void set_thread_count(int count);
int thread_count();

// parallel_for for several threads.
void run_in_parallel(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

// Calls body(begin, end) over disjoint ranges that cover [0, count); ranges hold at least `grain` indices. Work that
// one thread does is a plain call: small networks consist of it.
template <typename Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  if (count <= 0) return;
  if (count <= grain || thread_count() == 1) {
    body(int64_t{0}, count);
  } else {
    run_in_parallel(count, grain, std::ref(body));
  }
}

}  // namespace openrknn
