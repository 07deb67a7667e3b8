#include "random_network.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/registry.hpp"

namespace openrknn::testing {
namespace {

class Builder {
 public:
  explicit Builder(uint32_t seed) : random_(seed) { graph_.source_file = "random" + std::to_string(seed); }

  Graph build(int nodes) {
    const int64_t channels = pick({1, 3, 4, 16, 20});
    pool_.push_back(graph_.add_input("x", DType::kFloat32, Shape{1, channels, 10 + number(14), 10 + number(14)}));
    for (int i = 0; i < nodes; ++i) step();
    graph_.add_output(pool_.back());
    for (const ValueId v : pool_) {
      if (graph_.value(v).users.empty() && !graph_.is_output(v) && !graph_.is_input(v)) graph_.add_output(v);
    }
    return std::move(graph_);
  }

 private:
  int64_t number(int below) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(below)); }
  int64_t pick(std::vector<int64_t> v) { return v[static_cast<size_t>(number(static_cast<int>(v.size())))]; }
  const Shape& shape(ValueId v) const { return *graph_.value(v).shape; }
  ValueId any() {
    return pool_[pool_.size() - 1 - static_cast<size_t>(number(static_cast<int>(std::min<size_t>(3, pool_.size()))))];
  }

  ValueId constant(const char* name, const Shape& s, double spread, double offset = 0) {
    Tensor t(DType::kFloat32, s);
    for (float& x : t.mutable_as<float>())
      x = static_cast<float>(offset + spread * (static_cast<double>(random_()) / 2147483648.0 - 1.0));
    return graph_.add_constant(name, std::move(t));
  }

  ValueId node(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    auto made = ops::add_node(graph_, op, "t" + std::to_string(count_++), std::move(inputs), std::move(attributes));
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? (*made)[0] : pool_[0];
  }

  ValueId conv(ValueId x) {
    const Shape s = shape(x);
    const bool depthwise = number(3) == 0;
    const bool grouped = !depthwise && s[1] % 2 == 0 && number(5) == 0;
    const int64_t group = depthwise ? s[1] : grouped ? 2 : 1;
    const int64_t out =
        depthwise ? s[1] : pick({8, 16, 24, 33, 70}) * group / (grouped ? 2 : 1) + (grouped ? pick({0, 0, 2}) : 0);
    const int64_t k = pick({1, 1, 3, 3, 5});
    const int64_t dilation = k == 3 ? pick({1, 1, 2}) : 1;
    const int64_t window = (k - 1) * dilation + 1;
    if (s[2] < window || s[3] < window) return x;
    const int64_t pad = number(static_cast<int>(window / 2 + 1));
    const int64_t rounded = grouped ? (out + 1) / 2 * 2 : out;
    Attributes a;
    a.set("kernel_shape", std::vector<int64_t>{k, k});
    a.set("group", group);
    a.set("dilations", std::vector<int64_t>{dilation, dilation});
    a.set("strides", std::vector<int64_t>{pick({1, 1, 2}), pick({1, 1, 2})});
    a.set("pads", std::vector<int64_t>{pad, pad, pad, pad});
    const int64_t fan = s[1] / group * k * k;
    std::vector<ValueId> inputs{x, constant("w", Shape{rounded, s[1] / group, k, k},
                                            std::sqrt(3.0 / static_cast<double>(fan)), number(4) == 0 ? 0.1 : 0.0)};
    if (number(3) != 0) inputs.push_back(constant("b", Shape{rounded}, 0.3));
    return node("Conv", std::move(inputs), std::move(a));
  }

  ValueId transposed(ValueId x) {
    const Shape s = shape(x);
    if (s[2] * 2 > 48 || s[3] * 2 > 48) return x;
    const int64_t k = pick({2, 3, 4});
    Attributes a;
    a.set("kernel_shape", std::vector<int64_t>{k, k});
    a.set("strides", std::vector<int64_t>{2, 2});
    a.set("pads", std::vector<int64_t>{k / 2 - (k == 2 ? 1 : 0), 0, 0, k / 2 - (k == 2 ? 1 : 0)});
    const bool depthwise = number(2) == 0;
    a.set("group", depthwise ? s[1] : int64_t{1});
    return node("ConvTranspose",
                {x, constant("wt", Shape{s[1], depthwise ? 1 : pick({8, 12}), k, k},
                             1.0 / std::sqrt(static_cast<double>(depthwise ? 4 : s[1] * 4)))},
                std::move(a));
  }

  ValueId pool(ValueId x) {
    const Shape s = shape(x);
    const int64_t k = pick({2, 3});
    if (s[2] < k + 1 || s[3] < k + 1) return x;
    Attributes a;
    a.set("kernel_shape", std::vector<int64_t>{k, k});
    a.set("strides", std::vector<int64_t>{pick({1, 2}), pick({1, 2})});
    const bool average = number(2) == 0;
    if (number(2) == 0) a.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    if (average) a.set("count_include_pad", int64_t{1});
    return node(average ? "AveragePool" : "MaxPool", {x}, std::move(a));
  }

  ValueId binary(ValueId x) {
    static constexpr const char* kOps[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const char* op = kOps[number(5)];
    for (const ValueId other : pool_) {
      if (other != x && shape(other) == shape(x) && number(2) == 0) return node(op, {x, other});
    }
    const Shape s = number(2) == 0 ? Shape{} : Shape{1, shape(x)[1], 1, 1};
    return node(op, {x, constant("c", s, 0.5, 0.8)});
  }

  ValueId unary(ValueId x) {
    static constexpr const char* kOps[] = {"Relu", "Sigmoid",  "Tanh",    "HardSwish",  "LeakyRelu",
                                           "Elu",  "Softplus", "exSwish", "HardSigmoid"};
    if (number(8) == 0) return node("PRelu", {x, constant("slope", Shape{shape(x)[1], 1, 1}, 0.2, 0.2)});
    if (number(8) == 0)
      return node("Clip", {x, graph_.add_constant("low", Tensor::scalar(0.0F)),
                           graph_.add_constant("high", Tensor::scalar(1.5F))});
    return node(kOps[number(9)], {x});
  }

  ValueId concat(ValueId x) {
    for (const ValueId other : pool_) {
      const Shape& a = shape(x);
      const Shape& b = shape(other);
      if (other == x || a[2] != b[2] || a[3] != b[3]) continue;
      Attributes axis;
      axis.set("axis", 1);
      return node("Concat", {x, other}, std::move(axis));
    }
    return x;
  }

  ValueId slice(ValueId x) {
    const int64_t c = shape(x)[1];
    if (c < 4) return x;
    const int64_t first = c > 16 && number(2) == 0 ? 16 : c / 4;
    return node("Slice",
                {x, graph_.add_constant("starts", Tensor::ints({first})),
                 graph_.add_constant("ends", Tensor::ints({c})), graph_.add_constant("axes", Tensor::ints({1}))});
  }

  void step() {
    const ValueId x = any();
    ValueId y = x;
    switch (number(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        y = conv(x);
        break;
      case 4:
        y = transposed(x);
        break;
      case 5:
        y = pool(x);
        break;
      case 6:
      case 7:
        y = binary(x);
        break;
      case 8:
      case 9:
        y = unary(x);
        break;
      case 10:
        y = concat(x);
        break;
      default:
        y = slice(x);
        break;
    }
    if (y != x) pool_.push_back(y);
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<ValueId> pool_;
  int count_ = 0;
};

}  // namespace

Graph random_network(uint32_t seed, int nodes) { return Builder(seed).build(nodes); }

}  // namespace openrknn::testing
