// All passes, each named as the user knows it. See passes.cpp for order, levels and meaning.
#pragma once

#include "opt/pass.hpp"

namespace openrknn::opt {

// fold.cpp
Result<int> fold_constant(Graph&, PassContext&);
Result<int> remove_dead_code(Graph&, PassContext&);
Result<int> remove_identity(Graph&, PassContext&);
Result<int> remove_neutral(Graph&, PassContext&);
// arithmetic.cpp
Result<int> convert_sum_to_add(Graph&, PassContext&);
Result<int> convert_div_to_mul(Graph&, PassContext&);
Result<int> convert_sub_to_add(Graph&, PassContext&);
Result<int> convert_pow_to_mul(Graph&, PassContext&);
Result<int> fuse_two_mul(Graph&, PassContext&);
Result<int> fuse_two_add(Graph&, PassContext&);
// padding.cpp
Result<int> make_padding_explicit(Graph&, PassContext&);
Result<int> fuse_pad_into_conv(Graph&, PassContext&);
Result<int> fuse_pad_into_pool(Graph&, PassContext&);
// affine.cpp
Result<int> fuse_batchnorm_into_conv(Graph&, PassContext&);
Result<int> fuse_add_into_conv(Graph&, PassContext&);
Result<int> fuse_mul_into_conv(Graph&, PassContext&);
Result<int> fuse_scale_before_conv(Graph&, PassContext&);
Result<int> convert_batchnorm_to_conv(Graph&, PassContext&);
// activation.cpp
Result<int> fuse_activation_into_conv(Graph&, PassContext&);
Result<int> fuse_activation_into_elementwise(Graph&, PassContext&);
Result<int> fuse_residual_into_conv(Graph&, PassContext&);

}  // namespace openrknn::opt
