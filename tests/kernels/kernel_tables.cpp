#include "kernels/kernel_tables.hpp"

#include "kernels/npu_loops.hpp"

namespace openrknn::testing {

std::vector<TableOf<GemmKernels>> gemm_tables() {
  std::vector<TableOf<GemmKernels>> tables{{std::string(isa_name(Isa::kScalar)), &gemm_kernels_scalar()}};
#if defined(__x86_64__)
  if (isa_supported(Isa::kAvx2)) tables.push_back({"avx2", &gemm_kernels_avx2()});
  if (isa_supported(Isa::kAvx512)) tables.push_back({"avx512bw", &gemm_kernels_avx512()});
#endif
  return tables;
}

std::vector<TableOf<math::MathKernels>> math_tables() {
  std::vector<TableOf<math::MathKernels>> tables{{std::string(isa_name(Isa::kScalar)), &math::math_kernels_scalar()}};
#if defined(__x86_64__)
  if (isa_supported(Isa::kAvx2)) tables.push_back({"avx2", &math::math_kernels_avx2()});
  if (isa_supported(Isa::kAvx512)) tables.push_back({"avx512bw", &math::math_kernels_avx512()});
#endif
  return tables;
}

std::vector<TableOf<npu::RowKernels>> row_tables() {
  std::vector<TableOf<npu::RowKernels>> tables{{std::string(isa_name(Isa::kScalar)), &npu::kRowKernelsScalar}};
#if defined(__x86_64__)
  if (isa_supported(Isa::kAvx2)) tables.push_back({"avx2", &npu::kRowKernelsAvx2});
  if (isa_supported(Isa::kAvx512)) tables.push_back({"avx512bw", &npu::kRowKernelsAvx512});
  if (isa_supported(Isa::kAvx512Vbmi)) tables.push_back({"avx512vbmi", &npu::kRowKernelsAvx512Vbmi});
#endif
  return tables;
}

std::vector<TableOf<npu::ConvKernels>> conv_tables() {
  std::vector<TableOf<npu::ConvKernels>> tables{{std::string(isa_name(Isa::kScalar)), &npu::kConvKernelsScalar}};
#if defined(__x86_64__)
  if (isa_supported(Isa::kAvx2)) tables.push_back({"avx2", &npu::kConvKernelsAvx2});
  if (isa_supported(Isa::kAvxVnni)) tables.push_back({"avxvnni", &npu::kConvKernelsAvxVnni});
  if (isa_supported(Isa::kAvx512)) tables.push_back({"avx512bw", &npu::kConvKernelsAvx512});
  if (isa_supported(Isa::kAvx512Vnni)) {
    tables.push_back({"avx512vnni", &npu::kConvKernelsAvx512Vnni});
    tables.push_back({"avxvnni_as_avx512vnni", &npu::testing::kAvxVnniLoops});
  }
#elif defined(__aarch64__)
  if (isa_supported(Isa::kNeonDot)) tables.push_back({"neondot", &npu::kConvKernelsNeonDot});
#endif
  return tables;
}

}  // namespace openrknn::testing
