#include "base/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <thread>

namespace openrknn {
namespace {

std::atomic<int>& setting() {
  static std::atomic<int> value{0};
  return value;
}

tbb::task_arena& arena() {
  static tbb::task_arena instance(thread_count());
  return instance;
}

}  // namespace

void set_thread_count(int count) { setting() = count; }

int thread_count() {
  const int wanted = setting();
  if (wanted > 0) return wanted;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

void run_in_parallel(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  const int threads = thread_count();
  if (arena().max_concurrency() != threads) {
    arena().terminate();
    arena().initialize(threads);
  }
  arena().execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(grain)),
                      [&](const tbb::blocked_range<int64_t>& range) { body(range.begin(), range.end()); });
  });
}

}  // namespace openrknn
