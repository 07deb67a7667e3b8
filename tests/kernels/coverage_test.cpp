// Every function of every table of kernels has a property over random cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/kernel_tables.hpp"
#include "kernels/property.hpp"
#include "kernels/tables_in_use.hpp"

namespace openrknn::testing {
namespace {

struct Member {
  std::string name;
  size_t offset, size;
};

// Fails for functions that are in the table and not among these, and for those of these without a property.
void expect_covered(const std::string& table, size_t size, std::vector<Member> members) {
  const std::vector<std::string> named = functions_with_properties();
  const std::set<std::string> covered(named.begin(), named.end());
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.offset < b.offset; });
  members.push_back({"", size, 0});
  size_t end = 0;
  for (const Member& member : members) {
    // Numbers leave gaps of less.
    EXPECT_LT(member.offset - end, sizeof(void (*)()))
        << table << " has a member at byte " << end << " that this test does not list: add it, and a property for it";
    end = member.offset + member.size;
    if (member.name.empty()) continue;
    EXPECT_EQ(covered.count(table + "." + member.name), 1U)
        << table << "." << member.name << " has no property: add one (property.hpp)";
  }
}

// What is not a function stands without a name.
#define FUNCTION(Type, name) \
  { #name, offsetof(Type, name), sizeof(Type::name) }
#define NUMBER(Type, name) \
  { "", offsetof(Type, name), sizeof(Type::name) }

TEST(KernelCoverage, EveryFunctionOfGemm) {
  using T = GemmKernels;
  expect_covered("gemm", sizeof(T),
                 {NUMBER(T, isa), NUMBER(T, rows), NUMBER(T, width), NUMBER(T, vectors), FUNCTION(T, tile),
                  FUNCTION(T, taps), FUNCTION(T, depth_plane), FUNCTION(T, pixel_tile), FUNCTION(T, channel_tile),
                  FUNCTION(T, line), FUNCTION(T, lines), FUNCTION(T, clamp), FUNCTION(T, scale), FUNCTION(T, sum),
                  FUNCTION(T, max_row), FUNCTION(T, combine)});
}

TEST(KernelCoverage, EveryFunctionOfMath) {
  using T = math::MathKernels;
  expect_covered("math", sizeof(T),
                 {NUMBER(T, isa), FUNCTION(T, exp), FUNCTION(T, log), FUNCTION(T, tanh), FUNCTION(T, sigmoid),
                  FUNCTION(T, erf), FUNCTION(T, exp_lines), FUNCTION(T, divide_lines), FUNCTION(T, softmax_line)});
}

TEST(KernelCoverage, EveryFunctionOfRows) {
  using T = npu::RowKernels;
  expect_covered("rows", sizeof(T), {NUMBER(T, isa),          FUNCTION(T, requantize),  FUNCTION(T, requantize_look_up),
                                     FUNCTION(T, channel),    FUNCTION(T, operand),     FUNCTION(T, table_index),
                                     FUNCTION(T, half_table), FUNCTION(T, prelu),       FUNCTION(T, clamp),
                                     FUNCTION(T, output),     FUNCTION(T, quantize_s8), FUNCTION(T, dequantize_s8),
                                     FUNCTION(T, widen),      FUNCTION(T, narrow),      FUNCTION(T, half_output),
                                     FUNCTION(T, max_s8),     FUNCTION(T, max_f16),     FUNCTION(T, sum_s8),
                                     FUNCTION(T, widen_s8),   FUNCTION(T, multiply_s8), FUNCTION(T, look_up_s8)});
}

TEST(KernelCoverage, EveryFunctionOfConvolutions) {
  using T = npu::ConvKernels;
  expect_covered(
      "conv", sizeof(T),
      {NUMBER(T, isa), NUMBER(T, integer_lanes), NUMBER(T, integer_panels), NUMBER(T, integer_bytes),
       NUMBER(T, weight_offset), NUMBER(T, finishes), FUNCTION(T, integer), FUNCTION(T, sum_pixels),
       FUNCTION(T, sum_line), FUNCTION(T, depthwise_s8), FUNCTION(T, depthwise_bytes), NUMBER(T, half_channels),
       FUNCTION(T, half), FUNCTION(T, half_stats), FUNCTION(T, half_slab), FUNCTION(T, depthwise_f16),
       FUNCTION(T, depthwise_halves), NUMBER(T, row_lanes), NUMBER(T, winograd)});
  using W = npu::WinogradKernels;
  expect_covered("winograd", sizeof(W),
                 {NUMBER(W, lanes), FUNCTION(W, input), FUNCTION(W, products), FUNCTION(W, output)});
}

// What the build compiled a file for, against what it is chosen for.
TEST(KernelTables, AreCompiledForTheSetThatChoosesThem) {
  const Isa before = isa();
  for (const Isa set : kEveryIsa) {
    if (!isa_supported(set)) continue;
    force_isa(set);
    for (const TableInUse& table : tables_in_use()) {
      Isa expected = without_dot(set);
      if (table.kernels == "convolutions") expected = set == Isa::kAvx512Vbmi ? Isa::kAvx512Vnni : set;
      if (table.kernels == "rows" && set == Isa::kAvx512Vbmi) expected = set;
      EXPECT_EQ(table.isa, isa_name(expected)) << table.kernels << " for " << isa_name(set);
    }
  }
  force_isa(before);
}

#undef FUNCTION
#undef NUMBER

}  // namespace
}  // namespace openrknn::testing
