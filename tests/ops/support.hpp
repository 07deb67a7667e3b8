// Evaluation of one operator in a test: operands in, results out, errors as failures.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "core/attributes.hpp"
#include "core/tensor.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace openrknn::ops::test {

inline Attributes attributes(std::initializer_list<std::pair<const char*, Attribute>> list) {
  Attributes made;
  for (const auto& [name, value] : list) made.set(name, value);
  return made;
}

inline std::vector<Tensor> run_all(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attrs = {},
                                   size_t outputs = 1) {
  auto results = evaluate(op, attrs, inputs, outputs);
  if (!results.ok()) {
    ADD_FAILURE() << op << ": " << results.error().message();
    return std::vector<Tensor>(outputs);
  }
  return *results;
}

inline Tensor run(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attrs = {}) {
  return run_all(op, inputs, attrs)[0];
}

// The message of the error that evaluation must give.
inline std::string error_of(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attrs = {},
                            size_t outputs = 1) {
  const auto results = evaluate(op, attrs, inputs, outputs);
  EXPECT_FALSE(results.ok()) << op << " did not fail";
  return results.ok() ? "" : results.error().message();
}

inline Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor::from(shape, values); }
inline Tensor int64s(const Shape& shape, const std::vector<int64_t>& values) { return Tensor::from(shape, values); }

// 0, 1, 2, ... of type T.
template <typename T = float>
Tensor iota(const Shape& shape) {
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), T{0});
  return Tensor::from(shape, values);
}

template <typename T = float>
std::vector<T> values(const Tensor& t) {
  if (t.dtype() != dtype_of<T>()) {
    ADD_FAILURE() << "result is " << dtype_name(t.dtype());
    return {};
  }
  const auto all = t.as<T>();
  return {all.begin(), all.end()};
}

inline std::vector<int64_t> dims(const Tensor& t) { return t.shape().to_vector(); }

}  // namespace openrknn::ops::test
