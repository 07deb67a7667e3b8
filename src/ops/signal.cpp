// Spectra, windows and filter weights.
#include "kernels/signal_plan.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_dft(const InferInput& in) {
  if (!known(in, 1) || !known(in, 2)) return one(in.dtype(0), std::nullopt);
  OPENRKNN_TRY(const DftPlan plan, dft_plan(in.attributes, in.shape(0), in.ints(1), in.ints(2)));
  return one(in.dtype(0), plan.output);
}

Types infer_stft(const InferInput& in) {
  if (!known(in, 1) || !known(in, 3)) return one(in.dtype(0), std::nullopt);
  const Shape* window = in.has(2) ? &in.shape(2) : nullptr;
  OPENRKNN_TRY(const StftPlan plan, stft_plan(in.attributes, in.shape(0), *in.ints(1), window, in.ints(3)));
  return one(in.dtype(0), plan.output);
}

Types infer_window(const InferInput& in) {
  OPENRKNN_TRY(const DType dtype, signal_dtype(in.attributes));
  if (!known(in, 0)) return one(dtype, std::nullopt);
  return computed(dtype, window_shape(*in.ints(0)));
}

Types infer_mel(const InferInput& in) {
  OPENRKNN_TRY(const DType dtype, signal_dtype(in.attributes));
  if (!known(in, 0) || !known(in, 1)) return one(dtype, std::nullopt);
  return computed(dtype, mel_shape(*in.ints(0), *in.ints(1)));
}

}  // namespace

void register_signal(Registry& registry) {
  const AttrSpec datatype{"output_datatype", AttrKind::kInt, false,
                          "ONNX number of the result's type, default float32"};
  registry.add(compute_def("DFT", 1, 3, infer_dft,
                           "Discrete Fourier transform: operands x, dft_length, axis (default -2)",
                           {{"inverse", AttrKind::kInt, false, "1: from the spectrum; default 0"},
                            {"onesided", AttrKind::kInt, false, "1: half a spectrum is written, or read; default 0"}}));
  registry.add(compute_def("STFT", 2, 4, infer_stft,
                           "Spectra of overlapping frames: operands signal, frame_step, window, frame_length",
                           {{"onesided", AttrKind::kInt, false, "1 (default): half a spectrum is written"}}));
  for (const std::string_view name : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    registry.add(compute_def(name, 1, 1, infer_window, "A window function as long as operand 0 says",
                             {datatype, {"periodic", AttrKind::kInt, false, "0: symmetric; default 1"}}));
  }
  registry.add(compute_def("MelWeightMatrix", 5, 5, infer_mel,
                           "Mel filters: operands num_mel_bins, dft_length, sample_rate, lower and upper edge in Hz",
                           {datatype}));
}

}  // namespace openrknn::ops
