#include "opt/rules.hpp"

namespace openrknn::opt {

// The order matters for what is found, not for what is right: any order gives an equivalent graph.
const std::vector<PassInfo>& passes() {
  static const std::vector<PassInfo> kPasses = {
      {"remove_dead_code", 0, remove_dead_code, "nodes whose results nobody reads go"},
      {"fold_constant", 0, fold_constant,
       "nodes of constants, and shape queries, are evaluated; results may grow by a bounded factor"},
      {"remove_identity", 0, remove_identity,
       "Identity, Dropout, Cast to the same type, and movements that move nothing go"},
      {"make_padding_explicit", 0, make_padding_explicit, "auto_pad of Conv and pools becomes pads"},
      {"convert_sum_to_add", 1, convert_sum_to_add, "Sum, Mean, Max and Min of n operands become chains of pairs"},
      {"convert_div_to_mul", 1, convert_div_to_mul, "x / c becomes x * (1 / c)"},
      {"convert_sub_to_add", 1, convert_sub_to_add, "x - c becomes x + (-c)"},
      {"convert_pow_to_mul", 1, convert_pow_to_mul, "x ^ 2 becomes x * x"},
      {"fuse_two_mul", 2, fuse_two_mul, "(x * a) * b becomes x * (a b)"},
      {"fuse_two_add", 2, fuse_two_add, "(x + a) + b becomes x + (a + b)"},
      {"remove_neutral", 1, remove_neutral, "x + 0, x - 0, x * 1 and x / 1 go"},
      {"fuse_pad_into_conv", 1, fuse_pad_into_conv, "a Pad with zeros becomes the padding of the Conv behind it"},
      {"fuse_pad_into_pool", 1, fuse_pad_into_pool,
       "a Pad becomes the padding of the pool behind it where that means the same"},
      {"fuse_batchnorm_into_conv", 1, fuse_batchnorm_into_conv,
       "BatchNormalization moves into the Conv or ConvTranspose in front of it"},
      {"fuse_add_into_conv", 1, fuse_add_into_conv, "a per-channel constant added to a Conv becomes its bias"},
      {"fuse_mul_into_conv", 2, fuse_mul_into_conv,
       "a per-channel constant factor behind a Conv moves into its weights"},
      {"fuse_scale_before_conv", 2, fuse_scale_before_conv,
       "a per-channel scale (and, without padding, shift) in front of a Conv moves into its weights"},
      {"convert_batchnorm_to_conv", 1, convert_batchnorm_to_conv,
       "a BatchNormalization that nothing absorbs becomes a depthwise 1x1 Conv"},
      {"fuse_activation_into_conv", 1, fuse_activation_into_conv,
       "an activation becomes part of the Conv or ConvTranspose in front of it"},
      {"fuse_residual_into_conv", 3, fuse_residual_into_conv,
       "an Add of a Conv and another tensor becomes part of the Conv"},
      {"fuse_activation_into_elementwise", 1, fuse_activation_into_elementwise,
       "Relu and Clip become part of the Add, Sub or Mul in front of them"},
  };
  return kPasses;
}

}  // namespace openrknn::opt
