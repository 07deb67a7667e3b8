// Kernels one by one on one thread, in multiply-adds a second and as a share of the processor's peak in the same run.
//   openrknn_kernel_bench [--benchmark_filter=int8] [--benchmark_format=json]
// OPENRKNN_ISA chooses the instruction set. "sums": accumulators alone; "int8": requantized and stored.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/gemm.hpp"
#include "kernels/isa.hpp"
#include "kernels/npu/winograd.hpp"
#include "kernels/tables_in_use.hpp"
#include "layers.hpp"
#include "peak.hpp"

namespace openrknn::bench {
namespace {

void report(benchmark::State& state, double products, double peak_rate) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GMAC/s"] = benchmark::Counter(products * runs * 1e-9, benchmark::Counter::kIsRate);
  if (peak_rate > 0)
    state.counters["of peak"] = benchmark::Counter(products * runs / peak_rate, benchmark::Counter::kIsRate);
}

npu::AccumulatorSink<int32_t> sink_of(IntegerConv& conv, bool requantizes) {
  if (requantizes) return conv.sink();
  return [](const npu::AccumulatorBlock<int32_t>& b) { benchmark::DoNotOptimize(b.values); };
}

void direct(benchmark::State& state, const Layer& l, bool requantizes) {
  IntegerConv conv(l, false);
  if (requantizes && !conv.requantizer->usable()) return state.SkipWithError("the requantizer refuses the constants");
  const auto filters = npu::pack_conv_s8(conv.s, conv.w.data(), conv.zero.data());
  const auto sink = sink_of(conv, requantizes);
  const auto request = conv.request(requantizes);
  for (auto _ : state) npu::conv_s8(conv.s, conv.x.data(), filters, false, sink, request);
  report(state, static_cast<double>(l.extent * l.extent * l.out * l.kernel * l.kernel * l.in), peak().int8);
}

void winograd(benchmark::State& state, const Layer& l, bool requantizes) {
  IntegerConv conv(l, false);
  const auto filters = npu::pack_winograd_s8(conv.s, conv.w.data(), conv.zero.data());
  if (filters.empty()) return state.SkipWithError("results may not fit");
  const auto sink = sink_of(conv, requantizes);
  for (auto _ : state) npu::winograd_s8(conv.s, conv.x.data(), filters, sink);
  report(state, static_cast<double>(l.extent * l.extent * l.out * 9 * l.in), peak().int8);
}

void depthwise(benchmark::State& state, const Layer& l, bool requantizes) {
  IntegerConv conv(l, true);
  const auto filters = npu::pack_depthwise_s8(conv.s, conv.w.data(), conv.zero.data());
  const auto sink = sink_of(conv, requantizes);
  const auto request = conv.request(requantizes);
  for (auto _ : state) npu::depthwise_s8(conv.s, conv.x.data(), filters, false, sink, request);
  report(state, static_cast<double>(l.extent * l.extent * l.out * l.kernel * l.kernel), peak().int8);
}

// Halves between 2^-3 and 2 of both signs.
std::vector<uint16_t> random_halves(int64_t n) {
  auto values = random_bits<uint16_t>(n, 0x8FFF);
  for (auto& v : values) v = static_cast<uint16_t>(v + 0x3000);
  return values;
}

void half(benchmark::State& state, const Layer& l, bool by_channel) {
  const ConvShape s = shape_of(l);
  const auto x = random_halves(s.in_h * s.in_w * s.channels);
  const auto w = random_halves(l.kernel * l.kernel * l.out * (by_channel ? 1 : l.in));
  const auto filters = by_channel ? npu::pack_depthwise_f16(s, w.data()) : npu::pack_conv_f16(s, 32, 32, w.data());
  const npu::AccumulatorSink<float> sink = [](const auto& b) { benchmark::DoNotOptimize(b.values); };
  for (auto _ : state) {
    by_channel ? npu::depthwise_f16(s, x.data(), filters, sink) : npu::conv_f16(s, x.data(), filters, sink);
  }
  const int64_t depth = by_channel ? 1 : l.in;
  report(state, static_cast<double>(l.extent * l.extent * l.out * l.kernel * l.kernel * depth),
         by_channel ? peak().fp32 : peak().fp64);
}

void product(benchmark::State& state, int64_t m, int64_t n, int64_t k) {
  const std::vector<float> a(static_cast<size_t>(m * k), 0.5F), b(static_cast<size_t>(k * n), 0.25F);
  std::vector<float> c(static_cast<size_t>(m * n));
  GemmProblem problem;
  problem.a = a.data();
  problem.lda = k;
  problem.b_rows = b.data();
  problem.ldb = n;
  problem.c = c.data();
  problem.ldc = n;
  for (auto _ : state) gemm(1, m, n, k, [&](int64_t) { return problem; });
  report(state, static_cast<double>(m * n * k), peak().fp32);
}

void add(const std::string& name, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), [run = std::move(run)](benchmark::State& state) {
    run(state);
  })->Unit(benchmark::kMicrosecond);
}

void add_all() {
  const std::vector<Layer> dense = {
      {64, 256, 1, 1, 56}, {512, 128, 1, 1, 28}, {1024, 256, 1, 1, 14}, {512, 2048, 1, 1, 7}, {96, 24, 1, 1, 56},
      {24, 144, 1, 1, 56}, {16, 96, 1, 1, 112},  {64, 64, 3, 1, 56},    {128, 128, 3, 1, 28}, {256, 256, 3, 1, 14},
      {512, 512, 3, 1, 7}, {128, 256, 3, 2, 28}, {3, 64, 7, 2, 112},    {3, 32, 3, 2, 112}};
  for (const Layer& l : dense) {
    for (const bool requantizes : {false, true}) {
      const std::string kind = requantizes ? "int8 " : "sums ";
      add(kind + "direct " + name_of(l), [=](auto& state) { direct(state, l, requantizes); });
      if (l.kernel == 3 && l.stride == 1)
        add(kind + "winograd " + name_of(l), [=](auto& state) { winograd(state, l, requantizes); });
    }
  }
  for (const Layer& l : {Layer{32, 32, 3, 1, 112},
                         {64, 64, 3, 1, 56},
                         {192, 192, 3, 1, 28},
                         {192, 192, 3, 2, 14},
                         {576, 576, 3, 1, 14},
                         {576, 576, 5, 1, 14}}) {
    for (const bool requantizes : {false, true}) {
      add((requantizes ? "int8 depthwise " : "sums depthwise ") + name_of(l),
          [=](auto& state) { depthwise(state, l, requantizes); });
    }
    add("fp16 depthwise " + name_of(l), [=](auto& state) { half(state, l, true); });
  }
  for (const Layer& l : {Layer{64, 256, 1, 1, 56}, {64, 64, 3, 1, 56}, {256, 256, 3, 1, 14}, {3, 16, 3, 2, 112}})
    add("fp16 " + name_of(l), [=](auto& state) { half(state, l, false); });
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{256, 3136, 64}, {64, 3136, 576}, {256, 196, 2304}, {2048, 49, 512}, {24, 3136, 144}}) {
    add("fp32 " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
        [m = m, n = n, k = k](auto& state) { product(state, m, n, k); });
  }
}

}  // namespace
}  // namespace openrknn::bench

int main(int argc, char** argv) {
  openrknn::set_thread_count(1);
  const auto& peak = openrknn::bench::peak();
  benchmark::AddCustomContext("isa", std::string(openrknn::isa_name(openrknn::isa())));
  for (const openrknn::TableInUse& table : openrknn::tables_in_use())
    benchmark::AddCustomContext(std::string(table.kernels), std::string(table.isa));
  benchmark::AddCustomContext("peak GMAC/s", "int8 " + std::to_string(peak.int8 * 1e-9) + ", fp32 " +
                                                 std::to_string(peak.fp32 * 1e-9) + ", fp64 " +
                                                 std::to_string(peak.fp64 * 1e-9));
  openrknn::bench::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
