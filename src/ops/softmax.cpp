// Normalised exponentials along one axis.
#include "ops/support_infer.hpp"

namespace openrknn::ops {
namespace {

Types infer_softmax(const InferInput& in) {
  OPENRKNN_TRY(const int axis, normalize_axis(in.attributes.int_or("axis", -1), in.shape(0).rank()));
  static_cast<void>(axis);
  return like_first(in);
}

}  // namespace

void register_softmax(Registry& registry) {
  const auto add = [&registry](std::string_view name, std::string_view doc) {
    registry.add({.name = name,
                  .op_class = OpClass::kCompute,
                  .attributes = {{"axis", AttrKind::kInt, false, "axis of the sum, default -1"}},
                  .infer = infer_softmax,
                  .doc = doc});
  };
  add("Softmax", "exp(x) / sum of exp(x) along one axis");
  add("LogSoftmax", "Logarithm of Softmax");
  add("Hardmax", "1 at the first largest element along one axis, 0 elsewhere");
}

}  // namespace openrknn::ops
