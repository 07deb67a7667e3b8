// Normalisations, inference only.
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Status check_per_channel(const InferInput& in, int rank, size_t last) {
  const Shape& x = in.shape(0);
  if (x.rank() < rank)
    return infer_error("operand 0", fmt::format("shape {} has fewer than {} axes", x.to_string(), rank));
  for (size_t i = 1; i <= last; ++i) {
    if (in.shape(i) == Shape{x[1]}) continue;
    return infer_error(fmt::format("operand {}", i),
                       fmt::format("shape {} for {} channels", in.shape(i).to_string(), x[1]));
  }
  return {};
}

Types infer_batch(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_per_channel(in, 2, 4));
  if (in.outputs > 1 && in.attributes.int_or("training_mode", 0) == 0)
    return infer_error("results", "running statistics are results of training_mode 1 only");
  std::vector<TensorType> types(in.outputs, TensorType{in.dtype(3), in.shape(3)});
  types[0] = {in.dtype(0), in.shape(0)};
  return types;
}

Types infer_instance(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_per_channel(in, 3, 2));
  return like_first(in);
}

Types infer_group(const InferInput& in) {
  OPENRKNN_CHECK_OK(check_per_channel(in, 3, 2));
  const int64_t groups = in.attributes.int_or("num_groups", 0);
  if (groups < 1 || in.shape(0)[1] % groups != 0) {
    return infer_error("attribute 'num_groups'", fmt::format("{} groups of {} channels", groups, in.shape(0)[1]));
  }
  return like_first(in);
}

Types infer_layer(const InferInput& in) {
  const Shape& x = in.shape(0);
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -1), x.rank()));
  const int64_t n = x.elements(axis, x.rank());
  for (size_t i = 1; i < 3; ++i) {
    if (!in.has(i) || in.shape(i).elements() == n) continue;
    return infer_error(fmt::format("operand {}", i),
                       fmt::format("shape {} for {} normalised elements", in.shape(i).to_string(), n));
  }
  Shape statistics = x;
  for (int i = axis; i < x.rank(); ++i) statistics.set(i, 1);
  std::vector<TensorType> types(in.outputs, TensorType{DType::kFloat32, statistics});
  types[0] = {in.dtype(0), x};
  return types;
}

Types infer_lrn(const InferInput& in) {
  if (in.shape(0).rank() < 2)
    return infer_error("operand 0", fmt::format("shape {} has no channels", in.shape(0).to_string()));
  if (in.attributes.int_or("size", 0) < 1) return infer_error("attribute 'size'", "it is below 1");
  return like_first(in);
}

Types infer_rms(const InferInput& in) {
  const Shape& x = in.shape(0);
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -1), x.rank()));
  OPENRKNN_TRY(const Shape normalized, Shape::make(x.dims().subspan(static_cast<size_t>(axis))));
  const auto joint = broadcast(normalized, in.shape(1));
  if (!joint.ok() || !(*joint == normalized)) {
    return infer_error("operand 1", fmt::format("shape {} for normalised elements {}", in.shape(1).to_string(),
                                                normalized.to_string()));
  }
  return one(in.dtype(1), x);
}

Types infer_lp(const InferInput& in) {
  OPENRKNN_CHECK_OK(normalize_axis(in.attributes.int_or("axis", -1), in.shape(0).rank()));
  const int64_t p = in.attributes.int_or("p", 2);
  if (p != 1 && p != 2) return infer_error("attribute 'p'", fmt::format("{}, 1 or 2 expected", p));
  return like_first(in);
}

Types infer_mean_variance(const InferInput& in) {
  for (const int64_t axis : in.attributes.ints_or("axes", {0, 2, 3})) {
    OPENRKNN_CHECK_OK(normalize_axis(axis, in.shape(0).rank()));
  }
  return like_first(in);
}

constexpr AttrSpec kEpsilon{"epsilon", AttrKind::kFloat, false, "added to the variance, default 1e-5"};

}  // namespace

void register_norm(Registry& registry) {
  registry.add(
      {.name = "BatchNormalization",
       .op_class = OpClass::kCompute,
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 3,
       .attributes = {kEpsilon,
                      {"momentum", AttrKind::kFloat, false, "share of the old running statistics, default 0.9"},
                      {"training_mode", AttrKind::kInt, false, "1: the operand's own statistics; default 0"}},
       .infer = infer_batch,
       .doc = "(x - mean) / sqrt(variance + epsilon) * scale + bias per channel"});
  registry.add({.name = "InstanceNormalization",
                .op_class = OpClass::kCompute,
                .min_inputs = 3,
                .max_inputs = 3,
                .attributes = {kEpsilon},
                .infer = infer_instance,
                .doc = "Normalises each channel of each sample by its own statistics"});
  registry.add({.name = "GroupNormalization",
                .op_class = OpClass::kCompute,
                .min_inputs = 3,
                .max_inputs = 3,
                .attributes = {kEpsilon,
                               {"num_groups", AttrKind::kInt, true, "groups of channels"},
                               {"stash_type", AttrKind::kInt, false, "type of the statistics, ignored"}},
                .infer = infer_group,
                .doc = "Normalises each group of channels of each sample; scale and bias per channel"});
  registry.add({.name = "LayerNormalization",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 3,
                .max_outputs = 3,
                .attributes = {{"axis", AttrKind::kInt, false, "first normalised axis, default -1"},
                               kEpsilon,
                               {"stash_type", AttrKind::kInt, false, "type of the statistics, ignored"}},
                .infer = infer_layer,
                .doc = "Normalises over the last axes; also gives mean and inverse standard deviation"});
  registry.add({.name = "LRN",
                .op_class = OpClass::kCompute,
                .attributes = {{"alpha", AttrKind::kFloat, false, "default 1e-4"},
                               {"beta", AttrKind::kFloat, false, "default 0.75"},
                               {"bias", AttrKind::kFloat, false, "default 1"},
                               {"size", AttrKind::kInt, true, "channels of the window"}},
                .infer = infer_lrn,
                .doc = "x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta"});
  registry.add({.name = "RMSNormalization",
                .op_class = OpClass::kCompute,
                .min_inputs = 2,
                .max_inputs = 2,
                .attributes = {{"axis", AttrKind::kInt, false, "first normalised axis, default -1"},
                               {"epsilon", AttrKind::kFloat, false, "added to the mean square, default 1e-5"},
                               {"stash_type", AttrKind::kInt, false, "type of the statistics, ignored"}},
                .infer = infer_rms,
                .doc = "x / sqrt(mean of squares + epsilon) * scale over the last axes"});
  registry.add({.name = "LpNormalization",
                .op_class = OpClass::kCompute,
                .attributes = {{"axis", AttrKind::kInt, false, "axis of the norm, default -1"},
                               {"p", AttrKind::kInt, false, "1: sum of magnitudes; 2 (default): root of squares"}},
                .infer = infer_lp,
                .doc = "x / norm along one axis; zeros stay zeros"});
  registry.add({.name = "MeanVarianceNormalization",
                .op_class = OpClass::kCompute,
                .attributes = {{"axes", AttrKind::kInts, false, "axes of the statistics, default 0, 2, 3"}},
                .infer = infer_mean_variance,
                .doc = "(x - mean) / (deviation + 1e-9) over chosen axes"});
}

}  // namespace openrknn::ops
