// Any bytes as an .npy file: an error, or a tensor that can be written and read again.
#include "fuzz/target.hpp"
#include "io/npy.hpp"

using namespace openrknn;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensor = io::parse_npy(fuzz::bytes(data, size), "input.npy");
  if (tensor.ok()) (void)cast(tensor->view(), DType::kFloat32);
  return 0;
}
