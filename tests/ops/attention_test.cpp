#include <cmath>
#include <limits>
#include <random>

#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;

Tensor random_tensor(uint32_t seed, const Shape& shape) {
  std::mt19937 rng(seed);
  F v(static_cast<size_t>(shape.elements()));
  for (float& x : v) x = static_cast<float>(rng() % 2001) * 1e-3F - 1.0F;
  return Tensor::from(shape, v);
}

double at(const Tensor& t, I index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset = offset * t.shape()[static_cast<int>(i)] + index[i];
  return static_cast<double>(t.as<float>()[static_cast<size_t>(offset)]);
}

// Weighted means by the formula; `counts` says which positions a query sees.
template <typename Counts>
void expect_attention(const Tensor& y, const Tensor& q, const Tensor& k, const Tensor& v, const Counts& counts) {
  const int64_t shared = q.shape()[1] / k.shape()[1];
  for (int64_t b = 0; b < q.shape()[0]; ++b) {
    for (int64_t h = 0; h < q.shape()[1]; ++h) {
      for (int64_t i = 0; i < q.shape()[2]; ++i) {
        double sum = 0.0;
        std::vector<double> mean(static_cast<size_t>(v.shape()[3]), 0.0);
        for (int64_t j = 0; j < k.shape()[2]; ++j) {
          if (!counts(b, i, j)) continue;
          double score = 0.0;
          for (int64_t d = 0; d < q.shape()[3]; ++d) score += at(q, {b, h, i, d}) * at(k, {b, h / shared, j, d});
          const double weight = std::exp(score / std::sqrt(static_cast<double>(q.shape()[3])));
          sum += weight;
          for (size_t d = 0; d < mean.size(); ++d)
            mean[d] += weight * at(v, {b, h / shared, j, static_cast<int64_t>(d)});
        }
        for (size_t d = 0; d < mean.size(); ++d) {
          const double expected = sum > 0.0 ? mean[d] / sum : 0.0;
          ASSERT_NEAR(at(y, {b, h, i, static_cast<int64_t>(d)}), expected, 2e-6) << b << h << i << d;
        }
      }
    }
  }
}

TEST(Attention, GroupsOfHeadsAndMasks) {
  const Tensor q = random_tensor(1, Shape{2, 4, 3, 8});
  const Tensor k = random_tensor(2, Shape{2, 2, 5, 8});
  const Tensor v = random_tensor(3, Shape{2, 2, 5, 6});
  const auto all = [](int64_t, int64_t, int64_t) { return true; };
  expect_attention(run("Attention", {q, k, v}), q, k, v, all);
  const auto causal = [](int64_t, int64_t i, int64_t j) { return j <= i; };
  expect_attention(run("Attention", {q, k, v}, attributes({{"is_causal", int64_t{1}}})), q, k, v, causal);
  // A mask that is shorter than the keys; the second query sees nothing.
  const Tensor flags =
      cast(Tensor::from(Shape{3, 4}, std::vector<uint8_t>{1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1}).view(), DType::kBool);
  const auto masked = [](int64_t, int64_t i, int64_t j) { return j < 4 && (i == 0 ? j != 1 : i == 2 && j > 0); };
  expect_attention(run("Attention", {q, k, v, flags}), q, k, v, masked);
  const auto valid = [](int64_t b, int64_t, int64_t j) { return j < (b == 0 ? 2 : 5); };
  expect_attention(run("Attention", {q, k, v, {}, {}, {}, Tensor::ints({2, 5})}), q, k, v, valid);
}

TEST(Attention, PastAndFlatOperands) {
  const Tensor q = random_tensor(1, Shape{1, 2, 2, 4});
  const Tensor k = random_tensor(2, Shape{1, 2, 5, 4});
  const Tensor v = random_tensor(3, Shape{1, 2, 5, 4});
  const Tensor two = Tensor::ints({2});
  const auto part = [&](const Tensor& t, const I& from, const I& to) {
    return run("Slice", {t, Tensor::ints(from), Tensor::ints(to), two});
  };
  const Attributes causal = attributes({{"is_causal", int64_t{1}}});
  const auto results = run_all(
      "Attention", {q, part(k, {3}, {5}), part(v, {3}, {5}), {}, part(k, {0}, {3}), part(v, {0}, {3})}, causal, 3);
  EXPECT_EQ(values(results[1]), values(k));
  EXPECT_EQ(values(results[2]), values(v));
  expect_attention(results[0], q, k, v, [](int64_t, int64_t i, int64_t j) { return j <= i + 3; });

  const auto flat = [](const Tensor& t) {
    const Tensor moved = run("Transpose", {t}, attributes({{"perm", I{0, 2, 1, 3}}}));
    return moved.reshaped(Shape{t.shape()[0], t.shape()[2], t.shape()[1] * t.shape()[3]});
  };
  const Tensor y = run("Attention", {flat(q), flat(k), flat(v)},
                       attributes({{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}}));
  EXPECT_EQ(values(y), values(flat(run("Attention", {q, k, v}))));
}

TEST(Attention, ScoresOfEveryStage) {
  const Tensor q = floats(Shape{1, 1, 1, 1}, {2});
  const Tensor k = floats(Shape{1, 1, 2, 1}, {1, 3});
  const Tensor v = floats(Shape{1, 1, 2, 1}, {10, 20});
  const Tensor bias = floats(Shape{1, 2}, {1, -std::numeric_limits<float>::infinity()});
  const auto scores = [&](int64_t mode) {
    const auto results = run_all("Attention", {q, k, v, bias},
                                 attributes({{"qk_matmul_output_mode", mode}, {"softcap", 4.0F}, {"scale", 0.5F}}), 4);
    EXPECT_EQ(values(results[0]), (F{10}));
    return values(results[3]);
  };
  EXPECT_EQ(scores(0), (F{1, 3}));
  EXPECT_FLOAT_EQ(scores(1)[1], 4.0F * std::tanh(0.75F));
  EXPECT_FLOAT_EQ(scores(2)[0], 4.0F * std::tanh(0.25F) + 1.0F);
  EXPECT_EQ(scores(3), (F{1, 0}));
}

TEST(Attention, Errors) {
  const Tensor q = iota(Shape{1, 2, 3, 4}), k = iota(Shape{1, 2, 5, 4});
  EXPECT_NE(error_of("Attention", {q, k, iota(Shape{1, 2, 4, 4})}).find("values"), std::string::npos);
  EXPECT_NE(error_of("Attention", {q, k, k, iota(Shape{2, 5})}).find("mask"), std::string::npos);
  EXPECT_NE(error_of("Attention", {q, k, k, {}, k}).find("past"), std::string::npos);
  const Tensor flat = iota(Shape{1, 3, 8});
  EXPECT_NE(error_of("Attention", {flat, flat, flat}).find("0 heads"), std::string::npos);
}

TEST(Rotary, TurnsPairs) {
  const Tensor x = floats(Shape{1, 1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
  // Position 0 of the caches turns by nothing, 1 by a quarter and a half turn.
  const Tensor cosines = floats(Shape{2, 2}, {1, 1, 0, -1}), sines = floats(Shape{2, 2}, {0, 0, 1, 0});
  const Tensor positions = Tensor::from(Shape{1, 2}, I{1, 0});
  EXPECT_EQ(values(run("RotaryEmbedding", {x, cosines, sines, positions})), (F{-3, -2, 1, -4, 1, 2, 3, 4}));
  EXPECT_EQ(values(run("RotaryEmbedding", {x, cosines, sines, positions}, attributes({{"interleaved", int64_t{1}}}))),
            (F{-2, 1, -3, -4, 1, 2, 3, 4}));
  const Tensor part = floats(Shape{1, 2, 1}, {0, 1});
  const Tensor turn = floats(Shape{1, 2, 1}, {1, 0});
  EXPECT_EQ(values(run("RotaryEmbedding", {x, part, turn}, attributes({{"rotary_embedding_dim", int64_t{2}}}))),
            (F{-2, 1, 3, 4, 1, 2, 3, 4}));
  const Tensor far = Tensor::from(Shape{1, 2}, I{0, 2});
  EXPECT_NE(error_of("RotaryEmbedding", {x, cosines, sines, far}).find("position 2"), std::string::npos);
  EXPECT_NE(error_of("RotaryEmbedding", {x, cosines, sines}).find("caches"), std::string::npos);
}

// Two steps of one operator are one step of it and the next with its state.
TEST(State, LinearAttentionInTwoParts) {
  const Tensor q = random_tensor(1, Shape{2, 6, 12}), k = random_tensor(2, Shape{2, 6, 6});
  const Tensor v = random_tensor(3, Shape{2, 6, 4}), decay = random_tensor(4, Shape{2, 6, 2});
  const Tensor rate = random_tensor(5, Shape{2, 6, 1});
  const auto part = [](const Tensor& t, int64_t from, int64_t to) {
    return run("Slice", {t, Tensor::ints({from}), Tensor::ints({to}), Tensor::ints({1})});
  };
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    const Attributes a = attributes({{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"update_rule", rule}});
    const auto whole = run_all("LinearAttention", {q, k, v, {}, decay, rate}, a, 2);
    Tensor state(DType::kFloat32, Shape{2, 2, 3, 2});
    for (const int64_t from : {0, 4}) {
      const int64_t to = from == 0 ? 4 : 6;
      const auto step = run_all(
          "LinearAttention",
          {part(q, from, to), part(k, from, to), part(v, from, to), state, part(decay, from, to), part(rate, from, to)},
          a, 2);
      const F expected = values(part(whole[0], from, to)), got = values(step[0]);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << rule << " " << i;
      state = step[1];
    }
  }
  EXPECT_NE(error_of("LinearAttention", {q, k, v},
                     attributes({{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"update_rule", "gated"}}))
                .find("decay"),
            std::string::npos);
}

TEST(State, CausalConvolution) {
  const Tensor x = floats(Shape{1, 1, 3}, {1, 2, 3});
  const Tensor w = floats(Shape{1, 1, 3}, {100, 10, 1});
  auto results = run_all("CausalConvWithState", {x, w}, {}, 2);
  EXPECT_EQ(values(results[0]), (F{1, 12, 123}));
  EXPECT_EQ(values(results[1]), (F{2, 3}));
  results =
      run_all("CausalConvWithState", {floats(Shape{1, 1, 1}, {4}), w, floats(Shape{1}, {0.5F}), results[1]}, {}, 2);
  EXPECT_EQ(values(results[0]), (F{234.5F}));
  EXPECT_EQ(values(results[1]), (F{3, 4}));
  EXPECT_NE(error_of("CausalConvWithState", {x, floats(Shape{2, 1, 3}, F(6))}, {}, 2).find("weights"),
            std::string::npos);
}

TEST(Cache, TensorScatter) {
  const Tensor cache = iota(Shape{2, 3, 1});
  const Tensor update = floats(Shape{2, 2, 1}, {10, 11, 12, 13});
  EXPECT_EQ(values(run("TensorScatter", {cache, update})), (F{10, 11, 2, 12, 13, 5}));
  EXPECT_EQ(values(run("TensorScatter", {cache, update, Tensor::ints({1, 0})})), (F{0, 10, 11, 12, 13, 5}));
  EXPECT_EQ(values(run("TensorScatter", {cache, update, Tensor::ints({2, 1})}, attributes({{"mode", "circular"}}))),
            (F{11, 1, 10, 3, 12, 13}));
  EXPECT_NE(error_of("TensorScatter", {cache, update, Tensor::ints({2, 0})}).find("from 2"), std::string::npos);
  EXPECT_NE(error_of("TensorScatter", {cache, update}, attributes({{"axis", int64_t{0}}})).find("axis"),
            std::string::npos);
}

TEST(Loss, ReductionsWeightsAndIgnoredTargets) {
  const Tensor logs = floats(Shape{2, 3}, {-1, -2, -3, -4, -5, -6});
  const Tensor targets = Tensor::ints({2, 0});
  const Tensor weights = floats(Shape{3}, {1, 0, 3});
  EXPECT_EQ(values(run("NegativeLogLikelihoodLoss", {logs, targets})), (F{3.5F}));
  EXPECT_EQ(values(run("NegativeLogLikelihoodLoss", {logs, targets, weights}, attributes({{"reduction", "none"}}))),
            (F{9, 4}));
  EXPECT_EQ(values(run("NegativeLogLikelihoodLoss", {logs, targets, weights})), (F{13.0F / 4.0F}));
  EXPECT_EQ(values(run("NegativeLogLikelihoodLoss", {logs, Tensor::ints({9, 1})},
                       attributes({{"reduction", "sum"}, {"ignore_index", int64_t{9}}}))),
            (F{5}));
  EXPECT_NE(error_of("NegativeLogLikelihoodLoss", {logs, Tensor::ints({3, 0})}).find("target 3"), std::string::npos);
  const auto results =
      run_all("SoftmaxCrossEntropyLoss", {floats(Shape{1, 2, 1}, {0, 0}), int64s(Shape{1, 1}, {1})}, {}, 2);
  EXPECT_FLOAT_EQ(values(results[0])[0], std::log(2.0F));
  EXPECT_FLOAT_EQ(values(results[1])[0], -std::log(2.0F));
}

}  // namespace
}  // namespace openrknn::ops::test
