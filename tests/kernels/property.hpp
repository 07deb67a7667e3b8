// Properties of kernels over random cases, counted in one place by function and instruction set:
//   const Property kClamp({"rows.clamp"}, 300);
//   for (Cases c(kClamp, names); c.next();) { ... c.rng() ...; ASSERT_... }
// The environment says how much: OPENRKNN_CASES (of every property and instruction set; without it what each property
// says), OPENRKNN_SEED (another run of cases), OPENRKNN_CASE (this one alone: what a failure prints),
// OPENRKNN_CASES_CSV (a file that gets a line "function,isa,cases" for each).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace openrknn::testing {

// Random numbers of one case: seeding costs nothing.
class Rng {
 public:
  using result_type = uint32_t;
  explicit Rng(uint64_t seed) : state_(seed) {}
  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return UINT32_MAX; }
  uint64_t wide() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  uint32_t operator()() { return static_cast<uint32_t>(wide() >> 32); }

 private:
  uint64_t state_;
};

inline int64_t pick(Rng& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng.wide() % static_cast<uint64_t>(high - low + 1));
}
inline bool one_in(Rng& rng, uint32_t n) { return rng() % n == 0; }

// 0 to `most`: next to multiples of the vectors' widths, very few, or any.
int64_t any_extent(Rng& rng, int64_t most);
// A number of random bits up to `bits` with a random sign; now and then the ends of the range.
int64_t any_size(Rng& rng, int bits);
// Next to a multiple of half of 2^shift: ties of roundings and their neighbours.
int64_t near_tie(Rng& rng, int shift, int bits);
// Any bits: NaN with payloads, infinities, subnormals, zeros of both signs; or numbers of one size.
float any_float(Rng& rng);
uint16_t any_half(Rng& rng);
void fill(Rng& rng, std::span<int8_t> values);  // random, at the ends, or all the same

// Functions that a property is about: table members as "rows.clamp" (kernel_tables.hpp), others by their names.
class Property {
 public:
  // `usual`: cases where the environment does not say; never more than `most`.
  Property(std::initializer_list<const char*> functions, int64_t usual, int64_t most = INT64_MAX);
  int64_t usual, most;
  std::vector<std::string> functions;
};
// Those of all properties of the program.
std::vector<std::string> functions_with_properties();

// The loop over the cases of a property. It ends when a case fails, and says how to repeat that one.
class Cases {
 public:
  Cases(const Property& property, std::vector<std::string> isas);
  Cases(const Property& property, std::string isa) : Cases(property, std::vector{std::move(isa)}) {}
  Cases(const Cases&) = delete;
  Cases& operator=(const Cases&) = delete;
  ~Cases();

  bool next();
  // The present case does not count: there was nothing to compare.
  void skip() { skipped_ = true; }
  Rng& rng() { return rng_; }
  int64_t number() const { return number_; }

 private:
  const Property& property_;
  std::vector<std::string> isas_;
  int64_t wanted_, number_ = -1, counted_ = 0, only_;
  bool skipped_ = false;
  uint64_t seed_;
  Rng rng_{0};
};

// Memory whose values end (or begin) where nothing may be read: beyond what a kernel may touch it cannot touch.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  // To be called for every case: what take() gave is free again.
  void reset() { taken_ = 0; }
  template <typename T>
  std::span<T> take(Rng& rng, int64_t n) {
    const auto size = static_cast<size_t>(n);
    return {static_cast<T*>(place(rng, size * sizeof(T))), size};
  }
  template <typename T>
  std::span<T> copy(Rng& rng, const std::vector<T>& values) {
    const auto to = take<T>(rng, static_cast<int64_t>(values.size()));
    if (!values.empty()) std::memcpy(to.data(), values.data(), values.size() * sizeof(T));
    return to;
  }

 private:
  void* place(Rng& rng, size_t bytes);
  std::vector<uint8_t*> blocks_;
  size_t taken_ = 0;
};

// Equal bytes; floats: of two NaN any are equal with `any_nan`.
template <typename T>
::testing::AssertionResult same(std::span<const T> got, std::span<const T> want, bool any_nan = false) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " values for " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0) continue;
    if (any_nan && got[i] != got[i] && want[i] != want[i]) continue;
    return ::testing::AssertionFailure() << +got[i] << " for " << +want[i] << " at " << i << " of " << got.size();
  }
  return ::testing::AssertionSuccess();
}
template <typename A, typename B>
::testing::AssertionResult same_values(const A& got, const B& want, bool any_nan = false) {
  using T = typename A::value_type;
  return same<T>(std::span<const T>(got.data(), got.size()), std::span<const T>(want.data(), want.size()), any_nan);
}

}  // namespace openrknn::testing
