// Products of two fp16 tensors against sums in groups, written out.
#include "kernels/matmul_plan.hpp"
#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using namespace test;  // NOLINT

// Multiples of 2^-9 below 8: products and their sums are exact in doubles.
Tensor random_steps(Random& random, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (auto& v : values) v = static_cast<float>(random.between(-2047, 2047)) / 256.0F;
  return Tensor::from<float>(shape, values);
}

std::vector<uint16_t> expected(const Tensor& a, const Tensor& b, const MatMulPlan& plan, int64_t group) {
  std::vector<uint16_t> c;
  for (size_t p = 0; p < plan.a_batch.size(); ++p) {
    const float* rows = a.as<float>().data() + plan.a_batch[p] * plan.m * plan.k;
    const float* columns = b.as<float>().data() + plan.b_batch[p] * plan.k * plan.n;
    for (int64_t i = 0; i < plan.m; ++i) {
      for (int64_t j = 0; j < plan.n; ++j) {
        float sum = 0;
        for (int64_t first = 0; first < plan.k; first += group) {
          double part = 0;
          for (int64_t l = first; l < std::min(first + group, plan.k); ++l)
            part += static_cast<double>(rows[i * plan.k + l]) * static_cast<double>(columns[l * plan.n + j]);
          sum += static_cast<float>(part);
        }
        c.push_back(float_to_half(sum));
      }
    }
  }
  return c;
}

struct Case {
  Shape a, b;
};

TEST(SimMatMul, SumsInGroupsAlongK) {
  uint64_t seed = 1;
  for (const Case& s :
       {Case{{4, 40}, {40, 9}}, Case{{1, 300}, {300, 17}}, Case{{2, 3, 5, 64}, {2, 3, 64, 7}},
        Case{{1, 4, 6, 33}, {1, 4, 33, 16}}, Case{{3, 5, 20}, {20, 8}}, Case{{5, 20}, {3, 20, 8}},
        Case{{2, 1, 5, 96}, {3, 96, 4}}, Case{{64}, {64, 5}}, Case{{2, 6, 64}, {64}}, Case{{49, 128}, {128, 49}}}) {
    SCOPED_TRACE(s.a.to_string() + " x " + s.b.to_string());
    Random random(seed++);
    const auto plan = matmul_plan(s.a, s.b);
    ASSERT_TRUE(plan.ok());
    Builder builder;
    const int a = builder.half("a", s.a), b = builder.half("b", s.b), y = builder.half("y", plan->output);
    builder.input("a", a);
    builder.input("b", b);
    builder.task(TaskKind::kMatMul, "MatMul", {a, b}, {y});
    builder.output("y", y);
    const Tensor av = random_steps(random, s.a), bv = random_steps(random, s.b);
    Recording run;
    const Program program = builder.finish();
    run_both(program, {{"a", av}, {"b", bv}}, run);
    ASSERT_TRUE(run.count(y));
    EXPECT_EQ(halves(run.at(y)), expected(av, bv, *plan, program.profile.fp16_group));
  }
}

TEST(SimMatMul, ExtentsThatDoNotFitAreAnError) {
  Builder builder;
  const int a = builder.half("a", {4, 8}), b = builder.half("b", {9, 5}), c = builder.half("c", {8, 5});
  const int y = builder.half("y", {4, 5}), z = builder.half("z", {5, 4});
  for (const auto& [name, id] : {std::pair{"a", a}, {"b", b}, {"c", c}}) builder.input(name, id);
  builder.task(TaskKind::kMatMul, "MatMul", {a, b}, {y});
  builder.task(TaskKind::kMatMul, "MatMul", {a, c}, {z});
  builder.output("y", y);
  builder.output("z", z);
  Program program = builder.finish();
  const auto outer = program.tasks[1];
  program.tasks.resize(1);
  EXPECT_FALSE(Machine::load(program).ok());
  program.tasks[0] = outer;
  EXPECT_FALSE(Machine::load(program).ok());
}

}  // namespace
}  // namespace openrknn::sim
