#include "kernels/strided.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "kernels/transpose.hpp"

namespace openrknn {
namespace {

constexpr int64_t kTile = 32;             // 32 x 32 elements of source and destination stay in the L1 cache
constexpr int64_t kBytesPerTask = 65536;  // below this a thread costs more than it saves

struct Offsets {
  int64_t from = 0;
  int64_t to = 0;
};

int64_t iterations(const std::vector<StridedLoop>& loops) {
  int64_t n = 1;
  for (const StridedLoop& l : loops) n *= l.extent;
  return n;
}

Offsets offsets_of(const std::vector<StridedLoop>& loops, int64_t index) {
  Offsets o;
  for (size_t i = loops.size(); i-- > 0;) {
    const int64_t at = index % loops[i].extent;
    index /= loops[i].extent;
    o.from += at * loops[i].from;
    o.to += at * loops[i].to;
  }
  return o;
}

// The offsets of one iteration after another, without dividing.
class Walk {
 public:
  Walk(const std::vector<StridedLoop>& loops, int64_t index)
      : loops_(loops), counts_(loops.size()), at_(offsets_of(loops, index)) {
    for (size_t i = loops.size(); i-- > 0;) {
      counts_[i] = index % loops[i].extent;
      index /= loops[i].extent;
    }
  }

  const Offsets& at() const { return at_; }
  void next() {
    for (size_t i = loops_.size(); i-- > 0;) {
      at_.from += loops_[i].from;
      at_.to += loops_[i].to;
      if (++counts_[i] < loops_[i].extent) return;
      at_.from -= counts_[i] * loops_[i].from;
      at_.to -= counts_[i] * loops_[i].to;
      counts_[i] = 0;
    }
  }

 private:
  const std::vector<StridedLoop>& loops_;
  std::vector<int64_t> counts_;
  Offsets at_;
};

int64_t grain_for(int64_t bytes) { return std::max<int64_t>(1, kBytesPerTask / std::max<int64_t>(bytes, 1)); }

template <typename T>
void copy_row(const T* from, T* to, const StridedLoop& row) {
  if (row.from == 1 && row.to == 1) {
    std::memcpy(to, from, static_cast<size_t>(row.extent) * sizeof(T));
  } else if (row.from == 0 && row.to == 1) {
    std::fill_n(to, row.extent, *from);
  } else {
    for (int64_t i = 0; i < row.extent; ++i) to[i * row.to] = from[i * row.from];
  }
}

template <typename T>
void copy_rows(const T* from, T* to, std::vector<StridedLoop> outer) {
  const StridedLoop row = outer.back();
  outer.pop_back();
  const int64_t bytes = row.extent * static_cast<int64_t>(sizeof(T));
  parallel_for(iterations(outer), grain_for(bytes), [&](int64_t begin, int64_t end) {
    Walk walk(outer, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) copy_row(from + walk.at().from, to + walk.at().to, row);
  });
}

// The source runs on along loop `contiguous`, the destination along the last one: tile by tile.
template <typename T>
void copy_transposed(const T* from, T* to, std::vector<StridedLoop> outer, size_t contiguous) {
  const StridedLoop inner = outer.back();
  const StridedLoop across = outer[contiguous];
  outer.pop_back();
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(contiguous));
  const int64_t bands = ceil_div(across.extent, kTile);
  const int64_t bytes = kTile * inner.extent * static_cast<int64_t>(sizeof(T));
  parallel_for(iterations(outer) * bands, grain_for(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Offsets o = offsets_of(outer, i / bands);
      const int64_t a0 = i % bands * kTile;
      const int64_t a1 = std::min(a0 + kTile, across.extent);
      if (inner.to == 1) {
        constexpr auto kSize = static_cast<int64_t>(sizeof(T));
        transpose_matrix(from + o.from + a0, inner.from * kSize, inner.extent, a1 - a0, to + o.to + a0 * across.to,
                         across.to * kSize, sizeof(T));
        continue;
      }
      for (int64_t b0 = 0; b0 < inner.extent; b0 += kTile) {
        const int64_t b1 = std::min(b0 + kTile, inner.extent);
        for (int64_t a = a0; a < a1; ++a) {
          const T* source = from + o.from + a * across.from;
          T* target = to + o.to + a * across.to;
          for (int64_t b = b0; b < b1; ++b) target[b * inner.to] = source[b * inner.from];
        }
      }
    }
  });
}

template <typename T>
void copy_typed(const void* from, void* to, const std::vector<StridedLoop>& loops) {
  const auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(to);
  const StridedLoop& inner = loops.back();
  if (inner.from != 0 && inner.from != 1) {
    for (size_t i = 0; i + 1 < loops.size(); ++i) {
      if (loops[i].from == 1 && loops[i].extent >= 4) return copy_transposed(source, target, loops, i);
    }
  }
  copy_rows(source, target, loops);
}

// How often a table repeats every position in turn, 0, 0, 1, 1, ...; 0 for any other.
int64_t repeats_of(const std::vector<int64_t>& table) {
  const auto times = std::find_if(table.begin(), table.end(), [](int64_t i) { return i != 0; }) - table.begin();
  for (size_t i = 0; i < table.size(); ++i) {
    if (times == 0 || table[i] != static_cast<int64_t>(i) / times) return 0;
  }
  return times;
}

template <typename T>
void copy_row_by_table(const T* from, T* to, const std::vector<int64_t>& table, int64_t repeats) {
  const auto width = static_cast<int64_t>(table.size());
  if (repeats == 2) {
    for (int64_t i = 0; i < width / 2; ++i) {
      to[2 * i] = from[i];
      to[2 * i + 1] = from[i];
    }
    if (width % 2 != 0) to[width - 1] = from[width / 2];
  } else if (repeats > 2) {
    for (int64_t i = 0; i < width; i += repeats) std::fill_n(to + i, std::min(repeats, width - i), from[i / repeats]);
  } else {
    for (int64_t i = 0; i < width; ++i) to[i] = from[table[static_cast<size_t>(i)]];
  }
}

template <typename T>
void copy_tables_typed(const void* from, const Shape& shape, const std::vector<std::vector<int64_t>>& tables,
                       void* to) {
  const auto strides = shape.strides();
  const std::vector<int64_t>& row = tables.back();
  const auto width = static_cast<int64_t>(row.size());
  const int64_t repeats = repeats_of(row);
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tables.size(); ++i) rows *= static_cast<int64_t>(tables[i].size());
  parallel_for(rows, grain_for(width * static_cast<int64_t>(sizeof(T))), [&](int64_t begin, int64_t end) {
    int64_t before = -1;
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r;
      int64_t offset = 0;
      for (size_t i = tables.size() - 1; i-- > 0;) {
        const auto extent = static_cast<int64_t>(tables[i].size());
        offset += tables[i][static_cast<size_t>(rest % extent)] * strides[i];
        rest /= extent;
      }
      T* target = static_cast<T*>(to) + r * width;
      if (offset == before) {
        std::memcpy(target, target - width, static_cast<size_t>(width) * sizeof(T));
      } else {
        copy_row_by_table(static_cast<const T*>(from) + offset, target, row, repeats);
      }
      before = offset;
    }
  });
}

template <typename F>
void by_size(size_t element_size, F&& f) {
  switch (element_size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return;
  }
}

}  // namespace

std::vector<StridedLoop> simplified(const std::vector<StridedLoop>& loops) {
  std::vector<StridedLoop> kept;
  for (const StridedLoop& l : loops) {
    if (l.extent == 1) continue;
    if (!kept.empty() && kept.back().from == l.from * l.extent && kept.back().to == l.to * l.extent) {
      kept.back() = {kept.back().extent * l.extent, l.from, l.to};
    } else {
      kept.push_back(l);
    }
  }
  if (kept.empty()) kept.push_back({1, 1, 1});
  return kept;
}

void copy_strided(const void* from, void* to, const std::vector<StridedLoop>& loops, size_t element_size) {
  for (const StridedLoop& l : loops) {
    if (l.extent == 0) return;
  }
  const auto merged = simplified(loops);
  by_size(element_size, [&](auto tag) { copy_typed<decltype(tag)>(from, to, merged); });
}

void copy_by_tables(const void* from, const Shape& from_shape, const std::vector<std::vector<int64_t>>& tables,
                    void* to, size_t element_size) {
  if (tables.empty()) {
    std::memcpy(to, from, element_size);
    return;
  }
  by_size(element_size, [&](auto tag) { copy_tables_typed<decltype(tag)>(from, from_shape, tables, to); });
}

void fill_elements(void* to, int64_t count, const void* value, size_t element_size) {
  by_size(element_size, [&](auto tag) {
    decltype(tag) element;
    std::memcpy(&element, value, sizeof element);
    std::fill_n(static_cast<decltype(tag)*>(to), count, element);
  });
}

}  // namespace openrknn
