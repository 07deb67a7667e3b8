// Any bytes as a calibration list.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/target.hpp"
#include "io/dataset.hpp"

using namespace openrknn;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("dataset.txt", 0);
  if (file < 0) return 0;
  if (write(file, data, size) == static_cast<ssize_t>(size)) {
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    const auto samples = io::read_dataset(path, 1 + size % 3);
    if (samples.ok() && samples->empty()) fuzz::fail("a list without samples is an error");
    (void)io::dataset_files(path);
  }
  close(file);
  return 0;
}
