#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using model::ActivationKind;
using namespace test;  // NOLINT

// The row-major index into an operand of cube b for element i of a result of cube y.
size_t broadcast_index(const model::Cube& y, const model::Cube& b, int64_t i) {
  const int64_t w = i % y.w, h = i / y.w % y.h, c = i / (y.w * y.h) % y.c, n = i / (y.w * y.h * y.c);
  const auto of = [](int64_t x, int64_t extent) { return extent == 1 ? 0 : x; };
  return static_cast<size_t>(((of(n, b.n) * b.c + of(c, b.c)) * b.h + of(h, b.h)) * b.w + of(w, b.w));
}

int64_t combine(const std::string& op, int64_t a, int64_t b) {
  if (op == "Add") return saturate32(a + b);
  if (op == "Sub") return saturate32(a - b);
  if (op == "Mul") return a * b;
  return op == "Max" ? std::max(a, b) : std::min(a, b);
}

float combine(const std::string& op, float a, float b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  return op == "Max" ? std::max(a, b) : std::min(a, b);
}

void check_int8(const std::string& op, const Shape& as, const Shape& bs, const Shape& ys, bool constant,
                uint64_t seed) {
  Random random(seed);
  Builder b;
  const int a = b.int8("a", as, 0.5F, 3);
  b.input("a", a);
  Tensors inputs{{"a", random_int8_values(random, as, 0.5F, 3)}};
  int second = 0;
  std::vector<int8_t> constant_values;
  if (constant) {
    constant_values = random.bytes(bs.elements());
    TensorDesc t = Builder::desc("b", DType::kInt8, bs, model::Layout::kNC1HWC2);
    t.quant = QuantParams::per_tensor(DType::kInt8, 0.25F, -4);
    second = b.constant(t, constant_values.data());
  } else {
    second = b.int8("b", bs, 0.25F, -4);
    b.input("b", second);
    inputs["b"] = random_int8_values(random, bs, 0.25F, -4);
  }
  const int y = b.int8("y", ys, 1.0F, 7);
  Task& task = b.task(TaskKind::kElementwise, op, {a, second}, {y});
  task.operands = {model::Operand{-3, 30000, 7}, model::Operand{4, 15000, 7}};
  task.requant = model::Requant{false, 0, 0, 20000, op == "Mul" ? 21 : 23, 7};
  task.activation.kind = ActivationKind::kClamp;
  task.activation.min = -20000;
  task.activation.max = 25000;
  b.output("y", y);
  const Program p = b.finish();
  Recording run;
  run_both(p, inputs, run);
  ASSERT_TRUE(run.count(y));
  const auto av = int8s(run.at(a)), bv = constant ? constant_values : int8s(run.at(second)), got = int8s(run.at(y));
  for (int64_t i = 0; i < ys.elements(); ++i) {
    const int64_t x1 = av[broadcast_index(p.tensor(y).cube, p.tensor(a).cube, i)] - 3,
                  x2 = bv[broadcast_index(p.tensor(y).cube, p.tensor(second).cube, i)] + 4;
    const bool product = op == "Mul";
    int64_t v = combine(op, product ? x1 : round_shift(x1 * 30000, 7), product ? x2 : round_shift(x2 * 15000, 7));
    v = saturate(v, -20000, 25000);
    ASSERT_EQ(got[static_cast<size_t>(i)], saturate8(round_shift(v * 20000, product ? 21 : 23) + 7)) << op << " " << i;
  }
}

TEST(SimElementwise, Int8OperatorsAndBroadcasts) {
  uint64_t seed = 1;
  for (const std::string op : {"Add", "Sub", "Mul", "Max", "Min"}) {
    for (const bool constant : {false, true}) {
      check_int8(op, Shape{2, 20, 5, 6}, Shape{2, 20, 5, 6}, Shape{2, 20, 5, 6}, constant, ++seed);
      check_int8(op, Shape{1, 20, 5, 6}, Shape{1, 20, 1, 1}, Shape{1, 20, 5, 6}, constant, ++seed);
      check_int8(op, Shape{2, 20, 5, 6}, Shape{1, 1, 1, 1}, Shape{2, 20, 5, 6}, constant, ++seed);
      check_int8(op, Shape{1, 20, 5, 1}, Shape{2, 1, 5, 6}, Shape{2, 20, 5, 6}, constant, ++seed);
      check_int8(op, Shape{3, 33}, Shape{1, 33}, Shape{3, 33}, constant, ++seed);
      // One channel for all, of pixels that are all there.
      check_int8(op, Shape{2, 20, 5, 6}, Shape{2, 1, 5, 6}, Shape{2, 20, 5, 6}, constant, ++seed);
      check_int8(op, Shape{1, 9}, Shape{1, 1}, Shape{1, 9}, constant, ++seed);
    }
  }
}

void check_half(const std::string& op, const Shape& bs, uint64_t seed) {
  Random random(seed);
  Builder b;
  const Shape ys{2, 11, 4, 5};
  const int a = b.half("a", ys), second = b.half("b", bs), y = b.half("y", ys);
  b.input("a", a);
  b.input("b", second);
  b.task(TaskKind::kElementwise, op, {a, second}, {y});
  b.output("y", y);
  const Program p = b.finish();
  Recording run;
  run_both(p, {{"a", random_half_values(random, ys, 9)}, {"b", random_half_values(random, bs, 9)}}, run);
  ASSERT_TRUE(run.count(y));
  for (int64_t i = 0; i < ys.elements(); ++i) {
    const float x1 = half_to_float(run.at(a).as<uint16_t>()[static_cast<size_t>(i)]);
    const float x2 =
        half_to_float(run.at(second).as<uint16_t>()[broadcast_index(p.tensor(y).cube, p.tensor(second).cube, i)]);
    ASSERT_EQ(run.at(y).as<uint16_t>()[static_cast<size_t>(i)], float_to_half(combine(op, x1, x2))) << op << " " << i;
  }
}

TEST(SimElementwise, HalfOperators) {
  uint64_t seed = 500;
  for (const std::string op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    check_half(op, Shape{2, 11, 4, 5}, ++seed);
    check_half(op, Shape{1, 11, 1, 1}, ++seed);
    check_half(op, Shape{2, 1, 4, 5}, ++seed);
    check_half(op, Shape{1, 1, 1, 1}, ++seed);
  }
}

TEST(SimElementwise, ResultMayLieOverItsOperand) {
  Random random(9);
  Builder b;
  const Shape s{1, 20, 3, 4};
  const int a = b.int8("a", s, 0.5F, 0), c = b.int8("c", s, 0.5F, 0);
  TensorDesc t = b.program().tensor(a);
  t.name = "y";
  const int y = b.place(t);
  b.input("a", a);
  b.input("c", c);
  Task& task = b.task(TaskKind::kElementwise, "Add", {a, c}, {y});
  task.operands = {model::Operand{0, 1, 0}, model::Operand{0, 1, 0}};
  task.requant = model::Requant{false, 0, 0, 1, 0, 0};
  b.output("y", y);
  const Program p = b.finish();
  const Tensors inputs{{"a", random_int8_values(random, s, 0.5F, 0)}, {"c", random_int8_values(random, s, 0.5F, 0)}};
  Recording run;
  run_both(p, inputs, run);
  const auto av = int8s(run.at(a)), cv = int8s(run.at(c)), got = int8s(run.at(y));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], saturate8(av[i] + cv[i]));
}

TEST(SimActivation, Int8KindsFollowTheirFormulas) {
  for (const auto kind :
       {ActivationKind::kLinear, ActivationKind::kClamp, ActivationKind::kPRelu, ActivationKind::kTable}) {
    Random random(static_cast<uint64_t>(kind) + 40);
    Builder b;
    const Shape s{1, 19, 4, 4};
    const int x = b.int8("x", s, 0.5F, -11), y = b.int8("y", s, 0.5F, 5);
    b.input("x", x);
    std::vector<int16_t> slopes, table;
    for (int i = 0; i < 19; ++i) slopes.push_back(static_cast<int16_t>(random.between(-20000, 20000)));
    for (int i = 0; i < 1026; ++i) table.push_back(static_cast<int16_t>(random.between(-300, 300)));
    const int slope_blob = b.blob(slopes), table_blob = b.blob(table);
    Task& task = b.task(TaskKind::kActivation, "PRelu", {x}, {y});
    task.activation.kind = kind;
    task.activation.min = -30;
    task.activation.max = 60;
    task.activation.slopes = slope_blob;
    task.activation.slope_count = 19;
    task.activation.slope_shift = 14;
    task.activation.table = table_blob;
    task.activation.index_scale = 150;
    task.activation.index_shift = 1;
    task.requant = model::Requant{false, 0, 0, 20000, 15, 5};
    b.output("y", y);
    const Program p = b.finish();
    Recording run;
    run_both(p, {{"x", random_int8_values(random, s, 0.5F, -11)}}, run);
    ASSERT_TRUE(run.count(y));
    const auto xv = int8s(run.at(x)), got = int8s(run.at(y));
    for (size_t i = 0; i < got.size(); ++i) {
      int64_t v = xv[i] + 11;
      if (kind == ActivationKind::kClamp) v = saturate(v, -30, 60);
      if (kind == ActivationKind::kPRelu && v < 0) v = round_shift(v * slopes[i / 16], 14);
      if (kind == ActivationKind::kTable) {
        const int64_t index = saturate(round_shift(v * 150, 1), -16384, 16384), d = index < 0 ? index + 16384 : index;
        const size_t base = index < 0 ? 0 : 513, cell = static_cast<size_t>(d / 32);
        const double low = table[base + cell], high = cell == 512 ? low : table[base + cell + 1];
        v = static_cast<int64_t>(low + std::floor((high - low) * static_cast<double>(d % 32) / 32));
      }
      ASSERT_EQ(got[i], saturate8(round_shift(v * 20000, 15) + 5)) << i;
    }
  }
}

TEST(SimActivation, HalfTables) {
  for (const auto form : {model::TableForm::kValue, model::TableForm::kGate, model::TableForm::kPlus}) {
    Random random(static_cast<uint64_t>(form) + 60);
    Builder b;
    const Shape s{1, 9, 4, 4};
    const int x = b.half("x", s), y = b.half("y", s);
    b.input("x", x);
    std::vector<int16_t> table;
    for (int i = 0; i < 1026; ++i) table.push_back(static_cast<int16_t>(random.between(-32768, 32767)));
    const int blob = b.blob(table);
    Task& task = b.task(TaskKind::kActivation, "exSwish", {x}, {y});
    task.activation.kind = ActivationKind::kTable;
    task.activation.form = form;
    task.activation.table = blob;
    task.activation.findex_scale = 2048.0F;
    task.activation.out_scale = 1.0F / 32768;
    b.output("y", y);
    const Program p = b.finish();
    Recording run;
    run_both(p, {{"x", random_half_values(random, s, 10)}}, run);
    ASSERT_TRUE(run.count(y));
    for (size_t i = 0; i < static_cast<size_t>(s.elements()); ++i) {
      const float v = half_to_float(run.at(x).as<uint16_t>()[i]);
      const auto index =
          saturate(static_cast<int64_t>(std::nearbyint(static_cast<double>(v * 2048.0F))), -16384, 16384);
      const int64_t d = index < 0 ? index + 16384 : index;
      const size_t base = index < 0 ? 0 : 513, cell = static_cast<size_t>(d / 32);
      const double low = table[base + cell], high = cell == 512 ? low : table[base + cell + 1];
      const float t =
          static_cast<float>(low + std::floor((high - low) * static_cast<double>(d % 32) / 32)) * (1.0F / 32768);
      const float want = form == model::TableForm::kValue  ? t
                         : form == model::TableForm::kGate ? v * t
                                                           : std::max(v, 0.0F) + t;
      ASSERT_EQ(run.at(y).as<uint16_t>()[i], float_to_half(want)) << i;
    }
  }
}

}  // namespace
}  // namespace openrknn::sim
