// One SoC as data: what targets/<name>.json says. No code asks for a SoC by name outside this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/dtype.hpp"
#include "core/numerics.hpp"

namespace openrknn::target {

// A number of the hardware or of the vendor's documents that decides something, with where it is written.
struct Limit {
  int64_t value = 0;
  std::string source;  // "sdk.md C.2", ...
};

struct Cbuf {
  int64_t banks = 12;
  int64_t bank_bytes = 32768;
  int64_t entry_bytes = 128;
  int64_t bytes() const { return banks * bank_bytes; }
};

// Channel groups by element type: C2 lanes, kernel group and channel slice of weight cubes, alignments.
struct Lanes {
  int c2 = 16;
  int kernel_group = 32;     // output channels a weight group
  int channel_group = 32;    // input channels a slice
  int depthwise_group = 64;  // channels of a depthwise group
};

struct Target {
  std::string name;
  std::string title;  // "RK3588"
  std::string group;  // "A", "B", "C", "D" of sdk.md 0.3
  int cores = 1;
  std::map<std::string, int64_t> macs_per_cycle;  // by dtype name, one core
  double clock_mhz = 1000;
  double dram_gb_s = 0;
  Cbuf cbuf;
  int atom_bytes = 16;
  int64_t buffer_alignment = 64;
  int plane_pixel_align = 1;                     // pixels a plane is rounded up to
  std::map<std::string, Lanes> lanes;            // by dtype name: "int8", "float16", "int16"
  std::map<std::string, int> input_width_align;  // by dtype name, inputs of 1, 3 or 4 channels
  std::vector<std::string> dtypes;               // accepted by --dtype: "w8a8", "fp16", ...
  NumericsProfile numerics;
  std::map<std::string, Limit, std::less<>> limits;         // "conv.kernel.max", ...
  std::map<std::string, std::vector<std::string>> npu_ops;  // operator -> dtypes it runs in on the NPU
  std::vector<std::string> cpu_ops;  // operators of the vendor's CPU runtime; empty with cpu_ops_all
  bool cpu_ops_all = true;

  bool supports(std::string_view program_dtype) const;
  // A limit that must exist in every target file (the loader checks the list), by name.
  const Limit& limit(std::string_view name) const;
  bool npu_runs(std::string_view op, DType dtype) const;
};

// Names of all targets, sorted.
std::vector<std::string> names();
// Case-insensitive. An unknown name is an error that lists the known ones.
Result<const Target*> find(std::string_view name);
const std::vector<Target>& all();

}  // namespace openrknn::target
