#include <functional>

#include "sim/harness.hpp"

namespace openrknn::sim {
namespace {

using model::Layout;
using namespace test;  // NOLINT

// A program with every kind of task whose numbers can go wrong.
Program zoo() {
  Builder b;
  Random random(1);
  const Shape s{2, 20, 6, 7};
  const int x = b.int8("x", s, 0.5F, 3), y = b.int8("y", s, 0.5F, 2), z = b.int8("z", Shape{2, 20, 3, 3}, 0.5F, 2);
  const int c = b.int8("c", Shape{2, 40, 3, 3}, 0.5F, 2), a = b.int8("a", Shape{2, 40, 3, 3}, 0.25F, 0),
            f = b.plain("f", DType::kFloat32, Shape{2, 40, 3, 3});
  b.input("x", x);
  model::Convolution k;
  k.kernel = {3, 3};
  k.pad = {1, 1, 1, 1};
  k.pad_value = 3;
  k.in_channels = k.out_channels = 20;
  k.weight_quant = QuantParams::per_tensor(DType::kInt8, 0.01F, 1);
  const auto w = random.bytes(20 * 20 * 9);
  k.weights = b.blob(pack_weights(k, std::as_bytes(std::span(w))));
  const std::vector<int32_t> twenty(20, 20000);
  k.params = b.blob(model::pack_params(b.program().profile, {twenty, std::vector<int32_t>(20, -1), twenty}));
  Task& conv = b.task(TaskKind::kConv, "Conv", {x}, {y});
  conv.conv = k;
  conv.requant = model::Requant{false, 14, 14, 20000, 22, 2};
  b.tile(conv, 32, 2, 7);
  Task& pool = b.task(TaskKind::kPool, "MaxPool", {y}, {z});
  pool.pool = model::Pool{false, {2, 2}, {2, 2}, {0, 0, 0, 0}, 0};
  b.tile(pool, 16, 1, 3);
  Task& concat = b.task(TaskKind::kConcat, "Concat", {z, z}, {c});
  concat.attributes.set("axis", 1);
  concat.operands = {model::Operand{-2, 1, 0}, model::Operand{-2, 1, 0}};
  Task& add = b.task(TaskKind::kElementwise, "Add", {c, c}, {a});
  add.operands = {model::Operand{-2, 1, 0}, model::Operand{-2, 1, 0}};
  add.requant = model::Requant{false, 0, 0, 1, 0, 0};
  b.task(TaskKind::kConvert, "exDataConvert", {a}, {f});
  b.output("f", f);
  return b.finish();
}

int64_t strange(Random& r, int64_t old) {
  constexpr int64_t kValues[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 7,
                                 16,
                                 17,
                                 64,
                                 127,
                                 128,
                                 255,
                                 4096,
                                 65535,
                                 65536,
                                 1 << 20,
                                 INT32_MAX,
                                 INT32_MIN,
                                 int64_t{1} << 40,
                                 INT64_MAX,
                                 INT64_MIN};
  switch (r.between(0, 3)) {
    case 0:
      return old + r.between(-3, 3);
    case 1:
      return kValues[r.between(0, static_cast<int64_t>(std::size(kValues)) - 1)];
    case 2:
      return old * 2;
    default:
      return r.between(-100, 100);
  }
}

template <typename T>
void twist(Random& r, T& value) {
  value = static_cast<T>(strange(r, static_cast<int64_t>(std::min<int64_t>(value, INT32_MAX))));
}

template <typename T>
T& pick(Random& r, std::vector<T>& items) {
  return items[static_cast<size_t>(r.between(0, static_cast<int64_t>(items.size()) - 1))];
}

void twist_tensor(Random& r, TensorDesc& t) {
  switch (r.between(0, 11)) {
    case 0:
      return twist(r, t.surface_stride);
    case 1:
      return twist(r, t.batch_stride);
    case 2:
      return twist(r, t.row_stride);
    case 3:
      return twist(r, t.offset);
    case 4:
      return twist(r, t.buffer);
    case 5:
      return twist(r, t.constant);
    case 6:
      return twist(r, t.c2);
    case 7:
      t.layout = static_cast<Layout>(r.between(0, 2));
      return;
    case 8:
      t.dtype = static_cast<DType>(r.between(0, 20));
      return;
    case 9: {  // a file's shapes pass Shape::make
      auto dims = t.shape.to_vector();
      pick(r, dims) = strange(r, 3);
      if (auto made = Shape::make(dims); made.ok()) t.shape = *made;
      t.cube = model::cube_of(t.shape);
      return;
    }
    case 10:
      t.quant.reset();
      return;
    default:
      t.cube.h = strange(r, t.cube.h);
  }
}

void twist_task(Random& r, Program& p, Task& t) {
  switch (r.between(0, 9)) {
    case 0:
      return twist(r, pick(r, t.inputs));
    case 1:
      return twist(r, pick(r, t.outputs));
    case 2:
      t.kind = static_cast<TaskKind>(r.between(0, 5));
      return;
    case 3:
      t.in_place = true;
      return;
    case 4:
      if (!t.tiles.empty()) {
        model::Tile& tile = pick(r, t.tiles);
        int32_t* fields[] = {&tile.n,   &tile.oc, &tile.ocs, &tile.oh, &tile.ohs, &tile.ow,
                             &tile.ows, &tile.ih, &tile.ihs, &tile.iw, &tile.iws};
        return twist(r, *fields[r.between(0, 10)]);
      }
      return;
    case 5:
      t.attributes.set("axis", strange(r, 1));
      return;
    case 6:
      if (t.conv) {
        model::Convolution& c = *t.conv;
        int32_t* fields[] = {&c.kernel[0], &c.kernel[1],    &c.stride[0],    &c.stride[1],    &c.pad[0],
                             &c.pad[3],    &c.dilation[1],  &c.in_channels,  &c.out_channels, &c.weights,
                             &c.params,    &c.kernel_group, &c.channel_group};
        return twist(r, *fields[r.between(0, 12)]);
      }
      return;
    case 7:
      if (t.conv) t.conv->transposed = true;
      if (t.pool) twist(r, t.pool->kernel[0]);
      return;
    case 8:
      std::swap(t, pick(r, p.tasks));
      return;
    default:
      if (t.requant) twist(r, t.requant->shift);
      if (!t.operands.empty()) twist(r, pick(r, t.operands).multiplier);
  }
}

// What validate() lets pass runs without a fault: for the sanitizers, mostly.
TEST(Hostile, WhatPassesValidationRuns) {
  const Program good = zoo();
  ASSERT_TRUE(validate(good).ok()) << validate(good).error().message();
  Random r(77);
  const Tensor x = random_int8_values(r, Shape{2, 20, 6, 7}, 0.5F, 3);
  int passed = 0;
  for (int i = 0; i < 20000; ++i) {
    Program p = good;
    const int64_t changes = r.between(1, 2);
    for (int64_t k = 0; k < changes; ++k) {
      switch (r.between(0, 4)) {
        case 0:
          twist_tensor(r, pick(r, p.tensors));
          break;
        case 1:
          twist(r, pick(r, p.buffers).size);
          break;
        case 2:
          twist(r, pick(r, p.buffers).last_task);
          break;
        default:
          twist_task(r, p, pick(r, p.tasks));
      }
    }
    if (p.arena_size != good.arena_size || !validate(p).ok()) continue;
    ++passed;
    auto machine = Machine::load(p);
    if (!machine.ok()) continue;
    RunOptions options;
    (void)machine->run({{"x", x}}, options);
    options.strict = true;
    (void)machine->run({{"x", x}}, options);
  }
  EXPECT_GT(passed, 100);
}

}  // namespace
}  // namespace openrknn::sim
