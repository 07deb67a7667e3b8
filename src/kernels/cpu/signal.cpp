// DFT, STFT, window functions and MelWeightMatrix. Everything is in double and rounded once.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/cpu/support_promote.hpp"
#include "kernels/fourier.hpp"
#include "kernels/math.hpp"
#include "kernels/signal_plan.hpp"

namespace openrknn::cpu {
namespace {

using Complex = std::complex<double>;

// Work of one operator, so that a small file cannot ask for hours.
constexpr double kMostWork = 1e12;

Status check_work(int64_t transforms, int64_t length) {
  if (static_cast<double>(transforms) * Fourier::cost(length) <= kMostWork) return {};
  return kernel_error(fmt::format("{} transforms of length {} take too long", transforms, length),
                      ErrorCode::kResource);
}

// Element k of a line of complex numbers that lie `step` apart; parts is 1 (real) or 2.
template <typename T>
Complex element(const T* line, int64_t k, int64_t step, int64_t parts) {
  const T* at = line + k * step * parts;
  return {static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0.0};
}

// The other half of the spectrum of a real signal.
void complete_spectrum(std::vector<Complex>& spectrum) {
  const size_t n = spectrum.size();
  spectrum[0] = spectrum[0].real();
  if (n % 2 == 0) spectrum[n / 2] = spectrum[n / 2].real();
  for (size_t k = n / 2 + 1; k < n; ++k) spectrum[k] = std::conj(spectrum[n - k]);
}

template <typename T>
void transform_lines(const DftPlan& plan, const Shape& x, const T* from, T* to) {
  const Fourier fourier(plan.length);
  const int64_t parts = x.dim(-1);
  const int64_t parts_out = plan.output.dim(-1);
  const int64_t inner = x.elements(plan.axis + 1, x.rank() - 1);
  const int64_t in = x[plan.axis];
  const int64_t out = plan.output[plan.axis];
  const int64_t half = plan.length / 2 + 1;
  const int64_t read = std::min(in, plan.inverse && plan.onesided ? half : plan.length);
  parallel_for(x.elements(0, plan.axis) * inner, 1, [&](int64_t begin, int64_t end) {
    std::vector<Complex> signal(static_cast<size_t>(plan.length));
    std::vector<Complex> result(signal.size());
    for (int64_t line = begin; line < end; ++line) {
      const T* source = from + (line / inner * in * inner + line % inner) * parts;
      T* target = to + (line / inner * out * inner + line % inner) * parts_out;
      std::fill(signal.begin(), signal.end(), Complex{});
      for (int64_t k = 0; k < read; ++k) signal[static_cast<size_t>(k)] = element(source, k, inner, parts);
      if (plan.inverse && plan.onesided) complete_spectrum(signal);
      fourier.transform(signal.data(), result.data(), plan.inverse);
      for (int64_t k = 0; k < out; ++k) {
        target[k * inner * parts_out] = static_cast<T>(result[static_cast<size_t>(k)].real());
        if (parts_out == 2) target[k * inner * 2 + 1] = static_cast<T>(result[static_cast<size_t>(k)].imag());
      }
    }
  });
}

Status dft(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_CHECK_OK(require_reals(args, {0}));
  const TensorView& x = args.inputs[0];
  OPENRKNN_TRY(const DftPlan plan, dft_plan(args.attributes, x.shape, ints_operand(args, 1), ints_operand(args, 2)));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  if (plan.output.elements() == 0) return {};
  OPENRKNN_CHECK_OK(check_work(plan.output.elements() / plan.output[plan.axis], plan.length));
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    transform_lines(plan, x.shape, operand.data<T>(), to);
    return {};
  });
}

Status stft(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 2));
  OPENRKNN_CHECK_OK(require_reals(args, {0, 2}));
  const TensorView& x = args.inputs[0];
  const Shape* window_shape = args.has_input(2) ? &args.inputs[2].shape : nullptr;
  OPENRKNN_TRY(const StftPlan plan,
               stft_plan(args.attributes, x.shape, to_ints(args.inputs[1]), window_shape, ints_operand(args, 3)));
  OPENRKNN_CHECK_OK(require_output(args, 0, x.dtype, plan.output));
  if (plan.output.elements() == 0) return {};
  const int64_t frames = plan.output[1];
  const int64_t bins = plan.output[2];
  const int64_t parts = x.shape[2];
  OPENRKNN_CHECK_OK(check_work(x.shape[0] * frames, plan.length));
  std::vector<double> window(static_cast<size_t>(plan.length), 1.0);
  if (args.has_input(2)) window = to_doubles(args.inputs[2]);
  const Fourier fourier(plan.length);
  return compute_reals_into(args.outputs[0], [&](auto tag, auto* to) -> Status {
    using T = decltype(tag);
    const Promoted operand(x, dtype_of<T>());
    parallel_for(x.shape[0] * frames, 1, [&](int64_t begin, int64_t end) {
      std::vector<Complex> frame(window.size());
      std::vector<Complex> result(window.size());
      for (int64_t i = begin; i < end; ++i) {
        const T* from = operand.data<T>() + (i / frames * x.shape[1] + i % frames * plan.step) * parts;
        for (size_t k = 0; k < frame.size(); ++k) {
          const Complex value = element(from, static_cast<int64_t>(k), 1, parts);
          frame[k] = {value.real() * window[k], value.imag() * window[k]};
        }
        fourier.transform(frame.data(), result.data(), false);
        for (int64_t k = 0; k < bins; ++k) {
          to[(i * bins + k) * 2] = static_cast<T>(result[static_cast<size_t>(k)].real());
          to[(i * bins + k) * 2 + 1] = static_cast<T>(result[static_cast<size_t>(k)].imag());
        }
      }
    });
    return {};
  });
}

Status write_doubles(const MutableTensorView& out, const std::vector<double>& values) {
  const Tensor made = cast(Tensor::from(out.shape, values).view(), out.dtype);
  if (made.bytes() > 0) std::memcpy(out.data, made.data(), made.bytes());
  return {};
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n), with n one less than the size for symmetric windows.
Status cosine_window(const KernelArgs& args, double a, double b, double c) {
  constexpr double kTwoPi = 6.283185307179586;
  OPENRKNN_CHECK_OK(require(args, 1));
  OPENRKNN_TRY(const Shape shape, window_shape(to_ints(args.inputs[0])));
  OPENRKNN_TRY(const DType dtype, signal_dtype(args.attributes));
  OPENRKNN_CHECK_OK(require_output(args, 0, dtype, shape));
  const int64_t n = args.attributes.int_or("periodic", 1) != 0 ? shape[0] : shape[0] - 1;
  std::vector<double> values(static_cast<size_t>(shape[0]), 1.0);  // one symmetric point is the middle
  for (size_t i = 0; n > 0 && i < values.size(); ++i) {
    const double turn = kTwoPi * static_cast<double>(i) / static_cast<double>(n);
    values[i] = a - b * math::cos(turn) + c * math::cos(2.0 * turn);
  }
  return write_doubles(args.outputs[0], values);
}

Status hann_window(const KernelArgs& args) { return cosine_window(args, 0.5, 0.5, 0.0); }
Status hamming_window(const KernelArgs& args) { return cosine_window(args, 25.0 / 46.0, 21.0 / 46.0, 0.0); }
Status blackman_window(const KernelArgs& args) { return cosine_window(args, 0.42, 0.5, 0.08); }

// Where the triangles of the mel filters begin, peak and end, as positions in the spectrum.
std::vector<int64_t> mel_positions(int64_t bins, int64_t dft_length, int64_t rate, double low, double high) {
  const auto mel = [](double hertz) { return 2595.0 * math::log10(1.0 + hertz / 700.0); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700.0 * (math::pow(10.0, (static_cast<double>(i) * step + mel(low)) / 2595.0) - 1.0);
    const double at = std::floor(static_cast<double>(dft_length + 1) * hertz / static_cast<double>(rate));
    positions.push_back(static_cast<int64_t>(std::clamp(at, -1.0, static_cast<double>(dft_length) + 1.0)));
  }
  return positions;
}

Status mel_weight_matrix(const KernelArgs& args) {
  OPENRKNN_CHECK_OK(require(args, 5));
  for (size_t i = 0; i < 5; ++i) {
    if (args.inputs[i].elements() != 1) return kernel_error(fmt::format("operand {} is no scalar", i));
  }
  const int64_t dft_length = to_ints(args.inputs[1])[0];
  OPENRKNN_TRY(const Shape shape, mel_shape(to_ints(args.inputs[0]), to_ints(args.inputs[1])));
  OPENRKNN_TRY(const DType dtype, signal_dtype(args.attributes));
  OPENRKNN_CHECK_OK(require_output(args, 0, dtype, shape));
  const int64_t rate = to_ints(args.inputs[2])[0];
  const double low = to_doubles(args.inputs[3])[0];
  const double high = to_doubles(args.inputs[4])[0];
  constexpr double kHighest = 1e12;  // Hz: beyond it, and for what is no number, there is no position
  if (rate < 1 || !(low >= 0.0) || !(high > low) || !(high < kHighest))
    return kernel_error(fmt::format("sample rate {}, edges {} and {} Hz", rate, low, high), ErrorCode::kShape);
  const int64_t bins = shape[1];
  const auto at = mel_positions(bins, dft_length, rate, low, high);
  std::vector<double> values(static_cast<size_t>(shape.elements()), 0.0);
  const auto set = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < shape[0]) values[static_cast<size_t>(row * bins + bin)] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t begin = at[static_cast<size_t>(i)];
    const int64_t peak = at[static_cast<size_t>(i) + 1];
    const int64_t end = at[static_cast<size_t>(i) + 2];
    if (peak == begin) set(peak, i, 1.0);
    for (int64_t j = begin; peak > begin && j <= peak; ++j)
      set(j, i, static_cast<double>(j - begin) / static_cast<double>(peak - begin));
    for (int64_t j = peak; j < end; ++j) set(j, i, static_cast<double>(end - j) / static_cast<double>(end - peak));
  }
  return write_doubles(args.outputs[0], values);
}

}  // namespace

void register_signal(Registry& registry) {
  registry.add("DFT", dft);
  registry.add("STFT", stft);
  registry.add("HannWindow", hann_window);
  registry.add("HammingWindow", hamming_window);
  registry.add("BlackmanWindow", blackman_window);
  registry.add("MelWeightMatrix", mel_weight_matrix);
}

}  // namespace openrknn::cpu
