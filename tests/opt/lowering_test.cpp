// Products, pools, reductions and Resize as convolutions.
#include "opt/support.hpp"

namespace openrknn::opt::testing {
namespace {

TEST(Gemm, ToConv) {
  const std::string head = R"(
    input %x: float32[2,12]
    const %w: float32[5,12] = seeded(1, -1, 1)
    const %v: float32[12,5] = seeded(1, -1, 1)
    const %b: float32[5] = seeded(2, -1, 1)
  )";
  const Counts wanted{{"Reshape", 2}, {"Conv", 1}};
  expect_rewrite(head + "%y = Gemm(%x, %w, %b) {transB=1}\n output %y", {"convert_gemm_to_conv"}, wanted);
  expect_rewrite(head + "%y = Gemm(%x, %v) {alpha=0.5}\n output %y", {"convert_gemm_to_conv"}, wanted);
  expect_rewrite(head + "%y = Gemm(%x, %v, %b) {alpha=0.5, beta=2.0}\n output %y", {"convert_gemm_to_conv"}, wanted);
  expect_untouched(head + "const %r: float32[2,1] = seeded(2, -1, 1)\n %y = Gemm(%x, %v, %r)\n output %y",
                   "convert_gemm_to_conv");
  expect_untouched(
      "input %x: float32[12,2]\n const %w: float32[12,5] = seeded(1, -1, 1)\n %y = Gemm(%x, %w) {transA=1}\n output %y",
      "convert_gemm_to_conv");
  expect_untouched("input %x: float32[2,12]\n input %w: float32[12,5]\n %y = Gemm(%x, %w)\n output %y",
                   "convert_gemm_to_conv");
}

TEST(MatMul, ToConv) {
  const std::string w = "const %w: float32[6,5] = seeded(1, -1, 1)\n const %b: float32[5] = seeded(2, -1, 1)\n";
  expect_rewrite("input %x: float32[3,6]\n" + w + "%y = MatMul(%x, %w)\n output %y", {"convert_matmul_to_conv"},
                 {{"Reshape", 2}, {"Conv", 1}});
  for (const char* shape : {"2,7,6", "2,3,4,6"}) {
    const std::string head = std::string("input %x: float32[") + shape + "]\n" + w;
    expect_rewrite(head + "%y = MatMul(%x, %w)\n output %y", {"convert_matmul_to_conv"},
                   {{"Transpose", 2}, {"Conv", 1}});
    expect_rewrite(head + "%m = MatMul(%x, %w)\n %y = Add(%b, %m)\n output %y", {"convert_matmul_to_conv"},
                   {{"Transpose", 2}, {"Conv", 1}});
  }
  expect_rewrite(
      "input %x: float32[2,6,7]\n const %w: float32[5,6] = seeded(1, -1, 1)\n %y = MatMul(%w, %x)\n output %y",
      {"convert_matmul_to_conv"}, {{"Conv", 1}});
  expect_untouched("input %x: float32[2,7,6]\n input %z: float32[6,5]\n %y = MatMul(%x, %z)\n output %y",
                   "convert_matmul_to_conv");
}

TEST(MatMul, FlattenedPictureBecomesAKernel) {
  expect_rewrite(R"(
    input %x: float32[2,3,4,5]
    const %w: float32[7,60] = seeded(1, -1, 1)
    %f = Flatten(%x)
    %g = Gemm(%f, %w) {transB=1}
    %y = Relu(%g)
    output %y)",
                 {"convert_to_reshape", "convert_gemm_to_conv", "fuse_two_reshape", "sink_reshape",
                  "fuse_reshape_into_conv", "fuse_activation_into_conv"},
                 {{"Conv", 1}, {"Reshape", 1}});
}

TEST(Einsum, ToMatMul) {
  const auto graph = [](const std::string& a, const std::string& b, const std::string& equation) {
    return "input %a: float32[" + a + "]\n input %b: float32[" + b + "]\n %y = Einsum(%a, %b) {equation=\"" + equation +
           "\"}\n output %y";
  };
  expect_rewrite(graph("3,4", "4,5", "ij,jk->ik"), {"convert_einsum"}, {{"MatMul", 1}});
  // Several rows and sums; the result in another order.
  expect_rewrite(graph("2,3,4,5", "2,6,4", "bmct,bnc->bntm"), {"convert_einsum"},
                 {{"Transpose", 3}, {"Reshape", 2}, {"MatMul", 1}});
  expect_rewrite(graph("3,4", "3,4", "ij,ij->"), {"convert_einsum"}, {{"Reshape", 3}, {"MatMul", 1}});
  expect_rewrite("input %x: float32[2,3,4]\n %y = Einsum(%x) {equation=\"ijk->kij\"}\n output %y", {"convert_einsum"},
                 {{"Transpose", 1}});
  expect_untouched(graph("3,4", "4,5", "ij,jk->j"), "convert_einsum");     // sums that one operand has alone
  expect_untouched(graph("3,4", "5,6", "ij,kl->ijkl"), "convert_einsum");  // nothing is summed
  expect_untouched(graph("3,3", "3,5", "ii,ij->j"), "convert_einsum");     // a diagonal
  expect_untouched(graph("1,4", "3,4", "ij,ij->i"), "convert_einsum");     // a repeated axis
  expect_untouched("input %x: float32[2,3]\n %y = Einsum(%x) {equation=\"ij->i\"}\n output %y", "convert_einsum");
}

TEST(Attention, ToMatMul) {
  const auto graph = [](const std::string& q, const std::string& k, const std::string& v,
                        const std::string& attributes) {
    return "input %q: float32[" + q + "]\n input %k: float32[" + k + "]\n input %v: float32[" + v +
           "]\n %y = Attention(%q, %k, %v) {" + attributes + "}\n output %y";
  };
  const Counts plain{{"Mul", 1}, {"MatMul", 2}, {"Softmax", 1}, {"Transpose", 1}};
  expect_rewrite(graph("2,3,4,8", "2,3,5,8", "2,3,5,6", "scale=0.5"), {"convert_attention"}, plain);
  // Four heads of queries on two of keys.
  expect_rewrite(graph("2,4,3,8", "2,2,5,8", "2,2,5,6", "scale=0.5"), {"convert_attention"},
                 {{"Mul", 1}, {"MatMul", 2}, {"Softmax", 1}, {"Transpose", 1}, {"Reshape", 2}});
  expect_rewrite(graph("2,3,12", "2,5,12", "2,5,6", "q_num_heads=3, kv_num_heads=3"), {"convert_attention"},
                 {{"Mul", 1}, {"MatMul", 2}, {"Softmax", 1}, {"Transpose", 5}, {"Reshape", 4}});
  expect_untouched(graph("2,3,4,8", "2,3,5,8", "2,3,5,6", "is_causal=1"), "convert_attention");
  expect_untouched(graph("2,3,4,8", "2,3,5,8", "2,3,5,6", "softcap=2.0"), "convert_attention");
}

TEST(GlobalPool, OfAnySize) {
  const auto body = [](const std::string& shape, const std::string& op) {
    return "input %x: float32[" + shape + "]\n const %hw: int64[2] = {2, 3}\n const %h: int64[1] = {2}\n %y = " + op +
           "\n output %y";
  };
  const std::vector<std::string> pass{"convert_global_average"};
  expect_rewrite(body("2,3,7,7", "GlobalAveragePool(%x)"), pass, {{"AveragePool", 1}});
  expect_rewrite(body("2,3,8,8", "GlobalAveragePool(%x)"), pass, {{"Conv", 1}});
  expect_rewrite(body("2,3,14,14", "GlobalAveragePool(%x)"), pass, {{"Conv", 2}});
  expect_rewrite(body("2,3,13,17", "GlobalAveragePool(%x)"), pass, {{"Conv", 2}});
  expect_rewrite(body("1,2,112,97", "GlobalAveragePool(%x)"), pass, {{"Conv", 3}});
  expect_rewrite(body("1,2,1,23", "GlobalAveragePool(%x)"), pass, {{"Conv", 2}});
  expect_rewrite(body("1,2,40", "GlobalAveragePool(%x)"), pass, {{"Conv", 2}});
  expect_rewrite(body("2,3,12,12", "ReduceMean(%x, %hw) {keepdims=0}"), pass, {{"Conv", 2}, {"Reshape", 1}});
  expect_rewrite(body("2,3,12,5", "ReduceMean(%x, %h)"), pass, {{"Conv", 2}});
  expect_rewrite(body("2,3,13,17", "GlobalMaxPool(%x)"), {"convert_global_max"}, {{"MaxPool", 2}});
  expect_rewrite(body("2,3,13,5", "ReduceMax(%x, %h) {keepdims=0}"), {"convert_global_max"},
                 {{"MaxPool", 2}, {"Reshape", 1}});
  expect_untouched("input %x: float32[2,3,4,5]\n const %a: int64[2] = {1, 2}\n %y = ReduceMean(%x, %a)\n output %y",
                   "convert_global_average");
}

TEST(BigPool, AverageAndMax) {
  const std::string x = "input %x: float32[1,3,32,32]\n";
  const std::vector<std::string> average{"split_average_pool"}, max{"split_max_pool"};
  expect_rewrite(x + "%y = AveragePool(%x) {kernel_shape=[8,8], strides=[4,4]}\n output %y", average, {{"Conv", 1}});
  expect_rewrite(x + "%y = AveragePool(%x) {kernel_shape=[8,8], pads=[2,1,2,3], count_include_pad=1}\n output %y",
                 average, {{"Conv", 1}});
  expect_rewrite(x + "%y = AveragePool(%x) {kernel_shape=[15,10], strides=[15,10]}\n output %y", average,
                 {{"Conv", 2}});
  expect_rewrite(x + "%y = AveragePool(%x) {kernel_shape=[32,32]}\n output %y", average, {{"Conv", 2}});
  expect_untouched(x + "%y = AveragePool(%x) {kernel_shape=[9,9], strides=[2,2]}\n output %y", "split_average_pool");
  expect_untouched(x + "%y = AveragePool(%x) {kernel_shape=[8,8], pads=[2,2,2,2]}\n output %y", "split_average_pool");
  expect_untouched(x + "%y = AveragePool(%x) {kernel_shape=[3,3]}\n output %y", "split_average_pool");
  expect_rewrite(x + "%y = MaxPool(%x) {kernel_shape=[9,9], pads=[4,4,4,4]}\n output %y", max, {{"MaxPool", 2}});
  expect_rewrite(x + "%y = MaxPool(%x) {kernel_shape=[13,8], pads=[6,4,6,3], strides=[2,3]}\n output %y", max,
                 {{"MaxPool", 2}});
  expect_rewrite(x + "%y = MaxPool(%x) {kernel_shape=[14,3], pads=[13,0,13,0]}\n output %y", max, {{"MaxPool", 3}});
  expect_untouched(x + "%y = MaxPool(%x) {kernel_shape=[9,9], dilations=[2,2]}\n output %y", "split_max_pool");
}

TEST(ChannelReduction, ToConv) {
  const std::string x = "input %x: float32[2,6,4,5]\n const %a: int64[1] = {1}\n const %b: int64[1] = {3}\n";
  expect_rewrite(x + "%y = ReduceMean(%x, %a)\n output %y", {"convert_channel_reduce_to_conv"}, {{"Conv", 1}});
  expect_rewrite(x + "%y = ReduceSum(%x, %a) {keepdims=0}\n output %y", {"convert_channel_reduce_to_conv"},
                 {{"Conv", 1}, {"Reshape", 1}});
  expect_untouched(x + "%y = ReduceSum(%x, %b)\n output %y", "convert_channel_reduce_to_conv");
}

TEST(Resize, RepeatingElements) {
  const auto body = [](const std::string& scales, const std::string& attributes) {
    return "input %x: float32[1,3,4,5]\n const %s: float32[4] = {" + scales + "}\n %y = Resize(%x, _, %s) {" +
           attributes + "}\n output %y";
  };
  const std::string plain = R"(coordinate_transformation_mode="asymmetric", nearest_mode="floor")";
  const std::vector<std::string> pass{"convert_resize_to_deconv"};
  expect_rewrite(body("1,1,2,2", plain), pass, {{"ConvTranspose", 1}});
  expect_rewrite(body("1,1,4,1", plain), pass, {{"ConvTranspose", 1}});
  expect_rewrite(body("1,1,16,2", plain), pass, {{"ConvTranspose", 2}});
  expect_rewrite(body("1,1,2,2", ""), pass, {{"ConvTranspose", 1}});
  expect_untouched(body("1,1,3,3", plain), "convert_resize_to_deconv");
  expect_untouched(body("1,1,1.5,2", plain), "convert_resize_to_deconv");
  expect_untouched(body("1,1,2,2", R"(nearest_mode="ceil")"), "convert_resize_to_deconv");
  expect_untouched(body("1,1,2,2", R"(mode="linear")"), "convert_resize_to_deconv");
  Capabilities three;
  three.deconv_strides = {1, 2, 3};
  expect_rewrite(body("1,1,3,6", plain), pass, {{"ConvTranspose", 2}}, three);
}

}  // namespace
}  // namespace openrknn::opt::testing
