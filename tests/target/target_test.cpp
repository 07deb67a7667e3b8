#include "target/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "target/loader.hpp"

namespace openrknn::target {
namespace {

const Target& get(const char* name) {
  const auto found = find(name);
  EXPECT_TRUE(found.ok()) << found.error().message();
  return **found;
}

TEST(Targets, TheEmbeddedFilesAreValid) {
  const auto loaded = load_targets(embedded_sources());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->size(), all().size());
}

TEST(Targets, AllSocsOfTheSdkAreThere) {
  const auto known = names();
  for (const char* name : {"rv1103", "rv1103b", "rv1106", "rv1106b", "rv1126b", "rk2118", "rk3562", "rk3566", "rk3568",
                           "rk3576", "rk3588", "rk3583"}) {
    EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
  }
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
}

TEST(Targets, NamesAreCaseInsensitiveAndUnknownOnesListTheKnown) {
  EXPECT_EQ((*find("RK3588"))->title, "RK3588");
  const auto unknown = find("rk3399");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("rk3566"), std::string::npos);
  EXPECT_FALSE(find("common").ok());
  EXPECT_FALSE(find("").ok());
}

TEST(Targets, WhatTheSpecificationSaysOfRk3588) {
  const Target& t = get("rk3588");
  EXPECT_EQ(t.cores, 3);
  EXPECT_EQ(t.cbuf.bytes(), 384 * 1024);
  EXPECT_EQ(t.lanes.at("int8").c2, 16);
  EXPECT_EQ(t.lanes.at("float16").kernel_group, 16);
  EXPECT_EQ(t.macs_per_cycle.at("int8"), 1024);
  EXPECT_EQ(t.limit("conv.kernel.max").value, 31);
  EXPECT_EQ(t.limit("conv.kernel.max").source, "sdk.md C.2");
  EXPECT_EQ(t.limit("deconv.stride.power_of_two").value, 1);
  EXPECT_EQ(t.numerics.channel_multiplier, ChannelMultiplier::kInt16);
  EXPECT_FALSE(t.numerics.zero_point_before_rounding);
  EXPECT_TRUE(t.supports("w8a8"));
  EXPECT_TRUE(t.npu_runs("Conv", DType::kInt8));
  EXPECT_TRUE(t.npu_runs("Conv", DType::kFloat16));
  EXPECT_FALSE(t.npu_runs("Conv", DType::kFloat32));
  EXPECT_FALSE(t.npu_runs("Erf", DType::kFloat16));
  EXPECT_TRUE(t.cpu_ops_all);
}

TEST(Targets, GroupsDifferAsTheListsSay) {
  EXPECT_FALSE(get("rk3568").npu_runs("Softmax", DType::kFloat16));
  EXPECT_TRUE(get("rk3562").npu_runs("Softmax", DType::kFloat16));
  EXPECT_FALSE(get("rk3562").npu_runs("Min", DType::kInt8));
  EXPECT_TRUE(get("rk3566").npu_runs("Min", DType::kInt8));
  EXPECT_EQ(get("rk3566").lanes.at("int8").c2, 8);
  EXPECT_EQ(get("rk3566").numerics.channel_multiplier, ChannelMultiplier::kQ14);
  EXPECT_FALSE(get("rk3566").numerics.fused_residual);
  const Target& rv1106 = get("rv1106");
  EXPECT_FALSE(rv1106.supports("fp16"));
  EXPECT_FALSE(rv1106.npu_runs("Conv", DType::kFloat16));
  EXPECT_FALSE(rv1106.npu_runs("Div", DType::kInt8));
  EXPECT_TRUE(rv1106.numerics.zero_point_before_rounding);
  EXPECT_FALSE(rv1106.cpu_ops_all);
  EXPECT_NE(std::find(rv1106.cpu_ops.begin(), rv1106.cpu_ops.end(), "Softmax"), rv1106.cpu_ops.end());
  const Target& rk2118 = get("rk2118");
  EXPECT_FALSE(rk2118.supports("w8a8"));
  EXPECT_TRUE(rk2118.npu_runs("Conv", DType::kFloat16));
  EXPECT_TRUE(rk2118.cpu_ops.empty());
  EXPECT_FALSE(rk2118.cpu_ops_all);
  EXPECT_EQ(get("rk3576").numerics.fp16_group, 16);
  EXPECT_EQ(get("rv1126b").numerics.fp16_group, 32);
  EXPECT_EQ(get("rv1103b").lanes.at("int8").c2, 8);
}

TEST(Targets, EveryLimitNamesItsSource) {
  for (const Target& t : all()) {
    for (const auto& [name, limit] : t.limits) {
      EXPECT_TRUE(limit.source.starts_with("sdk.md ") || limit.source.starts_with("npu.md ")) << t.name << " " << name;
    }
    EXPECT_EQ(t.limits.size(), limit_names().size() + 1) << "all of limit_names() and npu.operators";
  }
}

// Loads the embedded files with one replaced.
Result<std::vector<Target>> load_with(std::string_view name, const std::string& text) {
  std::vector<Source> sources;
  for (Source s : embedded_sources()) {
    if (s.name == name) s.text = text;
    sources.push_back(s);
  }
  return load_targets(sources);
}

std::string text_of(std::string_view name) {
  for (const Source& s : embedded_sources()) {
    if (s.name == name) return std::string(s.text);
  }
  return {};
}

std::string changed(std::string_view name, const std::string& from, const std::string& to) {
  std::string text = text_of(name);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string failure(const Result<std::vector<Target>>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().message();
}

TEST(Loader, RefusesMistakesByName) {
  EXPECT_NE(failure(load_with("rk3588", changed("rk3588", "\"clock_mhz\"", "\"clock\""))).find("'clock_mhz'"),
            std::string::npos);
  EXPECT_NE(failure(load_with("rk3588", changed("rk3588", "\"title\"", "\"colour\": 1, \"title\""))).find("'colour'"),
            std::string::npos);
  EXPECT_NE(
      failure(load_with("common", changed("common", "\"conv.pad.max\"", "\"conv.pad.maxx\""))).find("conv.pad.max"),
      std::string::npos);
  EXPECT_NE(failure(load_with("rk3588", changed("rk3588", "\"cores\": 3", "\"cores\": -1"))).find("at least 1"),
            std::string::npos);
}

TEST(Loader, RefusesBrokenFiles) {
  EXPECT_FALSE(load_with("rk3588", "").ok());
  EXPECT_FALSE(load_with("rk3588", "[1]").ok());
  EXPECT_FALSE(load_with("rk3588", "{\"extends\": \"nothing\"}").ok());
  EXPECT_FALSE(load_with("rk3588", "{\"extends\": \"rk3588\"}").ok());
  EXPECT_FALSE(load_with("rk3588", "{\"extends\": 5}").ok());
  EXPECT_FALSE(load_with("rk3588", changed("rk3588", "[\"w8a8\", \"fp16\"]", "[\"w8a8\", \"fp17\"]")).ok());
  EXPECT_FALSE(load_with("rk3588", changed("rk3588", "\"w8a8\"", "8")).ok());
  EXPECT_FALSE(load_with("rk3588", changed("rk3588", "\"int8\": 1024, ", "")).ok());
}

TEST(Loader, ANullRemovesWhatTheBaseHas) {
  const auto loaded = load_with("rk3588", changed("rk3588", "\"notes\"", "\"npu_ops\": {\"Conv\": null}, \"notes\""));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  for (const Target& t : *loaded)
    EXPECT_EQ(t.npu_runs("Conv", DType::kFloat16), t.name != "rk3588" && t.name != "rk3583" && t.supports("fp16"));
}

}  // namespace
}  // namespace openrknn::target
