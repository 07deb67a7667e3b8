// Our int8 depthwise 3x3 convolutions beside oneDNN's on one thread, requantized to bytes: the least of several rounds
// in which the two take turns.
//   openrknn_onednn_bench [ROUNDS]
// oneDNN gets unsigned activations and signed weights, neither with zero points, a scale a channel, a bias and Relu,
// and chooses its layouts itself; reorders are not counted. Ours has zero points of activations and results, and of
// weights in a column of its own, as compiled programs have where the weights' range is not symmetric.
// Pictures are as large as the windows need, without padding.
#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/isa.hpp"
#include "layers.hpp"

namespace openrknn::bench {
namespace {

// Milliseconds of one call, from turns of at least 5.
double turn(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  int64_t calls = 0;
  double elapsed = 0;
  for (const auto start = Clock::now(); elapsed < 5; ++calls) {
    call();
    elapsed = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }
  return elapsed / static_cast<double>(calls);
}

class Ours {
 public:
  Ours(const Layer& l, bool zero_points)
      : conv_(l, true),
        filters_(npu::pack_depthwise_s8(conv_.s, conv_.w.data(), zero_points ? conv_.zero.data() : nullptr)),
        sink_(conv_.sink()),
        request_(conv_.request(true)) {}
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;
  ~Ours() = default;
  void run() { npu::depthwise_s8(conv_.s, conv_.x.data(), filters_, false, sink_, request_); }

 private:
  IntegerConv conv_;
  npu::IntegerFilters filters_;
  npu::AccumulatorSink<int32_t> sink_;
  npu::RequantizeRequest request_;
};

class OneDnn {
 public:
  explicit OneDnn(const Layer& l)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), primitive_(describe(l)), convolution_(primitive_) {
    const auto fill = [&](const dnnl::memory::desc& as) {
      dnnl::memory memory(as, engine_);
      const auto bytes = random_bits<uint8_t>(static_cast<int64_t>(as.get_size()));
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(memory.get_data_handle()));
      return memory;
    };
    dnnl::memory bias(primitive_.bias_desc(), engine_);
    std::fill_n(static_cast<float*>(bias.get_data_handle()), l.in, 100.0F);
    arguments_ = {{DNNL_ARG_SRC, fill(primitive_.src_desc())},
                  {DNNL_ARG_WEIGHTS, fill(primitive_.weights_desc())},
                  {DNNL_ARG_BIAS, bias},
                  {DNNL_ARG_DST, dnnl::memory(primitive_.dst_desc(), engine_)}};
  }
  void run() {
    convolution_.execute(stream_, arguments_);
    stream_.wait();
  }
  const char* name() const { return primitive_.impl_info_str(); }

 private:
  dnnl::convolution_forward::primitive_desc describe(const Layer& l) const {
    using Type = dnnl::memory::data_type;
    const auto any = [](dnnl::memory::dims dims, Type type) {
      return dnnl::memory::desc(std::move(dims), type, dnnl::memory::format_tag::any);
    };
    const ConvShape s = shape_of(l);
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        any({1, l.in, s.in_h, s.in_w}, Type::u8), any({l.in, 1, 1, l.kernel, l.kernel}, Type::s8),
        any({l.in}, Type::f32), any({1, l.in, s.out_h, s.out_w}, Type::u8), {l.stride, l.stride}, {0, 0}, {0, 0});
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(1 << 1, std::vector<float>(static_cast<size_t>(l.in), 0.0037F));
    dnnl::post_ops relu;
    relu.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attributes.set_post_ops(relu);
    return {desc, attributes, engine_};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::convolution_forward::primitive_desc primitive_;
  dnnl::convolution_forward convolution_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void measure(const Layer& l, int rounds) {
  Ours ours(l, false), with_zeros(l, true);
  OneDnn theirs(l);
  double least = std::numeric_limits<double>::infinity(), least_with_zeros = least, their_least = least;
  for (int round = 0; round < rounds; ++round) {
    least = std::min(least, turn([&] { ours.run(); }));
    least_with_zeros = std::min(least_with_zeros, turn([&] { with_zeros.run(); }));
    their_least = std::min(their_least, turn([&] { theirs.run(); }));
  }
  const double products = static_cast<double>(l.extent * l.extent * l.in * l.kernel * l.kernel) * 1e-6;
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {} |\n", name_of(l), products / least,
             products / least_with_zeros, products / their_least, their_least / least, their_least / least_with_zeros,
             theirs.name());
}

}  // namespace
}  // namespace openrknn::bench

int main(int argc, char** argv) {
  using openrknn::bench::Layer;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  openrknn::set_thread_count(1);
  omp_set_num_threads(1);
  const dnnl_version_t* version = dnnl_version();
  fmt::print("int8 depthwise, billion multiply-adds a second, {}; oneDNN {}.{}.{}\n\n",
             openrknn::isa_name(openrknn::isa()), version->major, version->minor, version->patch);
  fmt::print("| shape | ours | with weight zero points | oneDNN | ours : oneDNN | with zero points | its choice |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const int64_t stride : {1, 2}) {
    for (const auto& [channels, extent] :
         {std::pair<int64_t, int64_t>{32, 112}, {64, 56}, {96, 56}, {144, 56}, {192, 28}, {384, 28}, {576, 14}}) {
      openrknn::bench::measure(Layer{channels, channels, 3, stride, extent / stride}, rounds);
    }
  }
  return 0;
}
