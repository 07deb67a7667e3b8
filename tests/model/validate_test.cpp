#include <gtest/gtest.h>

#include <functional>

#include "model/builder.hpp"

namespace openrknn::model {
namespace {

using test::Builder;

// x -> MaxPool -> y -> Add(y, y) -> z
Program chain() {
  Builder b;
  const int x = b.int8("x", Shape{1, 20, 8, 8}, 0.5F, 1);
  const int y = b.int8("y", Shape{1, 20, 4, 4}, 0.5F, 1);
  const int z = b.int8("z", Shape{1, 20, 4, 4}, 1.0F, 0);
  b.input("x", x);
  Task& pool = b.task(TaskKind::kPool, "MaxPool", {x}, {y});
  pool.pool = Pool{false, {2, 2}, {2, 2}, {0, 0, 0, 0}, -128};
  b.tile(pool, 16, 3, 2);
  Task& add = b.task(TaskKind::kElementwise, "Add", {y, y}, {z});
  add.requant = Requant{false, 0, 0, 1, 1, 0};
  add.operands = {Operand{-1, 1, 0}, Operand{-1, 1, 0}};
  b.output("z", z);
  return b.finish();
}

TEST(Validate, AcceptsAProperProgram) {
  const auto status = validate(chain());
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST(Validate, AcceptsBuffersThatShareBytesAtDifferentTimes) {
  Program p = chain();
  p.buffers[0].last_task = 0;  // x dies with the pool
  p.buffers[1].first_task = 0;
  p.buffers[1].last_task = 1;
  p.buffers[2].first_task = 1;
  p.buffers[2].offset = p.buffers[0].offset;
  EXPECT_TRUE(validate(p).ok()) << validate(p).error().message();
  p.buffers[0].last_task = 1;
  EXPECT_FALSE(validate(p).ok());
}

TEST(Validate, NamesWhatIsWrong) {
  struct Case {
    const char* what;
    std::function<void(Program&)> damage;
  };
  const std::vector<Case> cases{
      {"tensor index", [](Program& p) { p.tasks[0].inputs[0] = 99; }},
      {"negative tensor index", [](Program& p) { p.tasks[1].inputs[1] = -1; }},
      {"no result", [](Program& p) { p.tasks[1].outputs.clear(); }},
      {"buffer index", [](Program& p) { p.tensors[1].buffer = 3; }},
      {"no place", [](Program& p) { p.tensors[1].buffer = kNone; }},
      {"offset outside", [](Program& p) { p.tensors[1].offset = 64; }},
      {"huge offset", [](Program& p) { p.tensors[1].offset = INT64_MAX; }},
      {"stride overflow", [](Program& p) { p.tensors[0].surface_stride = INT64_MAX / 2 + 1; }},
      {"stride too small", [](Program& p) { p.tensors[0].row_stride = 16; }},
      {"arena", [](Program& p) { p.arena_size -= 1; }},
      {"unaligned buffer", [](Program& p) { p.buffers[1].offset += 1; }},
      {"overlap", [](Program& p) { p.buffers[1].offset = p.buffers[0].offset; }},
      {"lifetime ends early", [](Program& p) { p.buffers[1].last_task = 0; }},
      {"output dies", [](Program& p) { p.buffers[2].last_task = 1; }},
      {"read before write", [](Program& p) { std::swap(p.tasks[0], p.tasks[1]); }},
      {"never written", [](Program& p) { p.inputs.clear(); }},
      {"result over operand", [](Program& p) { p.tensors[1].buffer = 0; }},
      {"missing tile", [](Program& p) { p.tasks[0].tiles.pop_back(); }},
      {"doubled tile", [](Program& p) { p.tasks[0].tiles.push_back(p.tasks[0].tiles[0]); }},
      {"tile beyond", [](Program& p) { p.tasks[0].tiles[0].ohs += 4; }},
      {"tile without its input", [](Program& p) { p.tasks[0].tiles[0].ihs -= 1; }},
      {"tile input outside", [](Program& p) { p.tasks[0].tiles[0].ih = -1; }},
      {"kernel 0", [](Program& p) { p.tasks[0].pool->kernel[0] = 0; }},
      {"window outside", [](Program& p) { p.tasks[0].pool->kernel[0] = 5; }},
      {"pool changes scale", [](Program& p) { p.tensors[1].quant->scales[0] = 1; }},
      {"scale 0", [](Program& p) { p.tensors[1].quant->scales[0] = 0; }},
      {"no scale", [](Program& p) { p.tensors[1].quant.reset(); }},
      {"zero point", [](Program& p) { p.tensors[1].quant->zero_points[0] = 128; }},
      {"shift", [](Program& p) { p.tasks[1].requant->shift = 63; }},
      {"negative shift", [](Program& p) { p.tasks[1].operands[0].shift = -1; }},
      {"operand count", [](Program& p) { p.tasks[1].operands.pop_back(); }},
      {"no requant", [](Program& p) { p.tasks[1].requant.reset(); }},
      {"broadcast", [](Program& p) { p.tasks[1].inputs[1] = 0; }},
      {"operator", [](Program& p) { p.tasks[1].op = "Pow"; }},
      {"table", [](Program& p) { p.tasks[1].activation.kind = ActivationKind::kTable; }},
      {"shape",
       [](Program& p) {
         p.tensors[1].shape = Shape{1, 20, 4, 5};
       }},
      {"dtype", [](Program& p) { p.tensors[1].dtype = DType::kFloat32; }},
      {"port", [](Program& p) { p.outputs[0].tensor = 3; }},
      {"port shape",
       [](Program& p) {
         p.inputs[0].source_shape = Shape{1, 2, 3};
       }},
      {"std 0", [](Program& p) { p.inputs[0].std_dev = std::vector<float>(20, 0.0F); }},
      {"mean count",
       [](Program& p) {
         p.inputs[0].mean = {1, 2};
       }},
      {"blob",
       [](Program& p) {
         p.blobs.push_back({64, 64});
       }},
      {"profile", [](Program& p) { p.profile.fp16_group = 65; }},
  };
  for (const auto& c : cases) {
    Program p = chain();
    c.damage(p);
    const auto status = validate(p);
    ASSERT_FALSE(status.ok()) << c.what;
    EXPECT_FALSE(status.error().where.empty()) << c.what;
    EXPECT_FALSE(status.error().why.empty()) << c.what;
  }
}

TEST(Validate, ConcatOperandsMayLieInTheirResult) {
  Builder b;
  const int x = b.int8("x", Shape{2, 16, 3, 3}, 0.5F, 1);
  TensorDesc whole = Builder::desc("whole", DType::kInt8, Shape{2, 40, 3, 3}, Layout::kNC1HWC2);
  whole.quant = QuantParams::per_tensor(DType::kInt8, 0.5F, 1);
  const int root = b.add(whole);
  const auto slice = [&](const char* name, int64_t channels, int64_t plane) {
    TensorDesc t = b.program().tensor(root);
    t.name = name;
    t.shape = Shape{2, channels, 3, 3};
    t.cube = cube_of(t.shape);
    t.offset = plane * t.surface_stride;
    return b.place(t);
  };
  const int first = slice("first", 16, 0), second = slice("second", 24, 1);
  const int y = b.int8("y", Shape{2, 24, 3, 3}, 0.5F, 1);
  b.input("x", x);
  b.input("y", y);
  const auto copy = [&](int from, int to) {
    Task& t = b.task(TaskKind::kActivation, "Relu", {from}, {to});
    t.requant = Requant{false, 0, 0, 1, 0, 1};
  };
  copy(x, first);
  copy(y, second);
  Task& concat = b.task(TaskKind::kConcat, "Concat", {first, second}, {root});
  concat.in_place = true;
  b.output("whole", root);
  const Program p = b.finish();
  EXPECT_TRUE(validate(p).ok()) << validate(p).error().message();
  Program wrong = p;
  wrong.tensors[static_cast<size_t>(second)].offset = 0;  // over the first
  EXPECT_FALSE(validate(wrong).ok());
}

}  // namespace
}  // namespace openrknn::model
