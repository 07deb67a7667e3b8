// Runs a Program in both modes and holds what it did against expectations over row-major arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/half.hpp"
#include "model/builder.hpp"
#include "sim/machine.hpp"

namespace openrknn::sim::test {

using model::Program;
using model::Task;
using model::TaskKind;
using model::TensorDesc;
using model::test::Builder;
using model::test::Random;

// Every tensor of a run by its index, raw and row-major.
using Recording = std::map<int, Tensor>;

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// Runs the program; checks that strict mode and a second run give the same bytes.
inline void run_both(const Program& program, const Tensors& inputs, Recording& run) {
  const auto valid = model::validate(program);
  ASSERT_TRUE(valid.ok()) << valid.error().message();
  auto machine = Machine::load(program);
  ASSERT_TRUE(machine.ok()) << machine.error().message();
  RunOptions options;
  options.observer = [&](int id, const Tensor& t) { run[id] = t; };
  const auto fast = machine->run(inputs, options);
  ASSERT_TRUE(fast.ok()) << fast.error().message();
  Recording strict_run;
  options.strict = true;
  options.observer = [&](int id, const Tensor& t) { strict_run[id] = t; };
  const auto strict = machine->run(inputs, options);
  ASSERT_TRUE(strict.ok()) << strict.error().message();
  ASSERT_EQ(run.size(), strict_run.size());
  for (const auto& [id, t] : run) EXPECT_TRUE(same_bytes(t, strict_run[id])) << program.tensor(id).name;
  for (const auto& [name, t] : *fast) EXPECT_TRUE(same_bytes(t, strict->at(name))) << name;
  options.strict = false;
  options.observer = [&](int id, const Tensor& t) { EXPECT_TRUE(same_bytes(t, run[id])) << "second run"; };
  EXPECT_TRUE(machine->run(inputs, options).ok());
}

inline std::vector<int8_t> int8s(const Tensor& t) { return {t.as<int8_t>().begin(), t.as<int8_t>().end()}; }
inline std::vector<uint16_t> halves(const Tensor& t) { return {t.as<uint16_t>().begin(), t.as<uint16_t>().end()}; }

// p / 2^s to the nearest integer, ties to even; |p| < 2^53.
inline int64_t round_shift(int64_t p, int s) {
  return static_cast<int64_t>(std::nearbyint(std::ldexp(static_cast<double>(p), -s)));
}
inline int64_t saturate(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }
inline int64_t saturate8(int64_t x) { return saturate(x, -128, 127); }
inline int64_t saturate32(int64_t x) { return saturate(x, INT32_MIN, INT32_MAX); }

// Reals that quantize to int8 without an error.
inline Tensor random_int8_values(Random& random, const Shape& shape, float scale, int zero) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (auto& v : values) v = static_cast<float>(random.between(-128, 127) - zero) * scale;
  return Tensor::from<float>(shape, values);
}

inline Tensor random_half_values(Random& random, const Shape& shape, float magnitude) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (auto& v : values) v = half_to_float(float_to_half(random.real(-magnitude, magnitude)));
  return Tensor::from<float>(shape, values);
}

}  // namespace openrknn::sim::test
