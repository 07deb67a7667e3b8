// Operands as a damaged file may hold them: every operator answers with results or an error, never with a crash. Built
// with sanitizers this finds accesses outside a tensor.
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

}  // namespace
}  // namespace openrknn::ops::test
