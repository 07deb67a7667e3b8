#include "opt/random_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "ops/registry.hpp"

namespace openrknn::opt::testing {
namespace {

class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed) {
    graph_.name = "random";
    const int64_t channels = pick({3, 4, 8});
    const int64_t height = pick({6, 8, 9, 14, 16});
    values_.push_back(graph_.add_input("x", DType::kFloat32, Shape{1, channels, height, pick({6, 8, 12})}));
    const int64_t steps = 6 + static_cast<int64_t>(random_() % 14);
    for (int64_t i = 0; i < steps; ++i) step();
    finish();
  }
  Graph take() { return std::move(graph_); }

 private:
  int64_t pick(std::initializer_list<int64_t> values) { return *(values.begin() + random_() % values.size()); }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(random_() % 65536) / 65536.0F; }
  const Shape& shape(ValueId v) const { return *graph_.value(v).shape; }
  // Recent values more often than old ones.
  ValueId any() {
    const size_t n = values_.size();
    return values_[n - 1 - (chance(70) ? random_() % std::min<size_t>(n, 2) : random_() % n)];
  }
  ValueId constant(const Shape& dims, float low, float high) {
    Tensor tensor(DType::kFloat32, dims);
    for (float& v : tensor.mutable_as<float>()) v = uniform(low, high);
    return graph_.add_constant("c", tensor);
  }
  ValueId scalar(float v) { return graph_.add_constant("s", Tensor::scalar(v)); }
  ValueId ints(const std::vector<int64_t>& v) { return graph_.add_constant("i", Tensor::ints(v)); }
  ValueId add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    auto made = ops::add_node(graph_, op, "v", std::move(inputs), std::move(attributes));
    EXPECT_TRUE(made.ok()) << op << ": " << (made.ok() ? "" : made.error().message());
    return made.ok() ? (*made)[0] : values_[0];
  }
  static Attributes with(const char* name, std::vector<int64_t> v) {
    Attributes attributes;
    attributes.set(name, std::move(v));
    return attributes;
  }
  void push(ValueId v) {
    if (shape(v).rank() == 4 && shape(v).elements() > 0 && shape(v).elements() < 20000) values_.push_back(v);
  }

  void conv() {
    const ValueId x = any();
    const int64_t c = shape(x)[1];
    const int64_t k = std::min({pick({1, 1, 3, 2}), shape(x)[2], shape(x)[3]});
    const int64_t group = chance(25) ? c : (c % 2 == 0 && chance(15) ? 2 : 1);
    const int64_t m = group == c ? c : pick({4, 6, 8});
    Attributes attributes = with("kernel_shape", {k, k});
    attributes.set("group", Attribute(group));
    if (chance(25)) {
      attributes.set("auto_pad", "SAME_UPPER");
    } else if (chance(60)) {
      attributes.set("pads", std::vector<int64_t>{k / 2, k / 2, k / 2, (k - 1) / 2});
    }
    if (chance(20)) attributes.set("strides", std::vector<int64_t>{2, 1});
    const float bound = 1.7F / std::sqrt(static_cast<float>(c / group * k * k));
    std::vector<ValueId> inputs{x, constant(Shape{m, c / group, k, k}, -bound, bound)};
    if (chance(50)) inputs.push_back(constant(Shape{m}, -0.5F, 0.5F));
    push(add("Conv", inputs, attributes));
  }

  void deconv() {
    const ValueId x = any();
    const int64_t c = shape(x)[1];
    if (shape(x)[2] > 20 || c % 2 != 0) return;
    const int64_t group = pick({1, 2});
    Attributes attributes = with("strides", {2, 2});
    attributes.set("group", Attribute(group));
    push(add("ConvTranspose", {x, constant(Shape{c, 4 / group, 2, 2}, -0.4F, 0.4F)}, attributes));
  }

  void batchnorm() {
    const ValueId x = any();
    const Shape c{shape(x)[1]};
    push(add("BatchNormalization", {x, constant(c, 0.5F, 1.5F), constant(c, -0.5F, 0.5F), constant(c, -0.5F, 0.5F),
                                    constant(c, 0.5F, 2.0F)}));
  }

  void constant_arithmetic() {
    const ValueId x = any();
    const int64_t c = shape(x)[1];
    const Shape dims = chance(60) ? Shape{c, 1, 1} : (chance(50) ? Shape{} : Shape{1, 1, 1, shape(x)[3]});
    const char* op = std::array<const char*, 4>{"Add", "Sub", "Mul", "Div"}[random_() % 4];
    const bool shift = op[0] == 'A' || op[0] == 'S';
    const ValueId k = chance(10) ? scalar(shift ? 0.0F : 1.0F) : constant(dims, shift ? -1.0F : 0.5F, 1.5F);
    const bool first = chance(30) && op[0] != 'D';
    push(add(op, first ? std::vector<ValueId>{k, x} : std::vector<ValueId>{x, k}));
  }

  void pair() {
    const ValueId a = any();
    std::vector<ValueId> same;
    for (const ValueId v : values_) {
      if (shape(v) == shape(a)) same.push_back(v);
    }
    const ValueId b = same[random_() % same.size()];
    if (chance(20)) {
      push(add(chance(50) ? "Sum" : "Mean", {a, b, same[random_() % same.size()]}));
    } else {
      push(add(chance(70) ? "Add" : (chance(50) ? "Mul" : "Sub"), {a, b}));
    }
  }

  void activation() {
    const ValueId x = any();
    const Shape slope = chance(70) ? Shape{shape(x)[1], 1, 1} : Shape{1};
    switch (random_() % 9) {
      case 0:
      case 1:
        push(add("Relu", {x}));
        break;
      case 2:
        push(add("Clip", {x, scalar(-0.5F), chance(50) ? scalar(1.5F) : ValueId{}}));
        break;
      case 3:
        push(add("LeakyRelu", {x}));
        break;
      case 4:
        push(add("PRelu", {x, constant(slope, 0.1F, 0.4F)}));
        break;
      case 5:
        push(add(chance(50) ? "Sigmoid" : "Tanh", {x}));
        break;
      case 6:
        push(add(chance(50) ? "HardSigmoid" : "HardSwish", {x}));
        break;
      case 7:
        push(add(chance(50) ? "Elu" : "Softplus", {x}));
        break;
      default:
        push(add(chance(50) ? "Max" : "Min", {x, scalar(chance(50) ? 0.0F : 1.0F)}));
        break;
    }
  }

  ValueId relu6_of_x_plus_3(ValueId x) {
    return add("Clip", {add("Add", {x, scalar(3.0F)}), scalar(0.0F), scalar(6.0F)});
  }

  void spelled() {
    const ValueId x = any();
    const auto erf = [&] { return add("Erf", {add("Div", {x, scalar(1.41421356F)})}); };
    switch (random_() % 7) {
      case 0:
        push(add("Mul", {x, add("Sigmoid", {x})}));
        break;
      case 1:
        push(add("Mul", {relu6_of_x_plus_3(x), add("Div", {x, scalar(6.0F)})}));
        break;
      case 2:
        push(add("Div", {add("Mul", {x, relu6_of_x_plus_3(x)}), scalar(6.0F)}));
        break;
      case 3:
        push(add("Mul", {add("Mul", {x, add("Add", {erf(), scalar(1.0F)})}), scalar(0.5F)}));
        break;
      case 4:
        push(add("Mul", {x, add("Tanh", {add("Softplus", {x})})}));
        break;
      case 5:
        push(add("Max", {x, add("Mul", {x, scalar(0.125F)})}));
        break;
      default:
        push(add("Div", {relu6_of_x_plus_3(x), scalar(6.0F)}));
    }
  }

  void window() {
    const ValueId x = any();
    const int64_t h = shape(x)[2], w = shape(x)[3];
    if (chance(30)) {
      std::vector<ValueId> inputs{x, ints({0, 0, pick({0, 1}), 1, 0, 0, 1, pick({0, 1})})};
      if (chance(30)) inputs.push_back(scalar(chance(50) ? 0.0F : 1.0F));
      push(add("Pad", inputs));
      return;
    }
    const int64_t k = std::min({pick({2, 3, 9}), h, w});
    Attributes attributes = with("kernel_shape", {k, k});
    const int64_t s = pick({1, 2, k});
    attributes.set("strides", std::vector<int64_t>{s, s});
    if (chance(50) && k > 1) attributes.set("pads", std::vector<int64_t>{k / 2, k / 2, (k - 1) / 2, k / 2});
    const bool average = chance(50);
    if (average && chance(50)) attributes.set("count_include_pad", 1);
    push(add(average ? "AveragePool" : "MaxPool", {x}, attributes));
  }

  void reduction() {
    const ValueId x = any();
    switch (random_() % 5) {
      case 0:
        push(add("Mul", {x, add("Sigmoid", {add("GlobalAveragePool", {x})})}));
        break;
      case 1:
        push(add("Mul", {x, add("ReduceMean", {x, ints({1})})}));
        break;
      case 2:
        push(add("Add", {x, add("ReduceMean", {x, ints({-1, -2})})}));
        break;
      case 3:
        push(add("Add", {x, add("GlobalMaxPool", {x})}));
        break;
      default:
        push(add("Sub", {x, add("ReduceMax", {x, ints({2, 3})})}));
        break;
    }
  }

  void layernorm() {
    const ValueId x = any();
    const ValueId d = add("Sub", {x, add("ReduceMean", {x, ints({-1})})});
    const ValueId variance = add("ReduceMean", {add("Pow", {d, scalar(2.0F)}), ints({-1})});
    const ValueId y = add("Div", {d, add("Sqrt", {add("Add", {variance, scalar(0.1F)})})});
    const Shape tail{shape(x)[3]};
    push(chance(50) ? y : add("Add", {add("Mul", {y, constant(tail, 0.5F, 1.5F)}), constant(tail, -1.0F, 1.0F)}));
  }

  void transposed() {
    const ValueId x = any();
    ValueId t = add("Transpose", {x}, with("perm", {0, 2, 3, 1}));
    if (chance(60)) t = add("Add", {t, constant(Shape{shape(x)[1]}, -1.0F, 1.0F)});
    if (chance(30)) t = add("Softmax", {t});
    if (chance(60)) t = add("Relu", {t});
    push(add("Transpose", {t}, with("perm", {0, 3, 1, 2})));
  }

  void resize() {
    Attributes attributes;
    attributes.set("coordinate_transformation_mode", chance(50) ? "asymmetric" : "half_pixel");
    attributes.set("mode", chance(70) ? "nearest" : "linear");
    if (chance(70)) attributes.set("nearest_mode", "floor");
    const ValueId scales = graph_.add_constant("scales", Tensor::from(Shape{4}, std::vector<float>{1, 1, 2, 2}));
    push(add("Resize", {any(), ValueId{}, scales}, attributes));
  }

  void concat() {
    const ValueId x = any();
    std::vector<ValueId> parts{x};
    for (const ValueId v : values_) {
      const bool fits = shape(v)[2] == shape(x)[2] && shape(v)[3] == shape(x)[3] && shape(v)[1] < 12;
      if (fits && parts.size() < 3) parts.push_back(v);
    }
    Attributes axis;
    axis.set("axis", 1);
    push(add("Concat", parts, axis));
  }

  void movement() {
    const ValueId x = any();
    const Shape s = shape(x);
    switch (random_() % 10) {
      case 0:
      case 1:
        transposed();
        break;
      case 2:
        push(add("Transpose", {x}, with("perm", {0, 1, 3, 2})));
        break;
      case 3: {
        const ValueId flat = add("Relu", {add("Reshape", {x, ints({s[0], s[1], -1})})});
        push(add("Reshape", {flat, ints({0, 0, s[2], s[3]})}));
        break;
      }
      case 4:
        push(add("Squeeze", {add("Unsqueeze", {x, ints({2})}), ints({2})}));
        break;
      case 5:
        push(add(chance(50) ? "Identity" : "Dropout", {x}));
        break;
      case 6:
        push(add("Slice", {x, ints({0}), ints({1000}), ints({chance(50) ? 1 : 2})}));
        break;
      case 7:
        concat();
        break;
      case 8:
        resize();
        break;
      default:
        push(add("Reshape", {x, add("Shape", {x})}));
        break;
    }
  }

  void product() {
    const ValueId x = any();
    const Shape s = shape(x);
    if (chance(50)) {
      const ValueId flat = add("Reshape", {x, ints({s[0], s[1], -1})});
      const ValueId rows = add("Transpose", {flat}, with("perm", {0, 2, 1}));
      ValueId y = add("MatMul", {rows, constant(Shape{s[1], 4}, -0.5F, 0.5F)});
      if (chance(60)) y = add("Add", {constant(Shape{4}, -1.0F, 1.0F), y});
      y = add("Transpose", {y}, with("perm", {0, 2, 1}));
      push(add("Reshape", {y, ints({s[0], 4, s[2], s[3]})}));
      return;
    }
    if (s.elements() > 3000) return;
    Attributes attributes;
    attributes.set("transB", 1);
    attributes.set("alpha", Attribute(0.5F));
    const ValueId flat = add("Flatten", {x});
    const ValueId y = add(
        "Gemm", {flat, constant(Shape{6, shape(flat)[1]}, -0.2F, 0.2F), constant(Shape{6}, -0.5F, 0.5F)}, attributes);
    push(add("Unsqueeze", {add("Relu", {y}), ints({2, 3})}));
  }

  void step() {
    switch (random_() % 16) {
      case 0:
      case 1:
      case 2:
        conv();
        break;
      case 3:
        deconv();
        break;
      case 4:
        batchnorm();
        break;
      case 5:
      case 6:
        constant_arithmetic();
        break;
      case 7:
        pair();
        break;
      case 8:
      case 9:
        activation();
        break;
      case 10:
        spelled();
        break;
      case 11:
        window();
        break;
      case 12:
        reduction();
        break;
      case 13:
      case 14:
        movement();
        break;
      default:
        chance(30) ? layernorm() : product();
        break;
    }
  }

  // Everything that nobody reads is an output, and now and then something that is read.
  void finish() {
    for (const ValueId v : values_) {
      if (graph_.is_input(v)) continue;
      if (graph_.value(v).users.empty() || chance(8)) graph_.add_output(v);
    }
    if (graph_.outputs().empty()) graph_.add_output(add("Relu", {values_[0]}));
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

}  // namespace

Graph random_network(uint32_t seed) { return Network(seed).take(); }

}  // namespace openrknn::opt::testing
