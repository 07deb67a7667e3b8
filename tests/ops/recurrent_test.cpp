// Recurrent layers: values of small cases, equalities between forms, and what is refused.
// tests/python/test_operators.py compares every option with onnxruntime.
#include <cmath>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using I = std::vector<int64_t>;

Tensor random_tensor(uint32_t seed, const Shape& shape) {
  std::mt19937 rng(seed);
  std::vector<float> v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = static_cast<float>(rng() % 20001) * 1e-4F - 1.0F;
  return Tensor::from(shape, v);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

TEST(Recurrent, OneStepOfEachCell) {
  const Tensor x = floats({1, 1, 1}, {2.0F});
  const Tensor h = floats({1, 1, 1}, {0.5F});
  // tanh(2 * 0.25 + 0.5 * -1 + 0.125 + 0.0625)
  const Tensor rnn = run("RNN", {x, floats({1, 1, 1}, {0.25F}), floats({1, 1, 1}, {-1.0F}),
                                 floats({1, 2}, {0.125F, 0.0625F}), Tensor(), h});
  EXPECT_NEAR(values(rnn)[0], std::tanh(0.1875), 1e-7);

  const Tensor w4 = floats({1, 4, 1}, {0.1F, 0.2F, 0.3F, 0.4F});
  const Tensor r4 = floats({1, 4, 1}, {0.5F, 0.6F, 0.7F, 0.8F});
  const auto lstm = run_all("LSTM", {x, w4, r4, Tensor(), Tensor(), h, floats({1, 1, 1}, {-0.75F})}, {}, 3);
  const double cell = sigmoid(0.6 + 0.35) * -0.75 + sigmoid(0.2 + 0.25) * std::tanh(0.8 + 0.4);
  EXPECT_NEAR(values(lstm[2])[0], cell, 1e-6);
  EXPECT_NEAR(values(lstm[1])[0], sigmoid(0.4 + 0.3) * std::tanh(cell), 1e-6);

  const Tensor w3 = floats({1, 3, 1}, {0.1F, 0.2F, 0.3F});
  const Tensor r3 = floats({1, 3, 1}, {0.5F, 0.6F, 0.7F});
  const Tensor gru = run("GRU", {x, w3, r3, Tensor(), Tensor(), h});
  const double update = sigmoid(0.2 + 0.25);
  const double hidden = std::tanh(0.6 + sigmoid(0.4 + 0.3) * 0.5 * 0.7);
  EXPECT_NEAR(values(gru)[0], (1 - update) * hidden + update * 0.5, 1e-6);
}

// [a, b, rest] -> [b, a, rest]
Tensor swapped(const Tensor& t) {
  return run("Transpose", {t}, attributes({{"perm", t.shape().rank() == 3 ? I{1, 0, 2} : I{2, 0, 1, 3}}}));
}

TEST(Recurrent, LayoutOneIsTheSameWithTheBatchInFront) {
  const Tensor x = random_tensor(1, {5, 3, 2}), w = random_tensor(2, {2, 16, 2}), r = random_tensor(3, {2, 16, 4});
  const Tensor h = random_tensor(4, {2, 3, 4}), c = random_tensor(5, {2, 3, 4});
  const auto plain = run_all("LSTM", {x, w, r, Tensor(), Tensor(), h, c},
                             attributes({{"direction", std::string("bidirectional")}}), 3);
  const auto batched = run_all("LSTM", {swapped(x), w, r, Tensor(), Tensor(), swapped(h), swapped(c)},
                               attributes({{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}}), 3);
  EXPECT_EQ(dims(batched[0]), (I{3, 5, 2, 4}));
  EXPECT_EQ(values(batched[0]), values(swapped(plain[0])));
  EXPECT_EQ(values(batched[1]), values(swapped(plain[1])));
  EXPECT_EQ(values(batched[2]), values(swapped(plain[2])));
}

// Long enough that the input products come in several pieces.
TEST(Recurrent, AStateFedBackContinuesTheSequence) {
  constexpr int64_t kSteps = 6000, kHidden = 64;
  const Tensor x = random_tensor(1, {kSteps, 1, 8});
  const Tensor w = random_tensor(2, {1, 3 * kHidden, 8}), r = random_tensor(3, {1, 3 * kHidden, kHidden});
  const auto whole = run_all("GRU", {x, w, r}, {}, 2);
  const auto part = [&](int64_t from, int64_t to) {
    return run("Slice", {x, Tensor::ints({from}), Tensor::ints({to}), Tensor::ints({0})});
  };
  const auto first = run_all("GRU", {part(0, 1001), w, r}, {}, 2);
  const auto second = run_all("GRU", {part(1001, kSteps), w, r, Tensor(), Tensor(), first[1]}, {}, 2);
  EXPECT_EQ(values(second[1]), values(whole[1]));
}

TEST(Recurrent, ShapesAndAbsentResults) {
  const Tensor x = random_tensor(1, {5, 3, 2}), w = random_tensor(2, {1, 12, 2}), r = random_tensor(3, {1, 12, 4});
  const auto results = run_all("GRU", {x, w, r}, attributes({{"hidden_size", int64_t{4}}}), 2);
  EXPECT_EQ(dims(results[0]), (I{5, 1, 3, 4}));
  EXPECT_EQ(dims(results[1]), (I{1, 3, 4}));
  const auto empty = run_all("GRU", {random_tensor(1, {0, 3, 2}), w, r}, {}, 2);
  EXPECT_EQ(dims(empty[0]), (I{0, 1, 3, 4}));
  EXPECT_EQ(values(empty[1]), std::vector<float>(12, 0.0F));
  const int64_t huge = int64_t{1} << 40;  // entries that hold nothing
  const auto hollow = run_all(
      "RNN",
      {Tensor(DType::kFloat32, {0, huge, 0}), Tensor(DType::kFloat32, {1, 0, 0}), Tensor(DType::kFloat32, {1, 0, 0})},
      {}, 2);
  EXPECT_EQ(dims(hollow[1]), (I{1, huge, 0}));
}

TEST(Recurrent, Refuses) {
  const Tensor x = random_tensor(1, {5, 3, 2}), w = random_tensor(2, {1, 12, 2}), r = random_tensor(3, {1, 12, 4});
  const auto message = [&](std::vector<Tensor> operands, const Attributes& attrs = {}) {
    return error_of("GRU", operands, attrs);
  };
  using std::string;
  EXPECT_NE(message({x, w, r}, attributes({{"direction", string("up")}})).find("'up' is no direction"), string::npos);
  EXPECT_NE(message({x, w, r}, attributes({{"direction", string("bidirectional")}})).find("operand 2"), string::npos);
  EXPECT_NE(message({x, w, r}, attributes({{"hidden_size", int64_t{5}}})).find("hidden_size"), string::npos);
  EXPECT_NE(message({x, w, r}, attributes({{"layout", int64_t{2}}})).find("layout"), string::npos);
  EXPECT_NE(message({x, w, r}, attributes({{"clip", -1.0F}})).find("clip"), string::npos);
  EXPECT_NE(message({x, w, random_tensor(3, {1, 13, 4})}).find("operand 2"), string::npos);
  EXPECT_NE(message({x, random_tensor(2, {1, 12, 3}), r}).find("the weights have shape [1, 12, 3]"), string::npos);
  EXPECT_NE(message({x, w, r, random_tensor(4, {1, 12})}).find("the biases"), string::npos);
  EXPECT_NE(
      message({x, w, r, Tensor(), Tensor::from<int32_t>({3}, std::vector<int32_t>{6, 1, 1})}).find("a sequence of 6"),
      string::npos);
  const auto functions = [&](std::vector<string> names) {
    return message({x, w, r}, attributes({{"activations", names}}));
  };
  EXPECT_NE(functions({"Sigmoid"}).find("1 names, 2 needed"), string::npos);
  EXPECT_NE(functions({"Sigmoid", "Gelu"}).find("'Gelu' is no activation"), string::npos);
  EXPECT_NE(functions({"Sigmoid", "Affine"}).find("Affine needs values"), string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
