#include "plan/exhaustive.hpp"

#include <algorithm>
#include <unordered_set>

namespace openrknn::plan {
namespace {

// A request over the steps at which something starts: between them nothing is added.
struct Block {
  size_t request = 0;
  int64_t size = 0;
  size_t first = 0, last = 0;
};

class Exhaustive {
 public:
  Exhaustive(const std::vector<Request>& requests, int64_t size, int64_t budget) : size_(size), budget_(budget) {
    std::vector<int> starts;
    for (const Request& r : requests) {
      if (r.size > 0) starts.push_back(r.first);
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    const auto index = [&](auto it) { return static_cast<size_t>(it - starts.begin()); };
    for (size_t i = 0; i < requests.size(); ++i) {
      const Request& r = requests[i];
      if (r.size == 0) continue;
      blocks_.push_back({i, r.size, index(std::lower_bound(starts.begin(), starts.end(), r.first)),
                         index(std::upper_bound(starts.begin(), starts.end(), r.last)) - 1});
    }
    // Large blocks first: equal offsets are tried in this order.
    std::stable_sort(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.size > b.size; });
    height_.assign(starts.size(), 0);
    remaining_.assign(starts.size(), 0);
    for (const Block& b : blocks_) {
      for (size_t t = b.first; t <= b.last; ++t) remaining_[t] += b.size;
    }
    placed_.assign(blocks_.size(), false);
    offsets_.assign(blocks_.size(), 0);
  }

  Exhausted run(size_t requests) {
    Exhausted out;
    out.verdict = descend(blocks_.size(), 0, 0);
    if (out.verdict != Verdict::kFound) return out;
    out.offsets.assign(requests, 0);
    for (size_t i = 0; i < blocks_.size(); ++i) out.offsets[blocks_[i].request] = offsets_[i];
    return out;
  }

 private:
  int64_t support(const Block& b) const {
    return *std::max_element(height_.begin() + static_cast<std::ptrdiff_t>(b.first),
                             height_.begin() + static_cast<std::ptrdiff_t>(b.last) + 1);
  }

  // Blocks that may come next, lowest first; nothing when what is open cannot fit. Later blocks lie at `floor` or
  // above, those at `floor` itself behind the block `from`.
  bool candidates(int64_t floor, size_t from, std::vector<std::pair<int64_t, size_t>>& next) const {
    std::vector<int64_t> least(height_.size(), size_ + 1);  // where the lowest open block over a step can begin
    int64_t lowest_top = size_ + 1;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (placed_[i]) continue;
      const Block& b = blocks_[i];
      const int64_t under = support(b);
      lowest_top = std::min(lowest_top, under + b.size);
      const int64_t begin = std::max(under, floor);
      for (size_t t = b.first; t <= b.last; ++t) least[t] = std::min(least[t], begin);
      if (under > floor || (under == floor && i >= from)) next.emplace_back(under, i);
    }
    for (size_t t = 0; t < height_.size(); ++t) {
      if (remaining_[t] > 0 && least[t] + remaining_[t] > size_) return false;
    }
    std::erase_if(next, [&](const auto& c) { return c.first >= lowest_top; });
    std::sort(next.begin(), next.end());
    return true;
  }

  uint64_t state(int64_t floor, size_t from) const {
    uint64_t h = 0x9E3779B97F4A7C15U;
    const auto mix = [&h](uint64_t v) {
      h ^= v + 0x9E3779B97F4A7C15U + (h << 6) + (h >> 2);
      h *= 0xBF58476D1CE4E5B9U;
      h ^= h >> 29;
    };
    mix(static_cast<uint64_t>(floor));
    mix(from);
    for (size_t i = 0; i < placed_.size(); ++i) {
      if (placed_[i]) mix(i);
    }
    for (size_t t = 0; t < height_.size(); ++t) mix(remaining_[t] > 0 ? static_cast<uint64_t>(height_[t]) : 0);
    return h;
  }

  Verdict descend(size_t open, int64_t floor, size_t from) {
    if (open == 0) return Verdict::kFound;
    if (--budget_ < 0) return Verdict::kUnknown;
    const uint64_t key = state(floor, from);
    if (failed_.contains(key)) return Verdict::kImpossible;
    std::vector<std::pair<int64_t, size_t>> next;
    if (candidates(floor, from, next)) {
      for (const auto& [offset, i] : next) {
        const Block& b = blocks_[i];
        const std::vector<int64_t> kept(height_.begin() + static_cast<std::ptrdiff_t>(b.first),
                                        height_.begin() + static_cast<std::ptrdiff_t>(b.last) + 1);
        put(i, offset);
        const Verdict below = descend(open - 1, offset, i + 1);
        if (below != Verdict::kImpossible) return below;
        take_back(i, kept);
      }
    }
    failed_.insert(key);
    return Verdict::kImpossible;
  }

  void put(size_t i, int64_t offset) {
    const Block& b = blocks_[i];
    placed_[i] = true;
    offsets_[i] = offset;
    for (size_t t = b.first; t <= b.last; ++t) {
      height_[t] = offset + b.size;
      remaining_[t] -= b.size;
    }
  }

  void take_back(size_t i, const std::vector<int64_t>& heights) {
    const Block& b = blocks_[i];
    placed_[i] = false;
    for (size_t t = b.first; t <= b.last; ++t) {
      height_[t] = heights[t - b.first];
      remaining_[t] += b.size;
    }
  }

  int64_t size_;
  int64_t budget_;
  std::vector<Block> blocks_;
  std::vector<int64_t> height_;     // of what is placed, per step
  std::vector<int64_t> remaining_;  // bytes still to be placed, per step
  std::vector<bool> placed_;
  std::vector<int64_t> offsets_;
  std::unordered_set<uint64_t> failed_;
};

// The requests alive within [first, last], cut to it.
std::vector<Request> window(const std::vector<Request>& requests, int first, int last) {
  std::vector<Request> part;
  for (const Request& r : requests) {
    if (r.size > 0 && r.last >= first && r.first <= last) {
      part.push_back({r.size, std::max(r.first, first), std::min(r.last, last)});
    }
  }
  return part;
}

// Steps by the bytes alive, fullest first.
std::vector<std::pair<int64_t, int>> fullest_steps(const std::vector<Request>& requests) {
  std::vector<std::pair<int64_t, int>> steps;
  for (const Request& start : requests) {
    int64_t live = 0;
    for (const Request& r : requests) {
      if (r.first <= start.first && start.first <= r.last) live += r.size;
    }
    steps.emplace_back(live, start.first);
  }
  std::sort(steps.begin(), steps.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

}  // namespace

Exhausted exhaust(const std::vector<Request>& requests, int64_t size, int64_t node_budget) {
  return Exhaustive(requests, size, node_budget).run(requests.size());
}

bool impossible(const std::vector<Request>& requests, int64_t size, int64_t node_budget) {
  constexpr size_t kPeaks = 4;
  const auto steps = fullest_steps(requests);
  for (const int radius : {2, 4, 8, 16, 32}) {
    for (size_t i = 0; i < std::min(kPeaks, steps.size()); ++i) {
      const std::vector<Request> part = window(requests, steps[i].second - radius, steps[i].second + radius);
      if (exhaust(part, size, node_budget / 8).verdict == Verdict::kImpossible) return true;
    }
  }
  return false;
}

}  // namespace openrknn::plan
