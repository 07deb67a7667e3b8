// Discrete Fourier transforms of any length in double, made of the transforms of its prime factors. The order of all
// sums is fixed by the length.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace openrknn {

class Fourier {
 public:
  explicit Fourier(int64_t length);

  int64_t length() const { return length_; }
  // Multiplications of one transform: a length with a large prime factor is slow.
  static double cost(int64_t length);
  // to[k] = sum of from[i] * e^(-2 pi i k / length); with `inverse`, e^(+...) and divided by the length. The arrays
  // hold `length` elements and are not the same.
  void transform(const std::complex<double>* from, std::complex<double>* to, bool inverse) const;

 private:
  void step(const std::complex<double>* from, int64_t stride, std::complex<double>* to, size_t factor, int64_t n,
            std::vector<std::complex<double>>& scratch, bool inverse) const;
  std::complex<double> root(int64_t power, bool inverse) const;

  int64_t length_;
  std::vector<int64_t> factors_;
  std::vector<std::complex<double>> roots_;  // e^(-2 pi i k / length)
};

}  // namespace openrknn
