// Operators of old opsets arrive in the newest opset's form.
#include <gtest/gtest.h>

#include <stdexcept>

#include "model_file.hpp"

namespace openrknn::import {
namespace {

std::string failure(const Result<Imported>& result) { return result.ok() ? "" : result.error().message(); }

struct Found {
  Imported imported;
  const Node& producer(const std::string& name) const {
    return imported.graph.node(imported.graph.value(*imported.graph.find_value(name)).producer);
  }
  const Tensor* constant(const Node& node, size_t slot) const {
    return slot < node.inputs.size() ? imported.graph.constant(node.inputs[slot]) : nullptr;
  }
  std::vector<int64_t> ints(const Node& node, size_t slot) const {
    const Tensor* t = constant(node, slot);
    return t == nullptr ? std::vector<int64_t>{} : to_ints(t->view());
  }
  Shape shape(const std::string& name) const { return *imported.graph.value(*imported.graph.find_value(name)).shape; }
};

Found must_import(const ModelBuilder& b) {
  auto imported = import_built(b);
  if (!imported.ok()) throw std::runtime_error(failure(imported));  // ends the test as failed
  return {std::move(*imported)};
}

ModelBuilder one_input(int64_t opset, const std::vector<int64_t>& dims) {
  ModelBuilder b(opset);
  b.input("x", dims).output("y");
  return b;
}

using Ints = std::vector<int64_t>;

TEST(Upgrade, ClipLimits) {
  ModelBuilder b = one_input(6, {4});
  auto& clip = b.node("Clip", {"x"}, {"y"});
  set_float(clip, "min", -1);
  set_float(clip, "max", 6);
  const Found f = must_import(b);
  const Node& n = f.producer("y");
  ASSERT_EQ(n.inputs.size(), 3U);
  EXPECT_EQ(f.constant(n, 1)->as<float>()[0], -1);
  EXPECT_EQ(f.constant(n, 2)->as<float>()[0], 6);
  EXPECT_FALSE(n.attributes.has("min"));
  ModelBuilder half = one_input(10, {4});
  set_float(half.node("Clip", {"x"}, {"y"}), "max", 6);
  const Found g = must_import(half);
  EXPECT_FALSE(g.producer("y").inputs[1].valid());
  EXPECT_TRUE(g.producer("y").inputs[2].valid());
}

TEST(Upgrade, AxesBecomeInputs) {
  ModelBuilder squeeze = one_input(11, {1, 3, 1});
  set_ints(squeeze.node("Squeeze", {"x"}, {"y"}), "axes", {2});
  EXPECT_EQ(must_import(squeeze).shape("y"), (Shape{1, 3}));
  ModelBuilder unsqueeze = one_input(11, {3});
  set_ints(unsqueeze.node("Unsqueeze", {"x"}, {"y"}), "axes", {0, 2});
  EXPECT_EQ(must_import(unsqueeze).shape("y"), (Shape{1, 3, 1}));
  ModelBuilder mean = one_input(13, {2, 3, 4});
  set_ints(mean.node("ReduceMean", {"x"}, {"y"}), "axes", {-1});
  const Found f = must_import(mean);
  EXPECT_EQ(f.shape("y"), (Shape{2, 3, 1}));
  EXPECT_EQ(f.ints(f.producer("y"), 1), Ints{-1});
  ModelBuilder sum = one_input(12, {2, 3, 4});
  set_ints(sum.node("ReduceSum", {"x"}, {"y"}), "axes", {1});
  EXPECT_EQ(must_import(sum).shape("y"), (Shape{2, 1, 4}));
}

TEST(Upgrade, SliceAttributes) {
  ModelBuilder b = one_input(9, {5, 6});
  auto& slice = b.node("Slice", {"x"}, {"y"});
  set_ints(slice, "axes", {1});
  set_ints(slice, "starts", {1});
  set_ints(slice, "ends", {4});
  EXPECT_EQ(must_import(b).shape("y"), (Shape{5, 3}));
  ModelBuilder all = one_input(1, {5, 6});
  auto& plain = all.node("Slice", {"x"}, {"y"});
  set_ints(plain, "starts", {1, 2});
  set_ints(plain, "ends", {4, 6});
  EXPECT_EQ(must_import(all).shape("y"), (Shape{3, 4}));
}

TEST(Upgrade, PadAttributes) {
  ModelBuilder b = one_input(10, {2, 3});
  auto& pad = b.node("Pad", {"x"}, {"y"});
  set_ints(pad, "pads", {0, 1, 0, 2});
  set_float(pad, "value", 7);
  const Found f = must_import(b);
  EXPECT_EQ(f.shape("y"), (Shape{2, 6}));
  EXPECT_EQ(f.constant(f.producer("y"), 2)->as<float>()[0], 7);
}

TEST(Upgrade, SplitSizesAndParts) {
  ModelBuilder sizes = one_input(11, {4, 2});
  sizes.output("z");
  set_ints(sizes.node("Split", {"x"}, {"y", "z"}), "split", {1, 3});
  EXPECT_EQ(must_import(sizes).shape("z"), (Shape{3, 2}));
  ModelBuilder equal = one_input(13, {4, 2});
  equal.output("z");
  equal.node("Split", {"x"}, {"y", "z"});
  const Found f = must_import(equal);
  EXPECT_EQ(f.shape("z"), (Shape{2, 2}));
  EXPECT_EQ(f.producer("y").attributes.int_or("num_outputs", 0), 2);
}

TEST(Upgrade, DropoutIsNoRandomness) {
  ModelBuilder b = one_input(7, {4});
  set_float(b.node("Dropout", {"x"}, {"y", "mask"}), "ratio", 0.5F);
  const Found f = must_import(b);
  EXPECT_EQ(f.producer("y").inputs.size(), 1U);
}

TEST(Upgrade, SoftmaxOverSeveralAxes) {
  ModelBuilder b = one_input(11, {2, 3, 4});
  set_int(b.node("Softmax", {"x"}, {"y"}), "axis", 1);
  const Found f = must_import(b);
  const Node& last = f.producer("y");
  ASSERT_EQ(last.op, "Reshape");
  EXPECT_EQ(f.ints(last, 1), (Ints{2, 3, 4}));
  const Node& softmax = f.imported.graph.node(f.imported.graph.value(last.inputs[0]).producer);
  EXPECT_EQ(softmax.op, "Softmax");
  EXPECT_EQ(softmax.attributes.int_or("axis", -1), 1);
  EXPECT_EQ(*f.imported.graph.value(softmax.inputs[0]).shape, (Shape{2, 12}));
  for (const auto& [dims, axis] : {std::pair<Ints, int>{{2, 12}, 1}, {{2, 12, 1, 1}, 1}, {{2, 3, 12}, 2}}) {
    ModelBuilder plain = one_input(11, dims);
    set_int(plain.node("Softmax", {"x"}, {"y"}), "axis", axis);
    const Found g = must_import(plain);
    EXPECT_EQ(g.imported.graph.node_count(), 1U);
    EXPECT_EQ(g.producer("y").attributes.int_or("axis", -1), axis);
  }
  ModelBuilder standard = one_input(11, {2, 12});
  standard.node("Softmax", {"x"}, {"y"});  // the old default is axis 1
  EXPECT_EQ(must_import(standard).producer("y").attributes.int_or("axis", -1), 1);
}

TEST(Upgrade, UpsampleAndOldResize) {
  ModelBuilder attribute = one_input(7, {1, 1, 2, 2});
  set_floats(attribute.node("Upsample", {"x"}, {"y"}), "scales", {1, 1, 2, 3});
  ModelBuilder input = one_input(9, {1, 1, 2, 2});
  input.floats("scales", {4}, {1, 1, 2, 3});
  set_string(input.node("Upsample", {"x", "scales"}, {"y"}), "mode", "linear");
  ModelBuilder resize = one_input(10, {1, 1, 2, 2});
  resize.floats("scales", {4}, {1, 1, 2, 3});
  resize.node("Resize", {"x", "scales"}, {"y"});
  for (const ModelBuilder* b : {&attribute, &input, &resize}) {
    const Found f = must_import(*b);
    EXPECT_EQ(f.shape("y"), (Shape{1, 1, 4, 6}));
    const Node& n = f.producer("y");
    EXPECT_EQ(n.op, "Resize");
    EXPECT_EQ(n.attributes.string_or("coordinate_transformation_mode", ""), "asymmetric");
    EXPECT_EQ(n.attributes.string_or("nearest_mode", "floor"), "floor");
    EXPECT_FALSE(n.inputs[1].valid());
  }
}

TEST(Upgrade, EmptyResizeOperandsAreAbsent) {
  ModelBuilder b = one_input(11, {1, 1, 2, 2});
  b.floats("none", {0}, {}).ints("sizes", {4}, {1, 1, 4, 4});
  set_string(b.node("Resize", {"x", "none", "none", "sizes"}, {"y"}), "mode", "nearest");
  const Found f = must_import(b);
  EXPECT_FALSE(f.producer("y").inputs[1].valid());
  EXPECT_FALSE(f.producer("y").inputs[2].valid());
  EXPECT_EQ(f.shape("y"), (Shape{1, 1, 4, 4}));
}

TEST(Upgrade, OldBroadcasting) {
  ModelBuilder b = one_input(6, {2, 3, 4});
  b.floats("w", {3}, {1, 2, 3});
  auto& add = b.node("Add", {"x", "w"}, {"y"});
  set_int(add, "broadcast", 1);
  set_int(add, "axis", 1);
  const Found f = must_import(b);
  EXPECT_EQ(f.constant(f.producer("y"), 1)->shape(), (Shape{3, 1}));
}

TEST(Upgrade, ReshapeAttribute) {
  ModelBuilder b = one_input(1, {2, 3});
  set_ints(b.node("Reshape", {"x"}, {"y"}), "shape", {3, -1});
  EXPECT_EQ(must_import(b).shape("y"), (Shape{3, 2}));
}

TEST(Upgrade, BatchNormOfOldOpsets) {
  ModelBuilder b = one_input(7, {1, 2, 3, 3});
  b.floats("s", {2}, {1, 1}).floats("b", {2}, {0, 0}).floats("m", {2}, {0, 0}).floats("v", {2}, {1, 1});
  auto& bn = b.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "mean", "var", "saved_mean", "saved_var"});
  set_int(bn, "spatial", 1);
  set_float(bn, "momentum", 0.9F);
  const Found f = must_import(b);
  EXPECT_EQ(f.producer("y").outputs.size(), 1U);
  EXPECT_FALSE(f.producer("y").attributes.has("spatial"));
  b.graph().mutable_node(0)->mutable_attribute(0)->set_i(0);
  EXPECT_NE(failure(import_built(b)).find("spatial"), std::string::npos);
}

TEST(Upgrade, FloatsAreComputedInFloat32) {
  ModelBuilder b(13);
  b.input("x", {2}, 10).output("z");
  auto& cast = b.node("Cast", {"x"}, {"y"});
  set_int(cast, "to", 11);
  b.node("Relu", {"y"}, {"z"});
  const Found f = must_import(b);
  EXPECT_EQ(f.imported.graph.value(f.imported.graph.inputs()[0]).dtype, DType::kFloat32);
  EXPECT_EQ(f.producer("y").attributes.int_or("to", 0), 1);
  EXPECT_EQ(f.imported.warnings.size(), 1U);
}

TEST(Upgrade, AxisOfDft) {
  ModelBuilder b = one_input(17, {2, 5, 3, 1});
  b.node("DFT", {"x"}, {"y"});
  const Found f = must_import(b);
  EXPECT_EQ(f.ints(f.producer("y"), 2), (Ints{1}));
  EXPECT_EQ(f.shape("y"), (Shape{2, 5, 3, 2}));
}

TEST(Upgrade, RegionsOfOldRoiAlign) {
  for (const int64_t opset : {10, 16}) {
    ModelBuilder b(opset);
    b.input("x", {1, 2, 4, 4}).input("rois", {3, 4}).input("batch", {3}, 7).output("y");
    b.node("RoiAlign", {"x", "rois", "batch"}, {"y"});
    const Found f = must_import(b);
    const std::string mode = f.producer("y").attributes.string_or("coordinate_transformation_mode", "half_pixel");
    EXPECT_EQ(mode, opset == 10 ? "output_half_pixel" : "half_pixel");
  }
}

TEST(Upgrade, RandomResultsAreRefused) {
  for (const char* op : {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}) {
    ModelBuilder b = one_input(15, {2, 3});
    b.node(op, {"x"}, {"y"});
    EXPECT_NE(failure(import_built(b)).find("random"), std::string::npos) << op;
  }
}

TEST(Upgrade, CastByName) {
  ModelBuilder b = one_input(5, {2});
  set_string(b.node("Cast", {"x"}, {"y"}), "to", "INT32");
  EXPECT_EQ(must_import(b).producer("y").attributes.int_or("to", 0), 6);
}

}  // namespace
}  // namespace openrknn::import
