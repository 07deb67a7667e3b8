#include <cmath>
#include <complex>
#include <random>

#include "kernels/fourier.hpp"
#include "ops/support.hpp"

namespace openrknn::ops::test {
namespace {

using F = std::vector<float>;
using I = std::vector<int64_t>;
using Complex = std::complex<double>;

constexpr double kTwoPi = 6.283185307179586;

// The definition, term by term.
std::vector<Complex> plain_transform(const std::vector<Complex>& x) {
  const size_t n = x.size();
  std::vector<Complex> y(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i)
      y[k] += x[i] * std::polar(1.0, -kTwoPi * static_cast<double>(i * k % n) / static_cast<double>(n));
  }
  return y;
}

TEST(Fourier, EveryLengthAgreesWithTheDefinition) {
  std::mt19937 rng(5);
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 30, 31, 64, 77, 96, 128, 210, 257}) {
    std::vector<Complex> x(static_cast<size_t>(n));
    for (Complex& v : x) v = {static_cast<double>(rng() % 2001) - 1000.0, static_cast<double>(rng() % 2001) - 1000.0};
    const auto expected = plain_transform(x);
    std::vector<Complex> y(x.size()), back(x.size());
    const Fourier fourier(n);
    fourier.transform(x.data(), y.data(), false);
    fourier.transform(y.data(), back.data(), true);
    for (size_t k = 0; k < x.size(); ++k) {
      ASSERT_NEAR(std::abs(y[k] - expected[k]), 0.0, 1e-8) << n << " at " << k;
      ASSERT_NEAR(std::abs(back[k] - x[k]), 0.0, 1e-10) << n << " at " << k;
    }
  }
}

TEST(Signal, Dft) {
  const Tensor x = floats(Shape{1, 4, 1}, {1, 2, 3, 4});
  EXPECT_EQ(values(run("DFT", {x})), (F{10, 0, -2, 2, -2, 0, -2, -2}));
  const Attributes half = attributes({{"onesided", int64_t{1}}});
  const Tensor spectrum = run("DFT", {x}, half);
  EXPECT_EQ(dims(spectrum), (I{1, 3, 2}));
  const Attributes back = attributes({{"onesided", int64_t{1}}, {"inverse", int64_t{1}}});
  EXPECT_EQ(values(run("DFT", {spectrum}, back)), (F{1, 2, 3, 4}));
  // Longer than the signal: zeros follow; shorter: it is cut. Along the first axis.
  const Tensor column = floats(Shape{2, 1, 1}, {1, 3});
  EXPECT_EQ(values(run("DFT", {column, Tensor::scalar<int64_t>(4), Tensor::scalar<int64_t>(0)})),
            (F{4, 0, 1, -3, -2, 0, 1, 3}));
  EXPECT_EQ(values(run("DFT", {x, Tensor::scalar<int64_t>(2)})), (F{3, 0, -1, 0}));
  EXPECT_NE(error_of("DFT", {spectrum}, half).find("onesided"), std::string::npos);
  EXPECT_NE(error_of("DFT", {x, Tensor::scalar<int64_t>(0)}).find("dft_length"), std::string::npos);
  EXPECT_NE(error_of("DFT", {x, Tensor(), Tensor::scalar<int64_t>(2)}).find("axis"), std::string::npos);
  // A large prime would take hours.
  EXPECT_NE(error_of("DFT", {x, Tensor::scalar<int64_t>(2000003)}).find("too long"), std::string::npos);
}

TEST(Signal, StftIsDftOfWindowedFrames) {
  std::mt19937 rng(6);
  F signal(20);
  for (float& v : signal) v = static_cast<float>(rng() % 100);
  const Tensor x = Tensor::from(Shape{1, 20, 1}, signal);
  const Tensor window = run("HannWindow", {Tensor::scalar<int64_t>(8)});
  const Tensor y = run("STFT", {x, Tensor::scalar<int64_t>(3), window, Tensor::scalar<int64_t>(8)});
  ASSERT_EQ(dims(y), (I{1, 5, 5, 2}));
  for (size_t frame = 0; frame < 5; ++frame) {
    std::vector<double> part(8);
    for (size_t k = 0; k < 8; ++k)
      part[k] = static_cast<double>(signal[frame * 3 + k]) * static_cast<double>(window.as<float>()[k]);
    const Tensor one = run("DFT", {Tensor::from(Shape{1, 8, 1}, part)}, attributes({{"onesided", int64_t{1}}}));
    for (size_t k = 0; k < 10; ++k)
      EXPECT_EQ(y.as<float>()[frame * 10 + k], static_cast<float>(one.as<double>()[k])) << frame << " " << k;
  }
  EXPECT_NE(error_of("STFT", {x, Tensor::scalar<int64_t>(0)}).find("frame_step"), std::string::npos);
  EXPECT_NE(error_of("STFT", {x, Tensor::scalar<int64_t>(1), window, Tensor::scalar<int64_t>(9)}).find("window"),
            std::string::npos);
}

TEST(Signal, Windows) {
  const Tensor four = Tensor::scalar<int64_t>(4);
  const Attributes symmetric = attributes({{"periodic", int64_t{0}}});
  EXPECT_EQ(values(run("HannWindow", {four})), (F{0, 0.5F, 1, 0.5F}));
  EXPECT_EQ(values(run("HannWindow", {Tensor::scalar<int64_t>(3)}, symmetric)), (F{0, 1, 0}));
  EXPECT_EQ(values(run("HannWindow", {Tensor::scalar<int64_t>(1)}, symmetric)), (F{1}));
  const F hamming = values(run("HammingWindow", {four}));
  EXPECT_FLOAT_EQ(hamming[0], 4.0F / 46.0F);
  EXPECT_EQ(hamming[2], 1.0F);
  const auto blackman = values<double>(run("BlackmanWindow", {four}, attributes({{"output_datatype", int64_t{11}}})));
  EXPECT_NEAR(blackman[1], 0.34, 1e-15);
  EXPECT_NE(error_of("HannWindow", {four}, attributes({{"output_datatype", int64_t{7}}})).find("output_datatype"),
            std::string::npos);
}

TEST(Signal, MelFiltersPeakAtOne) {
  const auto mel = [](int64_t bins, int64_t rate) {
    return std::vector<Tensor>{Tensor::scalar(bins), Tensor::scalar<int64_t>(16), Tensor::scalar(rate),
                               Tensor::scalar(0.0F), Tensor::scalar(4096.0F)};
  };
  const Tensor y = run("MelWeightMatrix", mel(8, 8192));
  ASSERT_EQ(dims(y), (I{9, 8}));
  for (int64_t bin = 0; bin < 8; ++bin) {
    float most = 0.0F;
    for (int64_t row = 0; row < 9; ++row) most = std::max(most, y.as<float>()[static_cast<size_t>(row * 8 + bin)]);
    EXPECT_EQ(most, 1.0F) << bin;
  }
  EXPECT_NE(error_of("MelWeightMatrix", mel(8, 0)).find("sample rate"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::ops::test
