#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using model::ActivationKind;
using model::ConvMode;
using model::Convolution;
using namespace test;  // NOLINT

struct Spec {
  int64_t n = 1, c = 8, h = 6, w = 6, oc = 8;
  std::array<int32_t, 2> kernel{3, 3}, stride{1, 1}, dilation{1, 1};
  std::array<int32_t, 4> pad{1, 1, 1, 1};
  bool depthwise = false, transposed = false, residual = false, weight_zero = true, q14 = false, zero_first = false,
       bypass = false;
  ActivationKind activation = ActivationKind::kLinear;
  model::Layout input_layout = model::Layout::kNC1HWC2;
  int64_t tile_channels = 1000, tile_rows = 1000, tile_columns = 1000;
};

int64_t out_extent(const Spec& s, size_t axis, int64_t in) {
  const int64_t span = (s.kernel[axis] - 1) * s.dilation[axis] + 1, pads = s.pad[axis] + s.pad[axis + 2];
  return s.transposed ? (in - 1) * s.stride[axis] + span - pads : (in + pads - span) / s.stride[axis] + 1;
}

// The input row that result row `o` meets at tap `k`; -1: padding.
int64_t source_row(const Spec& s, size_t axis, int64_t o, int64_t k, int64_t extent) {
  if (!s.transposed) {
    const int64_t i = o * s.stride[axis] - s.pad[axis] + k * s.dilation[axis];
    return i >= 0 && i < extent ? i : -1;
  }
  const int64_t u = o + k * s.dilation[axis] - ((s.kernel[axis] - 1) * s.dilation[axis] - s.pad[axis]);
  return u >= 0 && u % s.stride[axis] == 0 && u / s.stride[axis] < extent ? u / s.stride[axis] : -1;
}

struct Case {
  Spec spec;
  Program program;
  int x = 0, residual = 0, y = 0;
  int zero_x = 0;
  std::vector<int8_t> weights;  // [oc][ic or 1][kh][kw]
  std::vector<uint16_t> half_weights;
  std::vector<float> half_bias;
  model::ChannelParams params;
  std::vector<int16_t> table, slopes;
  Tensors inputs;
};

int64_t inner_inputs(const Spec& s) { return s.depthwise ? 1 : s.c; }

Convolution convolution(const Spec& s, DType dtype) {
  Convolution c;
  c.mode = s.depthwise ? ConvMode::kDepthwise : ConvMode::kDirect;
  c.transposed = s.transposed;
  c.kernel = s.kernel;
  c.stride = s.stride;
  c.pad = s.pad;
  c.dilation = s.dilation;
  c.in_channels = static_cast<int32_t>(s.c);
  c.out_channels = static_cast<int32_t>(s.oc);
  c.weight_dtype = dtype;
  const bool half = dtype == DType::kFloat16;
  c.kernel_group = s.depthwise ? 1 : half ? 16 : 32;
  c.channel_group = s.depthwise ? (half ? 32 : 64) : 32;
  return c;
}

// Adds x and, if wanted, a residual; the operands of the task.
std::vector<int> add_inputs(Case& k, Builder& b, Random& random, bool half) {
  const Spec& s = k.spec;
  const Shape xs{s.n, s.c, s.h, s.w};
  const Shape ys{s.n, s.oc, out_extent(s, 0, s.h), out_extent(s, 1, s.w)};
  k.x = half ? b.half("x", xs, s.input_layout) : b.int8("x", xs, 0.25F, k.zero_x, s.input_layout);
  b.input("x", k.x);
  k.inputs["x"] = half ? random_half_values(random, xs, 2) : random_int8_values(random, xs, 0.25F, k.zero_x);
  std::vector<int> operands{k.x};
  if (s.residual) {
    k.residual = half ? b.half("r", ys) : b.int8("r", ys, 0.5F, -3);
    b.input("r", k.residual);
    k.inputs["r"] = half ? random_half_values(random, ys, 2) : random_int8_values(random, ys, 0.5F, -3);
    operands.push_back(k.residual);
  }
  return operands;
}

model::Activation int8_activation(Case& k, Builder& b, Random& random) {
  model::Activation a;
  a.kind = k.spec.activation;
  a.min = random.between(-5000, 0);
  a.max = random.between(0, 8000);
  if (a.kind == ActivationKind::kPRelu) {
    a.slope_count = static_cast<int32_t>(k.spec.oc);
    a.slope_shift = 15;
    for (int64_t o = 0; o < k.spec.oc; ++o) k.slopes.push_back(static_cast<int16_t>(random.between(-32768, 32767)));
    a.slopes = b.blob(k.slopes);
  }
  if (a.kind == ActivationKind::kTable) {
    for (int i = 0; i < 1026; ++i) k.table.push_back(static_cast<int16_t>(random.between(-32768, 32767)));
    a.table = b.blob(k.table);
    a.index_scale = 20000;
    a.index_shift = 14;
  }
  return a;
}

Case build_int8(const Spec& s, uint64_t seed) {
  Case k;
  k.spec = s;
  Random random(seed);
  Builder b;
  auto& profile = b.program().profile;
  profile.channel_multiplier = s.q14 ? ChannelMultiplier::kQ14 : ChannelMultiplier::kInt16;
  profile.zero_point_before_rounding = s.zero_first;
  k.zero_x = static_cast<int>(random.between(-128, 127));
  const auto zero_y = static_cast<int>(random.between(-128, 127));
  const auto operands = add_inputs(k, b, random, false);
  k.y = b.int8("y", Shape{s.n, s.oc, out_extent(s, 0, s.h), out_extent(s, 1, s.w)}, 1.0F, zero_y);
  Convolution c = convolution(s, DType::kInt8);
  c.pad_value = k.zero_x;
  QuantParams q;
  q.granularity = Granularity::kChannel;
  k.weights = random.bytes(s.oc * inner_inputs(s) * s.kernel[0] * s.kernel[1]);
  for (int64_t o = 0; o < s.oc; ++o) {
    const auto zero = static_cast<int32_t>(s.weight_zero ? random.between(-128, 127) : 0);
    q.scales.push_back(random.real(0.001F, 0.01F));
    q.zero_points.push_back(zero);
    k.params.bias.push_back(static_cast<int32_t>(random.between(-20000, 20000)));
    k.params.minus_weight_zero.push_back(-zero);
    k.params.multiplier.push_back(static_cast<int32_t>(random.between(8192, s.q14 ? 65535 : 32767)));
  }
  c.weight_quant = q;
  c.weights = b.blob(pack_weights(c, std::as_bytes(std::span(k.weights))));
  c.params = b.blob(pack_params(profile, k.params));
  const model::Activation a = int8_activation(k, b, random);
  Task& task = b.task(TaskKind::kConv, s.transposed ? "ConvTranspose" : "Conv", operands, {k.y});
  task.conv = c;
  task.activation = a;
  task.requant = model::Requant{s.bypass, 14, s.q14 ? 14 : 15, 19000, 24, zero_y};
  if (a.kind == ActivationKind::kTable) task.requant->shift = 22;
  if (s.residual) task.operands = {model::Operand{3, 17000, 4}};
  b.tile(task, s.tile_channels, s.tile_rows, s.tile_columns);
  b.output("y", k.y);
  k.program = b.finish();
  return k;
}

int64_t table_at(const std::vector<int16_t>& table, int64_t index) {
  const int64_t x = saturate(index, -16384, 16384);
  const size_t base = x < 0 ? 0 : 513;
  const int64_t d = x < 0 ? x + 16384 : x;
  const auto i = static_cast<size_t>(d / 32);
  if (i == 512) return table[base + 512];
  const double low = table[base + i], high = table[base + i + 1];
  return static_cast<int64_t>(low + std::floor((high - low) * static_cast<double>(d % 32) / 32));
}

struct Sums {
  int64_t acc = 0, window = 0;
};

Sums sums_of(const Case& k, const std::vector<int8_t>& x, int64_t n, int64_t o, int64_t h, int64_t w) {
  const Spec& s = k.spec;
  Sums sums;
  for (int64_t i = 0; i < inner_inputs(s); ++i) {
    for (int64_t kh = 0; kh < s.kernel[0]; ++kh) {
      for (int64_t kw = 0; kw < s.kernel[1]; ++kw) {
        const int64_t ih = source_row(s, 0, h, kh, s.h), iw = source_row(s, 1, w, kw, s.w);
        const int64_t c = s.depthwise ? o : i;
        const int64_t v = ih < 0 || iw < 0 ? k.zero_x : x[static_cast<size_t>(((n * s.c + c) * s.h + ih) * s.w + iw)];
        sums.acc +=
            v * k.weights[static_cast<size_t>(((o * inner_inputs(s) + i) * s.kernel[0] + kh) * s.kernel[1] + kw)];
        sums.window += v;
      }
    }
  }
  return sums;
}

// The formulas of npu.md section 0 behind the sums.
int64_t result_of(const Case& k, const Sums& sums, size_t oc, int64_t residual) {
  const Spec& s = k.spec;
  const Task& task = k.program.tasks[0];
  const auto& q = *task.requant;
  const int64_t t = sums.acc + k.params.bias[oc] + k.params.minus_weight_zero[oc] * sums.window;
  const int64_t p = t * k.params.multiplier[oc];
  int64_t v = q.channel_multiplier_bypass
                  ? saturate32(t)
                  : saturate32(round_shift(p, p >= 0 ? q.channel_shift : q.channel_shift_negative));
  if (s.residual)
    v += round_shift((residual + task.operands[0].offset) * task.operands[0].multiplier, task.operands[0].shift);
  if (s.activation == ActivationKind::kClamp) v = saturate(v, task.activation.min, task.activation.max);
  if (s.activation == ActivationKind::kPRelu && v < 0) v = round_shift(v * k.slopes[oc], 15);
  if (s.activation == ActivationKind::kTable)
    v = table_at(k.table, round_shift(v * task.activation.index_scale, task.activation.index_shift));
  const int64_t product = v * q.multiplier, z = q.zero_point;
  if (s.zero_first) return saturate8(round_shift(product + z * (int64_t{1} << q.shift), q.shift));
  return saturate8(round_shift(product, q.shift) + z);
}

std::vector<int8_t> expected_int8(const Case& k, const Recording& run) {
  const auto x = int8s(run.at(k.x));
  const Shape ys = k.program.tensor(k.y).shape;
  std::vector<int8_t> y;
  for (int64_t n = 0; n < ys[0]; ++n) {
    for (int64_t o = 0; o < ys[1]; ++o) {
      for (int64_t h = 0; h < ys[2]; ++h) {
        for (int64_t w = 0; w < ys[3]; ++w) {
          const int64_t residual = k.spec.residual ? run.at(k.residual).as<int8_t>()[y.size()] : 0;
          y.push_back(static_cast<int8_t>(result_of(k, sums_of(k, x, n, o, h, w), static_cast<size_t>(o), residual)));
        }
      }
    }
  }
  return y;
}

void check_int8(const Spec& s, uint64_t seed) {
  const Case k = build_int8(s, seed);
  Recording run;
  run_both(k.program, k.inputs, run);
  ASSERT_TRUE(run.count(k.y));
  const auto got = int8s(run.at(k.y));
  const auto want = expected_int8(k, run);
  size_t wrong = 0, rails = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    wrong += got[i] != want[i] ? 1 : 0;
    rails += want[i] == 127 || want[i] == -128 ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0U) << "seed " << seed << " of " << want.size();
  if (want.size() > 200) {
    EXPECT_LT(rails, want.size()) << "the case tells nothing, seed " << seed;
  }
}

TEST(SimConv, Int8Simple) { check_int8({}, 1); }

TEST(SimConv, Int8Pointwise) {
  Spec s;
  s.c = 70;
  s.oc = 45;
  s.kernel = {1, 1};
  s.pad = {0, 0, 0, 0};
  check_int8(s, 2);
  s.n = 3;
  s.h = s.w = 1;
  check_int8(s, 3);
  s.stride = {2, 2};
  s.h = s.w = 9;
  check_int8(s, 4);
}

TEST(SimConv, Int8PackedPixels) {
  Spec s;
  s.input_layout = model::Layout::kNHWC;
  for (const int64_t c : {1, 3, 4}) {
    s.c = c;
    s.stride = {2, 2};
    check_int8(s, 5 + static_cast<uint64_t>(c));
  }
}

TEST(SimConv, Int8Depthwise) {
  Spec s;
  s.depthwise = true;
  s.c = s.oc = 70;
  s.tile_channels = 32;
  s.tile_rows = 2;
  check_int8(s, 10);
}

TEST(SimConv, Int8Transposed) {
  Spec s;
  s.transposed = true;
  s.stride = {2, 3};
  s.kernel = {4, 3};
  s.pad = {1, 0, 1, 1};
  s.tile_rows = 3;
  s.tile_columns = 4;
  check_int8(s, 11);
  s.depthwise = true;
  check_int8(s, 12);
}

// False when the window is larger than the input.
bool random_window(Random& r, Spec& s) {
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    s.kernel[axis] = static_cast<int32_t>(r.between(1, 4));
    s.stride[axis] = static_cast<int32_t>(r.between(1, 3));
    s.dilation[axis] = static_cast<int32_t>(r.between(1, 2));
    const int64_t span = (s.kernel[axis] - 1) * s.dilation[axis] + 1, extent = axis == 0 ? s.h : s.w;
    s.pad[axis] = static_cast<int32_t>(r.between(0, span - 1));
    s.pad[axis + 2] = static_cast<int32_t>(r.between(0, span - 1));
    if (!s.transposed && extent + s.pad[axis] + s.pad[axis + 2] < span) return false;
    if (out_extent(s, axis, extent) < 1) return false;
  }
  return true;
}

TEST(SimConv, Int8Random) {
  int cases = 0;
  for (uint64_t seed = 100; seed < 260; ++seed) {
    Random r(seed);
    Spec s;
    s.depthwise = r.between(0, 3) == 0;
    s.transposed = r.between(0, 4) == 0;
    s.n = r.between(1, 2);
    s.c = r.between(1, 70);
    s.oc = s.depthwise ? s.c : r.between(1, 70);
    s.h = r.between(1, 11);
    s.w = r.between(1, 11);
    if (!random_window(r, s)) continue;
    s.residual = r.between(0, 2) == 0;
    s.weight_zero = r.between(0, 1) == 0;
    s.q14 = r.between(0, 2) == 0;
    s.zero_first = r.between(0, 1) == 0;
    s.bypass = r.between(0, 4) == 0;
    s.activation = static_cast<ActivationKind>(r.between(0, 3));
    s.tile_channels = s.depthwise ? r.between(1, 70) : 32 * r.between(1, 2);
    s.tile_rows = r.between(1, 12);
    s.tile_columns = r.between(1, 12);
    check_int8(s, seed);
    ++cases;
  }
  EXPECT_GT(cases, 100);
}

Case build_half(const Spec& s, uint64_t seed) {
  Case k;
  k.spec = s;
  Random random(seed);
  Builder b;
  const auto operands = add_inputs(k, b, random, true);
  k.y = b.half("y", Shape{s.n, s.oc, out_extent(s, 0, s.h), out_extent(s, 1, s.w)});
  Convolution c = convolution(s, DType::kFloat16);
  const int64_t count = s.oc * inner_inputs(s) * s.kernel[0] * s.kernel[1];
  for (int64_t i = 0; i < count; ++i) k.half_weights.push_back(float_to_half(random.real(-1, 1)));
  for (int64_t o = 0; o < s.oc; ++o) k.half_bias.push_back(random.real(-1, 1));
  c.weights = b.blob(pack_weights(c, std::as_bytes(std::span(k.half_weights))));
  c.params = b.blob(k.half_bias);
  model::Activation a;
  a.kind = s.activation;
  a.fmin = -0.5F;
  a.fmax = 1.25F;
  if (a.kind == ActivationKind::kPRelu) {
    a.slope_count = 1;
    a.slopes = b.blob(std::vector<float>{0.3F});
  }
  Task& task = b.task(TaskKind::kConv, "Conv", operands, {k.y});
  task.conv = c;
  task.activation = a;
  b.tile(task, s.tile_channels, s.tile_rows, s.tile_columns);
  b.output("y", k.y);
  k.program = b.finish();
  return k;
}

// Groups of 32 products of one slice at one tap (one product for depthwise), in the order slice, kh, kw. The operands
// are such that a group's sum is exact in double.
float half_sum(const Case& k, const std::vector<uint16_t>& x, int64_t n, int64_t o, int64_t h, int64_t w) {
  const Spec& s = k.spec;
  const int64_t inputs = inner_inputs(s);
  float acc = 0;
  for (int64_t i0 = 0; i0 < inputs; i0 += 32) {
    for (int64_t kh = 0; kh < s.kernel[0]; ++kh) {
      for (int64_t kw = 0; kw < s.kernel[1]; ++kw) {
        const int64_t ih = source_row(s, 0, h, kh, s.h), iw = source_row(s, 1, w, kw, s.w);
        double group = 0;
        for (int64_t i = i0; i < std::min(inputs, i0 + 32); ++i) {
          const int64_t c = s.depthwise ? o : i;
          const float v =
              ih < 0 || iw < 0 ? 0.0F : half_to_float(x[static_cast<size_t>(((n * s.c + c) * s.h + ih) * s.w + iw)]);
          group += static_cast<double>(v) *
                   half_to_float(
                       k.half_weights[static_cast<size_t>(((o * inputs + i) * s.kernel[0] + kh) * s.kernel[1] + kw)]);
        }
        acc += static_cast<float>(group);
      }
    }
  }
  return acc;
}

std::vector<uint16_t> expected_half(const Case& k, const Recording& run) {
  const Spec& s = k.spec;
  const auto x = halves(run.at(k.x));
  const Shape ys = k.program.tensor(k.y).shape;
  std::vector<uint16_t> y;
  for (int64_t n = 0; n < ys[0]; ++n) {
    for (int64_t o = 0; o < ys[1]; ++o) {
      for (int64_t h = 0; h < ys[2]; ++h) {
        for (int64_t w = 0; w < ys[3]; ++w) {
          float acc = half_sum(k, x, n, o, h, w) + k.half_bias[static_cast<size_t>(o)];
          if (s.residual) acc += half_to_float(run.at(k.residual).as<uint16_t>()[y.size()]);
          if (s.activation == ActivationKind::kClamp) acc = std::min(std::max(acc, -0.5F), 1.25F);
          if (s.activation == ActivationKind::kPRelu && acc < 0) acc *= 0.3F;
          y.push_back(float_to_half(acc));
        }
      }
    }
  }
  return y;
}

TEST(SimConv, HalfRandom) {
  for (uint64_t seed = 300; seed < 340; ++seed) {
    Random r(seed);
    Spec s;
    s.depthwise = r.between(0, 3) == 0;
    s.transposed = r.between(0, 4) == 0;
    s.c = r.between(1, 70);
    s.oc = s.depthwise ? s.c : r.between(1, 40);
    s.h = r.between(3, 9);
    s.w = r.between(3, 9);
    s.stride = {static_cast<int32_t>(r.between(1, 2)), static_cast<int32_t>(r.between(1, 2))};
    s.residual = r.between(0, 1) == 0;
    s.activation = static_cast<ActivationKind>(r.between(0, 2));
    s.tile_channels = s.depthwise ? r.between(1, 40) : 16 * r.between(1, 3);
    s.tile_rows = r.between(1, 6);
    s.tile_columns = r.between(1, 6);
    const Case k = build_half(s, seed);
    Recording run;
    run_both(k.program, k.inputs, run);
    ASSERT_TRUE(run.count(k.y));
    EXPECT_EQ(halves(run.at(k.y)), expected_half(k, run)) << "seed " << seed;
  }
}

TEST(SimConv, StrictModeRefusesATileThatDoesNotFitItsBanks) {
  Spec s;
  s.c = 64;
  s.h = s.w = 40;
  Case k = build_int8(s, 50);
  auto& tile = k.program.tasks[0].tiles[0];
  tile.data_banks = 3;  // 102,400 bytes need 4
  tile.weight_banks = 1;
  auto machine = Machine::load(k.program);
  ASSERT_TRUE(machine.ok());
  EXPECT_TRUE(machine->run(k.inputs).ok());
  RunOptions strict;
  strict.strict = true;
  const auto refused = machine->run(k.inputs, strict);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().why.find("banks"), std::string::npos);
  tile.data_banks = 4;
  EXPECT_TRUE(machine->run(k.inputs, strict).ok());
}

}  // namespace
}  // namespace openrknn::sim
