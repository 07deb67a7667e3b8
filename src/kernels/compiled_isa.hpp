// The name, as isa.hpp spells it, of the instruction set that the including file is compiled for: tables of kernels
// say by it what they really are.
#pragma once

namespace openrknn {
namespace {

#if defined(__AVX512VBMI__)
[[maybe_unused]] constexpr const char* kCompiledIsa = "avx512vbmi";
#elif defined(__AVX512VNNI__) && !defined(OPENRKNN_HALF_WIDTH)
[[maybe_unused]] constexpr const char* kCompiledIsa = "avx512vnni";
#elif defined(__AVXVNNI__) || defined(OPENRKNN_HALF_WIDTH)
[[maybe_unused]] constexpr const char* kCompiledIsa = "avxvnni";
#elif defined(__AVX512BW__)
[[maybe_unused]] constexpr const char* kCompiledIsa = "avx512bw";
#elif defined(__AVX2__)
[[maybe_unused]] constexpr const char* kCompiledIsa = "avx2";
#elif defined(__ARM_FEATURE_DOTPROD)
[[maybe_unused]] constexpr const char* kCompiledIsa = "neondot";
#elif defined(__aarch64__)
[[maybe_unused]] constexpr const char* kCompiledIsa = "neon";
#else
[[maybe_unused]] constexpr const char* kCompiledIsa = "scalar";
#endif

}  // namespace
}  // namespace openrknn
