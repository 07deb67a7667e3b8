#include "plan/arena.hpp"

#include <algorithm>
#include <limits>

namespace openrknn::plan {

Arena::Arena(const std::vector<Request>& requests) : requests_(&requests), offsets_(requests.size(), 0) {
  by_address_.reserve(requests.size());
}

bool Arena::share_time(size_t a, size_t b) const {
  const Request& x = (*requests_)[a];
  const Request& y = (*requests_)[b];
  return x.first <= y.last && y.first <= x.last;
}

int64_t Arena::first_fit(size_t request) const {
  const int64_t need = (*requests_)[request].size;
  int64_t end = 0;
  for (size_t other : by_address_) {
    if (!share_time(request, other)) continue;
    if (offsets_[other] - end >= need) return end;
    end = std::max(end, offsets_[other] + (*requests_)[other].size);
  }
  return end;
}

int64_t Arena::closest_fit(size_t request) const {
  const int64_t need = (*requests_)[request].size;
  int64_t best = -1;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  const auto consider = [&](int64_t gap) {
    if (gap >= need && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
  };
  for (size_t other : by_address_) {
    if (!share_time(request, other)) continue;
    consider(offsets_[other] - end);
    end = std::max(end, offsets_[other] + (*requests_)[other].size);
  }
  consider(size_ - end);
  return best >= 0 ? best : end;
}

void Arena::place(size_t request, int64_t offset) {
  offsets_[request] = offset;
  const int64_t size = (*requests_)[request].size;
  size_ = std::max(size_, offset + size);
  if (size == 0) return;  // takes no room and meets nothing
  const auto at = std::upper_bound(by_address_.begin(), by_address_.end(), offset,
                                   [&](int64_t value, size_t other) { return value < offsets_[other]; });
  by_address_.insert(at, request);
}

bool Arena::collides(size_t request, int64_t offset, size_t other) const {
  if (!share_time(request, other)) return false;
  return offset < offsets_[other] + (*requests_)[other].size && offsets_[other] < offset + (*requests_)[request].size;
}

}  // namespace openrknn::plan
