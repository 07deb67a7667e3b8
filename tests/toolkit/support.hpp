// Folders that go with the test, files in them, and the models of the checkout.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "openrknn/toolkit.hpp"
#include "support/temp_folder.hpp"

namespace openrknn::toolkit {

using test_support::TempFolder;

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The convolution network for digits that is part of the checkout.
inline std::string digits_model() { return OPENRKNN_DIGITS; }

inline Tensor float_tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  Tensor t{DType::kFloat32, std::move(shape), std::vector<std::byte>(values.size() * sizeof(float))};
  if (!values.empty()) std::memcpy(t.data.data(), values.data(), t.data.size());
  return t;
}

// A digit-sized picture, different for each seed.
inline Tensor digit(int seed) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 13) % 17) / 16.0F;
  return float_tensor({1, 1, 8, 8}, values);
}

// A calibration list of `count` pictures in the folder.
inline std::string write_list(const TempFolder& folder, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = "sample" + std::to_string(i) + ".npy";
    EXPECT_TRUE(write_npy(folder.file(name), digit(i)).ok());
    list += name + "\n";
  }
  return folder.write("list.txt", list);
}

}  // namespace openrknn::toolkit
