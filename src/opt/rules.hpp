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
// attention.cpp
Result<int> convert_attention(Graph&, PassContext&);
// einsum.cpp
Result<int> convert_einsum(Graph&, PassContext&);
// reduce.cpp
Result<int> fuse_reduce_l2(Graph&, PassContext&);
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
Result<int> convert_affine_to_conv(Graph&, PassContext&);
// activation.cpp
Result<int> fuse_activation_into_conv(Graph&, PassContext&);
Result<int> fuse_activation_into_elementwise(Graph&, PassContext&);
Result<int> fuse_residual_into_conv(Graph&, PassContext&);
// reshape.cpp
Result<int> convert_to_reshape(Graph&, PassContext&);
Result<int> fuse_two_reshape(Graph&, PassContext&);
Result<int> convert_transpose_to_reshape(Graph&, PassContext&);
Result<int> sink_reshape(Graph&, PassContext&);
// transpose.cpp
Result<int> fuse_two_transpose(Graph&, PassContext&);
Result<int> sink_transpose(Graph&, PassContext&);
// matmul.cpp
Result<int> convert_gemm_to_conv(Graph&, PassContext&);
Result<int> convert_matmul_to_conv(Graph&, PassContext&);
Result<int> fuse_reshape_into_conv(Graph&, PassContext&);
// pool.cpp
Result<int> convert_global_average(Graph&, PassContext&);
Result<int> convert_global_max(Graph&, PassContext&);
Result<int> split_average_pool(Graph&, PassContext&);
Result<int> split_max_pool(Graph&, PassContext&);
Result<int> convert_channel_reduce_to_conv(Graph&, PassContext&);
// resize.cpp
Result<int> convert_resize_to_deconv(Graph&, PassContext&);
// recognize.cpp
Result<int> fuse_swish(Graph&, PassContext&);
Result<int> fuse_gelu(Graph&, PassContext&);
Result<int> fuse_mish(Graph&, PassContext&);
Result<int> fuse_hardswish(Graph&, PassContext&);
Result<int> fuse_hardsigmoid(Graph&, PassContext&);
Result<int> fuse_leakyrelu(Graph&, PassContext&);
Result<int> fuse_clip(Graph&, PassContext&);
// layernorm.cpp
Result<int> fuse_layernorm(Graph&, PassContext&);

}  // namespace openrknn::opt
