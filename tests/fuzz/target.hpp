// What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput: linked with libFuzzer it searches
// (OPENRKNN_FUZZ, clang), linked with replay.cpp it runs the files of its corpus as a test of every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace openrknn::fuzz {

// What the input shows must not be: ends the process, so that libFuzzer keeps the input.
[[noreturn]] inline void fail(const std::string& why) {
  (void)std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

inline std::span<const std::byte> bytes(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace openrknn::fuzz
