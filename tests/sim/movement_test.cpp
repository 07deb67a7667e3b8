#include <functional>

#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using model::Layout;
using namespace test;  // NOLINT

// Element of a row-major array by a multi-index.
size_t at(const Shape& s, const std::vector<int64_t>& index) {
  int64_t i = 0;
  for (int d = 0; d < s.rank(); ++d) i = i * s[d] + index[static_cast<size_t>(d)];
  return static_cast<size_t>(i);
}

void for_indices(const Shape& s, const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> index(static_cast<size_t>(s.rank()), 0);
  for (int64_t i = 0; i < s.elements(); ++i) {
    int64_t rest = i;
    for (int d = s.rank() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % s[d];
      rest /= s[d];
    }
    f(index);
  }
}

void check_concat(const Shape& first, const Shape& second, int64_t axis, Layout layout, uint64_t seed) {
  Random random(seed);
  Builder b;
  const int a = b.int8("a", first, 0.5F, 3, layout), c = b.int8("c", second, 0.3F, -8, layout);
  Shape ys = first;
  const int real_axis = static_cast<int>(axis < 0 ? axis + first.rank() : axis);
  ys.set(real_axis, first[real_axis] + second[real_axis]);
  const int y = b.int8("y", ys, 0.5F, 3, layout);
  b.input("a", a);
  b.input("c", c);
  Task& task = b.task(TaskKind::kConcat, "Concat", {a, c}, {y});
  task.attributes.set("axis", axis);
  task.operands = {model::Operand{-3, 16384, 14}, model::Operand{8, 19661, 15}};
  b.output("y", y);
  const Program p = b.finish();
  Recording run;
  run_both(p, {{"a", random_int8_values(random, first, 0.5F, 3)}, {"c", random_int8_values(random, second, 0.3F, -8)}},
           run);
  ASSERT_TRUE(run.count(y));
  const auto av = int8s(run.at(a)), cv = int8s(run.at(c)), got = int8s(run.at(y));
  for_indices(ys, [&](const std::vector<int64_t>& index) {
    auto inner = index;
    auto& i = inner[static_cast<size_t>(real_axis)];
    int64_t want = 0;
    if (i < first[real_axis]) {
      want = av[at(first, inner)];
    } else {
      i -= first[real_axis];
      want = saturate8(round_shift((cv[at(second, inner)] + 8) * 19661, 15) + 3);
    }
    ASSERT_EQ(got[at(ys, index)], want);
  });
}

TEST(SimConcat, EveryAxisOfEveryRank) {
  check_concat(Shape{2, 5, 3, 4}, Shape{2, 30, 3, 4}, 1, Layout::kNC1HWC2, 1);
  check_concat(Shape{1, 16, 3, 4}, Shape{1, 32, 3, 4}, -3, Layout::kNC1HWC2, 2);
  check_concat(Shape{2, 20, 3, 4}, Shape{1, 20, 3, 4}, 0, Layout::kNC1HWC2, 3);
  check_concat(Shape{2, 20, 3, 4}, Shape{2, 20, 2, 4}, 2, Layout::kNC1HWC2, 4);
  check_concat(Shape{2, 20, 3, 4}, Shape{2, 20, 3, 5}, 3, Layout::kNC1HWC2, 5);
  check_concat(Shape{2, 20, 3}, Shape{2, 20, 5}, -1, Layout::kNC1HWC2, 6);
  check_concat(Shape{2, 20, 3}, Shape{2, 7, 3}, 1, Layout::kNC1HWC2, 7);
  check_concat(Shape{2, 20}, Shape{2, 7}, 1, Layout::kNC1HWC2, 8);
  check_concat(Shape{20}, Shape{7}, 0, Layout::kNC1HWC2, 9);
  check_concat(Shape{2, 3, 4, 5, 6}, Shape{2, 2, 4, 5, 6}, 1, Layout::kNC1HWC2, 10);
  check_concat(Shape{2, 3, 4, 5, 6}, Shape{2, 3, 9, 5, 6}, 2, Layout::kNC1HWC2, 11);
  check_concat(Shape{2, 3, 4}, Shape{2, 9, 4}, 1, Layout::kPlain, 12);
}

TEST(SimConcat, InPlaceOperandsAreWrittenIntoTheResult) {
  Random random(20);
  Builder b;
  const Shape xs{2, 32, 3, 5}, zs{2, 9, 3, 5}, ys{2, 41, 3, 5};
  const int x = b.int8("x", xs, 0.5F, 1), z = b.int8("z", zs, 0.5F, 1);
  TensorDesc whole = Builder::desc("y", DType::kInt8, ys, Layout::kNC1HWC2);
  whole.quant = QuantParams::per_tensor(DType::kInt8, 0.5F, 1);
  const int y = b.add(whole, 4);
  const auto slice = [&](const char* name, const Shape& s, int64_t plane) {
    TensorDesc t = b.program().tensor(y);
    t.name = name;
    t.shape = s;
    t.cube = model::cube_of(s);
    t.offset = plane * t.surface_stride;
    return b.place(t);
  };
  const int first = slice("first", xs, 0), second = slice("second", zs, 2);
  b.input("x", x);
  b.input("z", z);
  const auto relu = [&](int from, int to) {
    Task& t = b.task(TaskKind::kActivation, "Relu", {from}, {to});
    t.activation.kind = model::ActivationKind::kClamp;
    t.activation.max = 1000;
    t.requant = model::Requant{false, 0, 0, 1, 0, 1};
  };
  relu(x, first);
  relu(z, second);
  Task& concat = b.task(TaskKind::kConcat, "Concat", {first, second}, {y});
  concat.in_place = true;
  concat.attributes.set("axis", 1);
  // Somebody else reads a slice: a convolution, in place of the root's pixels.
  const int pooled = b.int8("pooled", Shape{2, 32, 2, 4}, 0.5F, 1);
  Task& pool = b.task(TaskKind::kPool, "MaxPool", {first}, {pooled});
  pool.pool = model::Pool{false, {2, 2}, {1, 1}, {0, 0, 0, 0}, 0};
  b.tile(pool, 16, 1, 4);
  b.output("y", y);
  b.output("pooled", pooled);
  const Program p = b.finish();
  Recording run;
  run_both(p, {{"x", random_int8_values(random, xs, 0.5F, 1)}, {"z", random_int8_values(random, zs, 0.5F, 1)}}, run);
  ASSERT_TRUE(run.count(y));
  for_indices(ys, [&](std::vector<int64_t> index) {
    const int8_t got = run.at(y).as<int8_t>()[at(ys, index)];
    const bool in_first = index[1] < 32;
    if (!in_first) index[1] -= 32;
    const int8_t from = in_first ? run.at(x).as<int8_t>()[at(xs, index)] : run.at(z).as<int8_t>()[at(zs, index)];
    ASSERT_EQ(got, std::max<int>(from, 1));
  });
}

TEST(SimConvert, BetweenTypesLayoutsAndScales) {
  Random random(30);
  Builder b;
  const Shape s{2, 19, 3, 4};
  const int in = b.plain("in", DType::kFloat32, s);
  const int q = b.int8("q", s, 0.1F, 5), q2 = b.int8("q2", s, 0.037F, -60), h = b.half("h", s),
            back = b.plain("back", DType::kFloat32, s);
  const int from_half = b.int8("from_half", s, 0.1F, 5), plain_q = b.add([&] {
    TensorDesc t = Builder::desc("plain_q", DType::kInt8, s, Layout::kPlain);
    t.quant = QuantParams::per_tensor(DType::kInt8, 0.1F, 5);
    return t;
  }());
  b.input("in", in);
  for (const auto& [from, to] :
       std::vector<std::pair<int, int>>{{in, q}, {q, q2}, {q, h}, {h, back}, {h, from_half}, {q, plain_q}})
    b.task(TaskKind::kConvert, "exDataConvert", {from}, {to});
  b.output("back", back);
  b.output("q2", q2);
  b.output("from_half", from_half);
  b.output("plain_q", plain_q);
  const Program p = b.finish();
  std::vector<float> values;
  for (int64_t i = 0; i < s.elements(); ++i) values.push_back(random.real(-20, 20));
  values[0] = NAN;
  values[1] = INFINITY;
  values[2] = -INFINITY;
  values[3] = 0.25F;  // 2.5 steps: a tie
  Recording run;
  run_both(p, {{"in", Tensor::from<float>(s, values)}}, run);
  ASSERT_TRUE(run.count(plain_q));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto want = static_cast<int64_t>(
        std::isnan(values[i])
            ? 5
            : saturate8(static_cast<int64_t>(saturate(
                            static_cast<int64_t>(std::max(-1e9F, std::min(1e9F, std::nearbyint(values[i] / 0.1F)))),
                            -1000, 1000)) +
                        5));
    const int8_t got = run.at(q).as<int8_t>()[i];
    ASSERT_EQ(got, want) << values[i];
    const float real = static_cast<float>(got - 5) * 0.1F;
    ASSERT_EQ(run.at(q2).as<int8_t>()[i], saturate8(static_cast<int64_t>(std::nearbyint(real / 0.037F)) - 60));
    ASSERT_EQ(run.at(h).as<uint16_t>()[i], float_to_half(real));
    ASSERT_EQ(run.at(back).as<float>()[i], half_to_float(float_to_half(real)));
    ASSERT_EQ(run.at(from_half).as<int8_t>()[i], got);
    ASSERT_EQ(run.at(plain_q).as<int8_t>()[i], got);
  }
  EXPECT_EQ(run.at(q).as<int8_t>()[3], 7);
}

TEST(SimKernels, MovesKeepRawElements) {
  Random random(31);
  Builder b;
  const Shape s{2, 19, 3, 4}, ts{2, 3, 4, 19};
  const int x = b.int8("x", s, 0.1F, 5), y = b.int8("y", ts, 0.1F, 5);
  b.input("x", x);
  b.task(TaskKind::kMove, "Transpose", {x}, {y}).attributes.set("perm", std::vector<int64_t>{0, 2, 3, 1});
  const int h = b.half("h", s), ht = b.half("ht", ts);
  b.input("h", h);
  b.task(TaskKind::kMove, "Transpose", {h}, {ht}).attributes.set("perm", std::vector<int64_t>{0, 2, 3, 1});
  b.output("y", y);
  b.output("ht", ht);
  const Program p = b.finish();
  Recording run;
  run_both(p, {{"x", random_int8_values(random, s, 0.1F, 5)}, {"h", random_half_values(random, s, 3)}}, run);
  ASSERT_TRUE(run.count(ht));
  for_indices(ts, [&](const std::vector<int64_t>& i) {
    ASSERT_EQ(run.at(y).as<int8_t>()[at(ts, i)], run.at(x).as<int8_t>()[at(s, {i[0], i[3], i[1], i[2]})]);
    ASSERT_EQ(run.at(ht).as<uint16_t>()[at(ts, i)], run.at(h).as<uint16_t>()[at(s, {i[0], i[3], i[1], i[2]})]);
  });
}

TEST(SimKernels, ModelledTasksRoundOnceAndCpuTasksWorkOnPlainTensors) {
  Random random(32);
  Builder b;
  const Shape s{1, 11, 3, 4};
  const int x = b.half("x", s), y = b.half("y", s), plain = b.plain("plain", DType::kFloat32, s),
            z = b.plain("z", DType::kFloat32, s);
  b.input("x", x);
  b.task(TaskKind::kModelled, "Sqrt", {x}, {y});
  b.task(TaskKind::kConvert, "exDataConvert", {y}, {plain});
  b.task(TaskKind::kCpu, "Add", {plain, plain}, {z});
  b.output("z", z);
  const Program p = b.finish();
  std::vector<float> values;
  for (int64_t i = 0; i < s.elements(); ++i) values.push_back(half_to_float(float_to_half(random.real(0, 50))));
  Recording run;
  run_both(p, {{"x", Tensor::from<float>(s, values)}}, run);
  ASSERT_TRUE(run.count(z));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t root = float_to_half(std::sqrt(values[i]));
    ASSERT_EQ(run.at(y).as<uint16_t>()[i], root);
    ASSERT_EQ(run.at(z).as<float>()[i], 2 * half_to_float(root));
  }
}

TEST(SimKernels, AnUnknownOperatorIsAnErrorAtLoading) {
  Builder b;
  const int x = b.plain("x", DType::kFloat32, Shape{2}), y = b.plain("y", DType::kFloat32, Shape{2});
  b.input("x", x);
  b.task(TaskKind::kCpu, "NoSuchOperator", {x}, {y});
  b.output("y", y);
  const Program p = b.finish();
  const auto machine = Machine::load(p);
  ASSERT_FALSE(machine.ok());
  EXPECT_NE(machine.error().message().find("NoSuchOperator"), std::string::npos);
}

}  // namespace
}  // namespace openrknn::sim
