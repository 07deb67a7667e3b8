#include <filesystem>

#include "base/parallel.hpp"
#include "model/container.hpp"
#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using model::Layout;
using namespace test;  // NOLINT

// input -> MaxPool -> output, with mean and std.
Program small(Layout layout = Layout::kNHWC) {
  Builder b;
  const int x = b.int8("x", Shape{1, 3, 6, 8}, 1.0F / 64, -5, layout);
  const int y = b.int8("y", Shape{1, 3, 3, 4}, 1.0F / 64, -5);
  b.input("image", x);
  b.program().inputs[0].mean = {123.675F, 116.28F, 103.53F};
  b.program().inputs[0].std_dev = {58.395F, 57.12F, 57.375F};
  Task& t = b.task(TaskKind::kPool, "MaxPool", {x}, {y});
  t.pool = model::Pool{false, {2, 2}, {2, 2}, {0, 0, 0, 0}, 0};
  b.tile(t, 16, 2, 4);
  b.output("result", y);
  return b.finish();
}

Tensor image(uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 144; ++i) pixels.push_back(static_cast<uint8_t>(random.between(0, 255)));
  return Tensor::from<uint8_t>(Shape{1, 3, 6, 8}, pixels);
}

TEST(Machine, InputsAreNormalizedAndQuantized) {
  const Program p = small();
  const Tensor pixels = image(1);
  Recording run;
  run_both(p, {{"image", pixels}}, run);
  for (size_t i = 0; i < 144; ++i) {
    const size_t c = i / 48;
    const float real = (static_cast<float>(pixels.as<uint8_t>()[i]) - p.inputs[0].mean[c]) / p.inputs[0].std_dev[c];
    EXPECT_EQ(run.at(0).as<int8_t>()[i], saturate8(static_cast<int64_t>(std::nearbyint(real / (1.0F / 64))) - 5));
  }
}

TEST(Machine, OutputsAreRealOrRaw) {
  const Program p = small();
  auto machine = Machine::load(p);
  ASSERT_TRUE(machine.ok());
  const auto real = machine->run({{"image", image(2)}});
  RunOptions options;
  options.raw_outputs = true;
  const auto raw = machine->run({{"image", image(2)}}, options);
  ASSERT_TRUE(real.ok() && raw.ok());
  for (size_t i = 0; i < 36; ++i)
    EXPECT_EQ(real->at("result").as<float>()[i],
              static_cast<float>(raw->at("result").as<int8_t>()[i] + 5) * (1.0F / 64));
  EXPECT_EQ(machine->task_ms().size(), 1U);
}

TEST(Machine, IntegerPortsStayExact) {
  Builder b;
  const int x = b.plain("x", DType::kInt64, Shape{3}), y = b.plain("y", DType::kInt64, Shape{3});
  b.input("x", x);
  b.task(TaskKind::kCpu, "Add", {x, x}, {y});
  b.output("y", y);
  const Program p = b.finish();
  Recording run;
  const std::vector<int64_t> values{(int64_t{1} << 53) + 1, -7, 0};
  run_both(p, {{"x", Tensor::from<int64_t>(Shape{3}, values)}}, run);
  ASSERT_TRUE(run.count(y));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(run.at(y).as<int64_t>()[i], 2 * values[i]);
}

TEST(Machine, WrongInputsAreErrors) {
  const Program p = small();
  auto machine = Machine::load(p);
  ASSERT_TRUE(machine.ok());
  EXPECT_NE(machine->run({}).error().message().find("image"), std::string::npos);
  EXPECT_NE(machine->run({{"picture", image(1)}}).error().message().find("picture"), std::string::npos);
  const auto shape = machine->run({{"image", Tensor(DType::kFloat32, Shape{1, 3, 6, 7})}});
  ASSERT_FALSE(shape.ok());
  EXPECT_NE(shape.error().why.find("[1, 3, 6, 7]"), std::string::npos);
}

TEST(Machine, TheNumberOfThreadsChangesNothing) {
  const Program p = small();
  auto machine = Machine::load(p);
  ASSERT_TRUE(machine.ok());
  set_thread_count(1);
  const auto one = machine->run({{"image", image(3)}});
  set_thread_count(7);
  const auto seven = machine->run({{"image", image(3)}});
  set_thread_count(0);
  ASSERT_TRUE(one.ok() && seven.ok());
  EXPECT_TRUE(same_bytes(one->at("result"), seven->at("result")));
}

// Nothing of the compiler is linked here: a stored file is enough.
TEST(Machine, RunsAStoredFile) {
  const Program p = small(Layout::kNC1HWC2);
  const std::string path = testing::TempDir() + "machine_test.rknn";
  ASSERT_TRUE(model::write_program(p, path).ok());
  const auto stored = model::read_program(path);
  ASSERT_TRUE(stored.ok()) << stored.error().message();
  auto a = Machine::load(p);
  auto b = Machine::load(*stored);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(same_bytes(a->run({{"image", image(4)}})->at("result"), b->run({{"image", image(4)}})->at("result")));
  std::filesystem::remove(path);
}

TEST(Machine, ADamagedFileNeverGivesAnotherResult) {
  const auto bytes = model::serialize(small());
  const auto good = model::parse_program(bytes, "good");
  ASSERT_TRUE(good.ok());
  const auto want = Machine::load(*good)->run({{"image", image(5)}});
  Random random(6);
  for (int i = 0; i < 2000; ++i) {
    auto damaged = bytes;
    damaged[static_cast<size_t>(random.between(0, static_cast<int64_t>(bytes.size()) - 1))] ^=
        static_cast<std::byte>(random.between(1, 255));
    const auto program = model::parse_program(damaged, "damaged");
    if (!program.ok()) continue;
    auto machine = Machine::load(*program);
    ASSERT_TRUE(machine.ok());
    EXPECT_TRUE(same_bytes(machine->run({{"image", image(5)}})->at("result"), want->at("result")));
  }
}

}  // namespace
}  // namespace openrknn::sim
