#include "kernels/fourier.hpp"

#include <algorithm>

#include "kernels/math.hpp"

namespace openrknn {
namespace {

using Complex = std::complex<double>;

std::vector<int64_t> prime_factors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// std::complex's own product looks after infinities in a way that compilers differ in.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// e^(-2 pi i k / n); whole quarter turns are exact.
Complex unit_root(int64_t k, int64_t n) {
  constexpr double kHalfPi = 1.5707963267948966;
  const int64_t quarter = 4 * k / n;
  const double angle = static_cast<double>(4 * k - quarter * n) / static_cast<double>(n) * kHalfPi;
  const double c = math::cos(angle);
  const double s = math::sin(angle);
  switch (quarter) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

}  // namespace

Fourier::Fourier(int64_t length) : length_(length), factors_(prime_factors(length)) {
  roots_.reserve(static_cast<size_t>(length));
  for (int64_t k = 0; k < length; ++k) roots_.push_back(unit_root(k, length));
}

double Fourier::cost(int64_t length) {
  double sum = 1.0;
  for (const int64_t p : prime_factors(length)) sum += static_cast<double>(p);
  return sum * static_cast<double>(length);
}

Complex Fourier::root(int64_t power, bool inverse) const {
  const Complex w = roots_[static_cast<size_t>(power % length_)];
  return inverse ? std::conj(w) : w;
}

void Fourier::step(const Complex* from, int64_t stride, Complex* to, size_t factor, int64_t n,
                   std::vector<Complex>& scratch, bool inverse) const {
  if (n == 1) {
    to[0] = from[0];
    return;
  }
  const int64_t p = factors_[factor];
  const int64_t m = n / p;
  for (int64_t r = 0; r < p; ++r) step(from + r * stride, stride * p, to + r * m, factor + 1, m, scratch, inverse);
  // Root n of one is root `length` to the power length / n.
  const int64_t unit = length_ / n;
  for (int64_t k = 0; k < m; ++k) {
    for (int64_t r = 0; r < p; ++r)
      scratch[static_cast<size_t>(r)] = times(to[r * m + k], root(r * k % n * unit, inverse));
    for (int64_t q = 0; q < p; ++q) {
      Complex sum = scratch[0];
      for (int64_t r = 1; r < p; ++r)
        sum += times(scratch[static_cast<size_t>(r)], root(r * q % p * m * unit, inverse));
      to[q * m + k] = sum;
    }
  }
}

void Fourier::transform(const Complex* from, Complex* to, bool inverse) const {
  std::vector<Complex> scratch(static_cast<size_t>(factors_.empty() ? 1 : factors_.back()));
  step(from, 1, to, 0, length_, scratch, inverse);
  if (!inverse) return;
  const auto n = static_cast<double>(length_);
  for (int64_t k = 0; k < length_; ++k) to[k] = {to[k].real() / n, to[k].imag() / n};
}

}  // namespace openrknn
