// Fixed rearrangements of elements.
#include "kernels/geometry.hpp"
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_depth_to_space(const InferInput& in) {
  const std::string mode = in.attributes.string_or("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return infer_error("mode", fmt::format("'{}' is neither DCR nor CRD", mode));
  return computed(in.dtype(0), geometry::depth_to_space(in.shape(0), in.attributes.int_or("blocksize", 0)));
}

Types infer_space_to_depth(const InferInput& in) {
  return computed(in.dtype(0), geometry::space_to_depth(in.shape(0), in.attributes.int_or("blocksize", 0)));
}

Types infer_reverse_sequence(const InferInput& in) {
  if (in.shape(0).rank() < 2)
    return infer_error("operand 0", fmt::format("rank {}, 2 or more expected", in.shape(0).rank()));
  return like_first(in);
}

}  // namespace

void register_space(Registry& registry) {
  const AttrSpec block{"blocksize", AttrKind::kInt, true, "side of a block"};
  registry.add(
      {.name = "DepthToSpace",
       .op_class = OpClass::kDataMovement,
       .attributes = {block, {"mode", AttrKind::kString, false, "DCR (default) or CRD: order of the channel axis"}},
       .infer = infer_depth_to_space,
       .doc = "Spreads channels over blocks of pixels"});
  registry.add({.name = "SpaceToDepth",
                .op_class = OpClass::kDataMovement,
                .attributes = {block},
                .infer = infer_space_to_depth,
                .doc = "Collects blocks of pixels into channels"});
  registry.add({.name = "ReverseSequence",
                .op_class = OpClass::kDataMovement,
                .min_inputs = 2,
                .max_inputs = 2,
                .attributes = {{"batch_axis", AttrKind::kInt, false, "default 1"},
                               {"time_axis", AttrKind::kInt, false, "default 0"}},
                .infer = infer_reverse_sequence,
                .doc = "Reverses the first steps of every sequence, as many as input 1 says"});
}

}  // namespace openrknn::ops
