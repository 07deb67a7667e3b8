// Operands as a damaged file may hold them: every operator answers with results or an error, never with a crash. Built
// with sanitizers this finds accesses outside a tensor.
#include <limits>
#include <random>

#include "kernels/cpu/registry.hpp"
#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool chance(int one_in) { return number(1, one_in) == 1; }

  Shape shape() {
    std::vector<int64_t> dims(static_cast<size_t>(number(0, 4)));
    for (int64_t& d : dims) d = chance(12) ? 0 : number(1, 5);
    return *Shape::make(dims);
  }

  // Mostly what operators want: float tensors, short integer vectors; sometimes anything else.
  Tensor tensor() {
    constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kInt64,  DType::kInt64,
                                DType::kInt32,   DType::kInt8,    DType::kBool,    DType::kFloat16};
    const DType dtype = kTypes[number(0, std::size(kTypes) - 1)];
    const bool vector = is_integer(dtype) && !chance(3);
    const Shape of = vector ? Shape{number(0, 4)} : chance(3) ? Shape{2, 4, 3, 3} : shape();
    std::vector<double> values(static_cast<size_t>(of.elements()));
    for (double& v : values) v = static_cast<double>(number(-3, 5));
    return cast(Tensor::from(of, values).view(), dtype);
  }

  Attribute attribute(const AttrSpec& spec) {
    constexpr const char* kWords[] = {"constant",   "reflect", "wrap", "edge", "linear",        "cubic",
                                      "SAME_UPPER", "VALID",   "Relu", "Clip", "align_corners", "tf_crop_and_resize",
                                      "asymmetric", "add",     "max",  "CRD",  "LEFT",          "tanh",
                                      "nonsense"};
    switch (spec.kind) {
      case AttrKind::kInt:
        return Attribute(chance(15) ? INT64_MIN : chance(15) ? INT64_MAX : number(-2, 4));
      case AttrKind::kFloat:
        return Attribute(static_cast<float>(number(-2, 4)) * 0.5F);
      case AttrKind::kString:
        return Attribute(std::string(kWords[number(0, std::size(kWords) - 1)]));
      case AttrKind::kInts: {
        std::vector<int64_t> v(static_cast<size_t>(number(0, 4)));
        for (int64_t& x : v) x = chance(30) ? INT64_MAX : number(-1, 3);
        return Attribute(v);
      }
      case AttrKind::kFloats:
        return Attribute(std::vector<float>{1.0F, 2.0F});
      case AttrKind::kStrings:
        return Attribute(std::vector<std::string>{"a"});
      default:
        return Attribute(tensor());
    }
  }

  Attributes attributes_of(const OpDef& def) {
    Attributes made;
    for (const AttrSpec& spec : def.attributes) {
      if (spec.required ? !chance(20) : chance(3)) made.set(spec.name, attribute(spec));
    }
    return made;
  }

  std::vector<Tensor> operands(const OpDef& def) {
    const int most = def.max_inputs < 0 ? 4 : def.max_inputs;
    std::vector<Tensor> made;
    for (int64_t i = number(def.min_inputs, std::max(most, def.min_inputs)); i > 0; --i) {
      const bool absent = static_cast<int>(made.size()) >= def.min_inputs && chance(4);
      const bool same = !made.empty() && made[0].defined() && chance(3);
      made.push_back(absent ? Tensor() : same ? made[0] : tensor());
    }
    return made;
  }

 private:
  std::mt19937 random_;
};

TEST(Hostile, EvaluationAnswersOrRefuses) {
  Generator g(2024);
  for (const OpDef& def : registry().all()) {
    int answered = 0;
    for (int round = 0; round < 300; ++round) {
      const auto operands = g.operands(def);
      const Attributes attrs = g.attributes_of(def);
      const auto outputs =
          static_cast<size_t>(def.max_outputs < 0 ? g.number(1, 3) : g.number(def.min_outputs, def.max_outputs));
      const auto results = evaluate(def.name, attrs, operands, outputs);
      if (results.ok()) ++answered;
      if (!results.ok()) {
        ASSERT_FALSE(results.error().message().empty()) << def.name;
      }
    }
    // The generator does reach the kernels, not only the checks before them.
    RecordProperty(std::string(def.name), answered);
  }
}

// A Program brings its own output shapes: a kernel must not trust that they fit its operands.
TEST(Hostile, KernelsCheckTheirResultsShape) {
  Generator g(77);
  for (const OpDef& def : registry().all()) {
    const cpu::Kernel kernel = cpu::kernels().find(def.name);
    ASSERT_NE(kernel, nullptr);
    for (int round = 0; round < 300; ++round) {
      const auto operands = g.operands(def);
      const Attributes attrs = g.attributes_of(def);
      std::vector<Tensor> results(
          static_cast<size_t>(def.max_outputs < 0 ? g.number(1, 3) : g.number(def.min_outputs, def.max_outputs)));
      std::vector<TensorView> inputs;
      std::vector<MutableTensorView> outputs;
      for (const Tensor& t : operands) inputs.push_back(t.view());
      for (Tensor& t : results) {
        t = !operands.empty() && operands[0].defined() && g.chance(2) ? Tensor(operands[0].dtype(), g.shape())
                                                                      : g.tensor();
        outputs.push_back(t.mutable_view());
      }
      const Status status = kernel({inputs, outputs, attrs});
      if (!status.ok()) {
        ASSERT_FALSE(status.error().message().empty()) << def.name;
      }
    }
  }
}

// Operands that fit, for operators whose checks the random ones above hardly ever pass.
struct Case {
  const char* op;
  std::vector<Tensor> operands;
  Attributes attributes;
  size_t outputs = 1;
};

Tensor ramp(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) * 0.25F - 0.75F;
  return Tensor::from(shape, values);
}

std::vector<Case> fitting_cases() {
  using I = std::vector<int64_t>;
  const auto number = [](int64_t v) { return Tensor::scalar(v); };
  const Tensor picture = ramp(Shape{1, 2, 4, 4});
  const Attributes heads = attributes({{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}});
  const Attributes window = attributes({{"kernel_shape", I{2, 2}}, {"strides", I{2, 2}}, {"pads", I{0, 0, 0, 0}}});
  return {
      {"GridSample",
       {picture, ramp(Shape{1, 3, 2, 2})},
       attributes({{"mode", "cubic"}, {"padding_mode", "reflection"}, {"align_corners", int64_t{0}}})},
      {"AffineGrid", {ramp(Shape{1, 2, 3}), Tensor::ints({1, 1, 3, 2})}, attributes({{"align_corners", int64_t{1}}})},
      {"RoiAlign",
       {picture, ramp(Shape{2, 4}), Tensor::ints({0, 0})},
       attributes({{"output_height", int64_t{2}}, {"output_width", int64_t{2}}, {"sampling_ratio", int64_t{0}}})},
      {"MaxRoiPool",
       {picture, Tensor(DType::kFloat32, Shape{2, 5})},
       attributes({{"pooled_shape", I{2, 2}}, {"spatial_scale", 1.0F}})},
      {"MaxUnpool",
       {ramp(Shape{1, 1, 2, 2}), Tensor::from(Shape{1, 1, 2, 2}, I{5, 7, 13, 15}), Tensor::ints({1, 1, 4, 5})},
       window},
      {"Col2Im",
       {ramp(Shape{1, 4, 4}), Tensor::ints({3, 3}), Tensor::ints({2, 2})},
       attributes({{"strides", I{1, 1}}, {"pads", I{0, 0, 0, 0}}, {"dilations", I{1, 1}}})},
      {"CenterCropPad", {picture, Tensor::ints({3, 6})}, attributes({{"axes", I{2, 3}}})},
      {"DeformConv",
       {picture, ramp(Shape{4, 1, 2, 2}), ramp(Shape{1, 8, 3, 3}), ramp(Shape{4}), ramp(Shape{1, 4, 3, 3})},
       attributes({{"group", int64_t{2}}, {"offset_group", int64_t{1}}, {"pads", I{0, 0, 0, 0}}})},
      {"Einsum", {ramp(Shape{2, 3}), ramp(Shape{3, 4})}, attributes({{"equation", "...j,jk"}})},
      {"NonMaxSuppression",
       {ramp(Shape{1, 5, 4}), ramp(Shape{1, 2, 5}), number(3), Tensor::scalar(0.5F), Tensor::scalar(-0.5F)},
       attributes({{"center_point_box", int64_t{1}}})},
      {"Unique", {ramp(Shape{3, 4})}, attributes({{"axis", int64_t{1}}, {"sorted", int64_t{0}}}), 4},
      {"Attention",
       {ramp(Shape{1, 3, 8}), ramp(Shape{1, 2, 4}), ramp(Shape{1, 2, 4}), ramp(Shape{3, 4}), ramp(Shape{1, 1, 2, 4}),
        ramp(Shape{1, 1, 2, 4}), Tensor::ints({3})},
       heads,
       4},
      {"RotaryEmbedding",
       {ramp(Shape{1, 3, 8}), ramp(Shape{5, 2}), ramp(Shape{5, 2}), Tensor::from(Shape{1, 3}, I{0, 4, 2})},
       attributes({{"num_heads", int64_t{2}}, {"rotary_embedding_dim", int64_t{4}}})},
      {"TensorScatter",
       {ramp(Shape{2, 4, 2}), ramp(Shape{2, 2, 2}), Tensor::ints({1, 2})},
       attributes({{"axis", int64_t{1}}, {"mode", "circular"}})},
      {"LinearAttention",
       {ramp(Shape{1, 3, 4}), ramp(Shape{1, 3, 2}), ramp(Shape{1, 3, 2}), ramp(Shape{1, 1, 2, 2}), ramp(Shape{1, 3, 2}),
        ramp(Shape{1, 3, 1})},
       heads,
       2},
      {"CausalConvWithState",
       {ramp(Shape{1, 2, 4}), ramp(Shape{2, 1, 3}), ramp(Shape{2}), ramp(Shape{1, 2, 2})},
       {},
       2},
      {"DFT", {ramp(Shape{2, 5, 2}), number(6), number(1)}, attributes({{"inverse", int64_t{1}}})},
      {"STFT", {ramp(Shape{1, 20, 1}), number(3), ramp(Shape{6}), number(6)}, attributes({{"onesided", int64_t{1}}})},
      {"MelWeightMatrix", {number(4), number(16), number(8000), Tensor::scalar(0.0F), Tensor::scalar(4000.0F)}, {}},
      {"SoftmaxCrossEntropyLoss",
       {ramp(Shape{2, 3, 2}), Tensor::from(Shape{2, 2}, I{0, 1, 2, 1}), ramp(Shape{3})},
       attributes({{"ignore_index", int64_t{1}}, {"reduction", "none"}}),
       2},
      {"RMSNormalization", {picture, ramp(Shape{4, 4})}, attributes({{"axis", int64_t{2}}})},
      {"MeanVarianceNormalization", {picture}, attributes({{"axes", I{0, 2, 3}}})},
  };
}

// One operand or attribute of a case changed.
class Mutator {
 public:
  explicit Mutator(Generator& g) : g_(g) {}

  void change(Case& c) {
    if (!c.attributes.empty() && g_.chance(2)) {
      change_attribute(c.attributes);
    } else {
      change_operand(c.operands[static_cast<size_t>(g_.number(0, static_cast<int64_t>(c.operands.size()) - 1))]);
    }
  }

 private:
  int64_t whole() {
    constexpr int64_t kValues[] = {-3, -2, -1, 0, 1, 2, 3, 5, 9, INT64_MIN, INT64_MAX, int64_t{1} << 40};
    return kValues[g_.number(0, std::size(kValues) - 1)];
  }

  void change_attribute(Attributes& attrs) {
    std::vector<std::string> names;
    for (const auto& [name, value] : attrs) names.push_back(name);
    const std::string& name = names[static_cast<size_t>(g_.number(0, static_cast<int64_t>(names.size()) - 1))];
    Attribute value = *attrs.find(name);
    if (auto* i = std::get_if<int64_t>(&value)) *i = whole();
    if (auto* f = std::get_if<float>(&value)) *f = g_.chance(2) ? 1e30F : std::numeric_limits<float>::quiet_NaN();
    if (auto* text = std::get_if<std::string>(&value)) *text = g_.chance(2) ? "" : *text + ",ii->...i";
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      if (list->empty() || g_.chance(3)) {
        list->push_back(whole());
      } else {
        (*list)[static_cast<size_t>(g_.number(0, static_cast<int64_t>(list->size()) - 1))] = whole();
      }
    }
    attrs.set(name, value);
  }

  void change_operand(Tensor& t) {
    if (!t.defined()) return;
    if (g_.chance(8)) {
      t = Tensor();
    } else if (g_.chance(3)) {
      std::vector<int64_t> dims = t.shape().to_vector();
      if (dims.empty() || g_.chance(4)) {
        dims.insert(dims.begin(), 1);
      } else {
        dims[static_cast<size_t>(g_.number(0, static_cast<int64_t>(dims.size()) - 1))] += g_.number(-1, 1);
      }
      const auto shape = Shape::make(dims);
      if (shape.ok()) t = Tensor(t.dtype(), *shape);
    } else if (g_.chance(5)) {
      t = cast(t.view(), g_.chance(2) ? DType::kFloat16 : DType::kInt32);
    } else if (t.elements() > 0) {
      const auto at = static_cast<size_t>(g_.number(0, t.elements() - 1));
      constexpr float kFloats[] = {1e30F, -1e30F, 1e9F, std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};
      if (t.dtype() == DType::kInt64) t.mutable_as<int64_t>()[at] = whole();
      if (t.dtype() == DType::kFloat32) t.mutable_as<float>()[at] = kFloats[g_.number(0, std::size(kFloats) - 1)];
    }
  }

  Generator& g_;
};

TEST(Hostile, NearlyFittingOperands) {
  Generator g(4711);
  Mutator mutator(g);
  for (const Case& fitting : fitting_cases()) {
    auto results = evaluate(fitting.op, fitting.attributes, fitting.operands, fitting.outputs);
    ASSERT_TRUE(results.ok()) << fitting.op << ": " << results.error().message();
    for (int round = 0; round < 400; ++round) {
      Case c = fitting;
      for (int64_t n = g.number(1, 3); n > 0; --n) mutator.change(c);
      const auto answer = evaluate(c.op, c.attributes, c.operands, c.outputs);
      if (!answer.ok()) {
        ASSERT_FALSE(answer.error().message().empty()) << c.op;
      }
      // The results of the case as it was: a kernel must see that they no longer fit.
      std::vector<TensorView> inputs;
      std::vector<MutableTensorView> outputs;
      for (const Tensor& t : c.operands) inputs.push_back(t.view());
      for (Tensor& t : *results) outputs.push_back(t.mutable_view());
      const Status status = cpu::kernels().find(c.op)({inputs, outputs, c.attributes});
      if (!status.ok()) {
        ASSERT_FALSE(status.error().message().empty()) << c.op;
      }
    }
  }
}

}  // namespace
}  // namespace openrknn::ops::test
