#include <nlohmann/json.hpp>

#include "openrknn/toolkit.h"
#include "support.hpp"

namespace openrknn::toolkit {
namespace {

TEST(CInterface, WholeChain) {
  const TempFolder folder;
  openrknn_model* model = nullptr;
  ASSERT_EQ(openrknn_model_load(digits_model().c_str(), nullptr, &model), OPENRKNN_OK) << openrknn_error();
  ASSERT_EQ(openrknn_model_input_count(model), 1);
  const char* name = nullptr;
  openrknn_tensor info{};
  ASSERT_EQ(openrknn_model_input(model, 0, &name, &info, nullptr), OPENRKNN_OK);
  EXPECT_EQ(info.dtype, OPENRKNN_FLOAT32);
  EXPECT_EQ(info.rank, 4);

  const Tensor picture = digit(1);
  openrknn_tensor input = info;
  input.data = picture.data.data();
  input.bytes = picture.data.size();
  openrknn_outputs* golden = nullptr;
  ASSERT_EQ(openrknn_model_run(model, &input, 1, &golden), OPENRKNN_OK) << openrknn_error();

  openrknn_options* options = nullptr;
  ASSERT_EQ(openrknn_options_new(&options), OPENRKNN_OK);
  EXPECT_EQ(openrknn_options_set(options, "target", "rk3588"), OPENRKNN_OK);
  EXPECT_EQ(openrknn_options_set(options, "dtype", "fp16"), OPENRKNN_OK);
  EXPECT_EQ(openrknn_options_set(options, "no-such-option", "1"), OPENRKNN_INVALID_ARGUMENT);
  EXPECT_EQ(openrknn_options_set(options, "opt-level", "three"), OPENRKNN_INVALID_ARGUMENT);
  openrknn_program* program = nullptr;
  ASSERT_EQ(openrknn_model_build(model, options, nullptr, &program), OPENRKNN_OK) << openrknn_error();
  ASSERT_EQ(openrknn_program_write(program, folder.file("x.rknn").c_str()), OPENRKNN_OK) << openrknn_error();
  openrknn_program_free(program);
  ASSERT_EQ(openrknn_program_load(folder.file("x.rknn").c_str(), &program), OPENRKNN_OK) << openrknn_error();
  openrknn_outputs* outputs = nullptr;
  ASSERT_EQ(openrknn_program_run(program, nullptr, &input, 1, &outputs), OPENRKNN_OK) << openrknn_error();
  ASSERT_EQ(openrknn_outputs_count(outputs), openrknn_outputs_count(golden));
  openrknn_tensor expected{};
  openrknn_tensor got{};
  int quantized = -1;
  ASSERT_EQ(openrknn_outputs_get(golden, 0, nullptr, &expected, nullptr, nullptr, nullptr), OPENRKNN_OK);
  ASSERT_EQ(openrknn_outputs_get(outputs, 0, &name, &got, &quantized, nullptr, nullptr), OPENRKNN_OK);
  EXPECT_EQ(quantized, 0);
  EXPECT_EQ(got.bytes, expected.bytes);

  char* json = nullptr;
  ASSERT_EQ(openrknn_program_inspect_json(program, &json), OPENRKNN_OK);
  EXPECT_EQ(nlohmann::json::parse(json)["target"], "rk3588");
  openrknn_text_free(json);
  openrknn_outputs_free(outputs);
  openrknn_outputs_free(golden);
  openrknn_program_free(program);
  openrknn_options_free(options);
  openrknn_model_free(model);
}

TEST(CInterface, ErrorsHaveParts) {
  openrknn_model* model = nullptr;
  EXPECT_EQ(openrknn_model_load("/no/such/file.onnx", nullptr, &model), OPENRKNN_NOT_FOUND);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(openrknn_error()).find("/no/such/file.onnx"), std::string::npos);
  EXPECT_NE(std::string(openrknn_error_part(1)).find("/no/such/file.onnx"), std::string::npos);
  EXPECT_STREQ(openrknn_error_part(9), "");
  EXPECT_EQ(openrknn_model_load(nullptr, nullptr, &model), OPENRKNN_INVALID_ARGUMENT);
  EXPECT_EQ(openrknn_model_run(nullptr, nullptr, 0, nullptr), OPENRKNN_INVALID_ARGUMENT);
  openrknn_model_free(nullptr);
  openrknn_options_free(nullptr);
}

}  // namespace
}  // namespace openrknn::toolkit
