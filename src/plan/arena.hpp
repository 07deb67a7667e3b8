// Blocks placed so far on the plane of time and address: the geometry under every strategy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/planner.hpp"

namespace openrknn::plan {

class Arena {
 public:
  // `requests` must outlive the arena; their sizes are already multiples of the alignment.
  explicit Arena(const std::vector<Request>& requests);

  // The lowest address where the request fits.
  int64_t first_fit(size_t request) const;
  // The start of the free gap nearest in size, gaps counted inside the range opened so far; when none is large enough,
  // the address behind the last conflicting block, so that the range grows (sdk.md 4.4).
  int64_t closest_fit(size_t request) const;
  void place(size_t request, int64_t offset);
  // Would the request, at `offset`, meet the placed block `other`?
  bool collides(size_t request, int64_t offset, size_t other) const;
  int64_t offset(size_t request) const { return offsets_[request]; }
  int64_t size() const { return size_; }

 private:
  bool share_time(size_t a, size_t b) const;

  const std::vector<Request>* requests_;
  std::vector<int64_t> offsets_;
  std::vector<size_t> by_address_;  // placed requests, by offset
  int64_t size_ = 0;
};

}  // namespace openrknn::plan
