#include "plan/search.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace openrknn::plan {
namespace {

class Search {
 public:
  Search(const std::vector<Request>& requests, const std::vector<size_t>& order, int64_t size)
      : requests_(requests), order_(order), size_(size), offsets_(requests.size(), 0), choices_(order.size()) {}

  bool run(int64_t budget) {
    size_t depth = 0;
    if (order_.empty()) return true;
    choices_[0] = candidates(0);
    while (true) {
      std::vector<int64_t>& open = choices_[depth];
      if (open.empty()) {
        if (depth == 0) return false;
        --depth;
        continue;
      }
      if (--budget < 0) return false;
      offsets_[order_[depth]] = open.back();
      open.pop_back();
      if (++depth == order_.size()) return true;
      choices_[depth] = candidates(depth);
    }
  }

  std::vector<int64_t> take_offsets() { return std::move(offsets_); }

 private:
  // Addresses for the request at `depth`, the best last: tight gaps first, the low end before the high end.
  std::vector<int64_t> candidates(size_t depth) {
    const Request& wanted = requests_[order_[depth]];
    std::vector<std::pair<int64_t, int64_t>> live;  // begin, end of the blocks placed before and still alive
    for (size_t d = 0; d < depth; ++d) {
      const Request& other = requests_[order_[d]];
      if (other.size > 0 && other.last >= wanted.first) {
        live.emplace_back(offsets_[order_[d]], offsets_[order_[d]] + other.size);
      }
    }
    std::sort(live.begin(), live.end());
    live.emplace_back(size_, size_);
    std::vector<std::pair<int64_t, int64_t>> gaps;  // bytes, address
    int64_t end = 0;
    for (const auto& [begin, stop] : live) {
      if (begin - end >= wanted.size) {
        gaps.emplace_back(begin - end, end);
        if (begin - end > wanted.size) gaps.emplace_back(begin - end, begin - wanted.size);
      }
      end = std::max(end, stop);
    }
    std::sort(gaps.begin(), gaps.end(), std::greater<>());
    std::vector<int64_t> out;
    for (const auto& [bytes, address] : gaps) out.push_back(address);
    return out;
  }

  const std::vector<Request>& requests_;
  const std::vector<size_t>& order_;
  int64_t size_;
  std::vector<int64_t> offsets_;
  std::vector<std::vector<int64_t>> choices_;
};

}  // namespace

std::optional<std::vector<int64_t>> fit_within(const std::vector<Request>& requests, const std::vector<size_t>& order,
                                               int64_t size, int64_t node_budget) {
  Search search(requests, order, size);
  if (!search.run(node_budget)) return std::nullopt;
  return search.take_offsets();
}

}  // namespace openrknn::plan
