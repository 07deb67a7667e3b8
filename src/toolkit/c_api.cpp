// The C ABI: every function catches what it must, keeps the error for the thread, and forwards to toolkit.hpp.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "openrknn/toolkit.h"
#include "openrknn/toolkit.hpp"
#include "toolkit/option_text.hpp"

namespace tk = openrknn::toolkit;

struct openrknn_options {
  openrknn::facade::TextOptions all;
};
struct openrknn_model {
  tk::Model model;
};
struct openrknn_program {
  tk::Program program;
};
struct openrknn_outputs {
  std::vector<tk::Output> outputs;
};

namespace {

struct LastError {
  tk::Error error;
  std::string message;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

int failed(const tk::Error& error) {
  last_error() = {error, error.message()};
  return static_cast<int>(error.code) + 1;
}

int bad_argument(const char* where, const char* why) {
  return failed({tk::ErrorCode::kInvalidArgument, "wrong use of the interface", where, why, "see openrknn/toolkit.h"});
}

// No exception crosses the border: memory that runs out becomes an error.
template <typename Body>
int guarded(const char* where, const Body& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return failed({tk::ErrorCode::kResource, "cannot go on", where, e.what(), "free memory"});
  }
}

int give_text(const std::string& text, char** out) {
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (*out == nullptr)
    return failed({tk::ErrorCode::kResource, "cannot give a text", "", "out of memory", "free memory"});
  std::memcpy(*out, text.c_str(), text.size() + 1);
  return OPENRKNN_OK;
}

bool take_tensor(const openrknn_tensor& t, tk::Tensor& out) {
  if (t.rank < 0 || t.rank > OPENRKNN_MAX_RANK || t.dtype < 0 || t.dtype > OPENRKNN_BOOL ||
      (t.data == nullptr && t.bytes != 0))
    return false;
  out.dtype = static_cast<tk::DType>(t.dtype);
  out.shape.assign(t.dims, t.dims + t.rank);
  const auto* data = static_cast<const std::byte*>(t.data);
  out.data.assign(data, data + t.bytes);
  return true;
}

void show_tensor(tk::DType dtype, const std::vector<int64_t>& shape, openrknn_tensor& out) {
  out = {};
  out.dtype = static_cast<int32_t>(dtype);
  out.rank = static_cast<int32_t>(shape.size());
  for (size_t i = 0; i < shape.size() && i < OPENRKNN_MAX_RANK; ++i) out.dims[i] = shape[i];
}

int show_info(const std::vector<tk::TensorInfo>& infos, int index, const char** name, openrknn_tensor* info,
              int* nhwc) {
  if (index < 0 || static_cast<size_t>(index) >= infos.size()) return bad_argument("index", "out of range");
  const tk::TensorInfo& i = infos[static_cast<size_t>(index)];
  if (name != nullptr) *name = i.name.c_str();
  if (info != nullptr) show_tensor(i.dtype, i.shape, *info);
  if (nhwc != nullptr) *nhwc = i.nhwc ? 1 : 0;
  return OPENRKNN_OK;
}

int take_inputs(const std::vector<tk::TensorInfo>& infos, const openrknn_tensor* inputs, int count, tk::Tensors& out) {
  if (count < 0 || static_cast<size_t>(count) != infos.size() || (count > 0 && inputs == nullptr))
    return bad_argument("inputs", "one tensor an input is needed");
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!take_tensor(inputs[i], out[infos[i].name]))
      return bad_argument(infos[i].name.c_str(), "the tensor's type, rank or data are not valid");
  }
  return OPENRKNN_OK;
}

int give_outputs(tk::Result<std::vector<tk::Output>> result, openrknn_outputs** outputs) {
  if (!result.ok()) return failed(result.error());
  *outputs = new openrknn_outputs{std::move(result).value()};
  return OPENRKNN_OK;
}

int set_channels(std::vector<tk::ChannelValues>& list, const char* input, const float* values, int count) {
  if (values == nullptr || count < 1) return bad_argument("values", "at least one is needed");
  list.push_back({input == nullptr ? "" : input, {values, values + count}});
  return OPENRKNN_OK;
}

}  // namespace

extern "C" {

const char* openrknn_error(void) { return last_error().message.c_str(); }

const char* openrknn_error_part(int part) {
  const tk::Error& e = last_error().error;
  const std::string* parts[] = {&e.what, &e.where, &e.why, &e.hint};
  return part < 0 || part > 3 ? "" : parts[part]->c_str();
}

const char* openrknn_version(void) { return OPENRKNN_VERSION; }
void openrknn_text_free(char* text) { std::free(text); }
void openrknn_set_threads(int count) { tk::set_threads(count); }
void openrknn_set_memory_budget(int64_t bytes) { tk::set_memory_budget(bytes); }
void openrknn_set_log_level(int level) {
  if (level >= 0 && level <= 3) tk::set_log_level(static_cast<tk::LogLevel>(level));
}

int openrknn_targets_json(char** json) {
  if (json == nullptr) return bad_argument("json", "NULL");
  return guarded("targets", [&] { return give_text(tk::to_json(tk::targets()), json); });
}

int openrknn_options_new(openrknn_options** options) {
  if (options == nullptr) return bad_argument("options", "NULL");
  return guarded("options", [&] {
    *options = new openrknn_options{};
    return static_cast<int>(OPENRKNN_OK);
  });
}

void openrknn_options_free(openrknn_options* options) { delete options; }

int openrknn_options_set(openrknn_options* options, const char* name, const char* text) {
  if (options == nullptr || name == nullptr || text == nullptr) return bad_argument("options", "NULL");
  return guarded(name, [&] {
    const auto status = openrknn::facade::set_option(options->all, name, text);
    return status.ok() ? static_cast<int>(OPENRKNN_OK) : failed(status.error());
  });
}

int openrknn_options_set_input(openrknn_options* options, const char* name, const int64_t* dims, int rank) {
  if (options == nullptr || rank < 0 || rank > OPENRKNN_MAX_RANK || (rank > 0 && dims == nullptr))
    return bad_argument("dims", "not valid");
  return guarded("input", [&] {
    options->all.load.inputs.push_back({name == nullptr ? "" : name, {dims, dims + rank}});
    return static_cast<int>(OPENRKNN_OK);
  });
}

int openrknn_options_set_input_value(openrknn_options* options, const char* name, const openrknn_tensor* value) {
  if (options == nullptr || name == nullptr || value == nullptr) return bad_argument("value", "NULL");
  return guarded(name, [&] {
    tk::Tensor tensor;
    if (!take_tensor(*value, tensor)) return bad_argument(name, "the tensor's type, rank or data are not valid");
    options->all.load.input_values.insert_or_assign(name, std::move(tensor));
    return static_cast<int>(OPENRKNN_OK);
  });
}

int openrknn_options_set_mean(openrknn_options* options, const char* input, const float* values, int count) {
  if (options == nullptr) return bad_argument("options", "NULL");
  return guarded("mean", [&] { return set_channels(options->all.config.mean, input, values, count); });
}

int openrknn_options_set_std(openrknn_options* options, const char* input, const float* values, int count) {
  if (options == nullptr) return bad_argument("options", "NULL");
  return guarded("std", [&] { return set_channels(options->all.config.std_dev, input, values, count); });
}

int openrknn_options_set_layer_dtype(openrknn_options* options, const char* tensor, const char* dtype) {
  if (options == nullptr || tensor == nullptr || dtype == nullptr) return bad_argument("options", "NULL");
  return guarded("layer-dtype", [&] {
    options->all.config.layer_dtype[tensor] = dtype;
    return static_cast<int>(OPENRKNN_OK);
  });
}

int openrknn_model_load(const char* path, const openrknn_options* options, openrknn_model** model) {
  if (path == nullptr || model == nullptr) return bad_argument("path", "NULL");
  return guarded(path, [&] {
    auto loaded = tk::Model::load(path, options == nullptr ? tk::LoadOptions{} : options->all.load);
    if (!loaded.ok()) return failed(loaded.error());
    *model = new openrknn_model{std::move(loaded).value()};
    return static_cast<int>(OPENRKNN_OK);
  });
}

void openrknn_model_free(openrknn_model* model) { delete model; }
int openrknn_model_input_count(const openrknn_model* model) {
  return model == nullptr ? 0 : static_cast<int>(model->model.inputs().size());
}
int openrknn_model_output_count(const openrknn_model* model) {
  return model == nullptr ? 0 : static_cast<int>(model->model.outputs().size());
}

int openrknn_model_input(const openrknn_model* model, int index, const char** name, openrknn_tensor* info, int* nhwc) {
  if (model == nullptr) return bad_argument("model", "NULL");
  return guarded("input", [&] { return show_info(model->model.inputs(), index, name, info, nhwc); });
}

int openrknn_model_output(const openrknn_model* model, int index, const char** name, openrknn_tensor* info, int* nhwc) {
  if (model == nullptr) return bad_argument("model", "NULL");
  return guarded("output", [&] { return show_info(model->model.outputs(), index, name, info, nhwc); });
}

int openrknn_model_run(const openrknn_model* model, const openrknn_tensor* inputs, int count,
                       openrknn_outputs** outputs) {
  if (model == nullptr || outputs == nullptr) return bad_argument("model", "NULL");
  return guarded("run", [&] {
    tk::Tensors tensors;
    if (const int code = take_inputs(model->model.inputs(), inputs, count, tensors); code != OPENRKNN_OK) return code;
    return give_outputs(model->model.run(tensors), outputs);
  });
}

int openrknn_model_inspect_json(const openrknn_model* model, char** json) {
  if (model == nullptr || json == nullptr) return bad_argument("model", "NULL");
  return guarded("inspect", [&] { return give_text(tk::to_json(model->model.inspect()), json); });
}

int openrknn_model_preflight_json(const openrknn_model* model, const char* target, const char* dtype, int* buildable,
                                  char** json) {
  if (model == nullptr || target == nullptr || json == nullptr) return bad_argument("model", "NULL");
  return guarded("preflight", [&] {
    const auto report = model->model.preflight(target, dtype == nullptr ? "" : dtype);
    if (!report.ok()) return failed(report.error());
    if (buildable != nullptr) *buildable = report->buildable ? 1 : 0;
    return give_text(tk::to_json(*report), json);
  });
}

int openrknn_model_build(const openrknn_model* model, const openrknn_options* options, const char* dataset,
                         openrknn_program** program) {
  if (model == nullptr || options == nullptr || program == nullptr) return bad_argument("model", "NULL");
  return guarded("build", [&] {
    auto built = model->model.build(options->all.config, dataset == nullptr ? "" : dataset);
    if (!built.ok()) return failed(built.error());
    *program = new openrknn_program{std::move(built).value()};
    return static_cast<int>(OPENRKNN_OK);
  });
}

int openrknn_program_load(const char* path, openrknn_program** program) {
  if (path == nullptr || program == nullptr) return bad_argument("path", "NULL");
  return guarded(path, [&] {
    auto loaded = tk::Program::load(path);
    if (!loaded.ok()) return failed(loaded.error());
    *program = new openrknn_program{std::move(loaded).value()};
    return static_cast<int>(OPENRKNN_OK);
  });
}

void openrknn_program_free(openrknn_program* program) { delete program; }

int openrknn_program_write(const openrknn_program* program, const char* path) {
  if (program == nullptr || path == nullptr) return bad_argument("program", "NULL");
  return guarded(path, [&] {
    const auto status = program->program.write(path);
    return status.ok() ? static_cast<int>(OPENRKNN_OK) : failed(status.error());
  });
}

int openrknn_program_input_count(const openrknn_program* program) {
  return program == nullptr ? 0 : static_cast<int>(program->program.inputs().size());
}
int openrknn_program_output_count(const openrknn_program* program) {
  return program == nullptr ? 0 : static_cast<int>(program->program.outputs().size());
}

int openrknn_program_input(const openrknn_program* program, int index, const char** name, openrknn_tensor* info,
                           int* nhwc) {
  if (program == nullptr) return bad_argument("program", "NULL");
  return guarded("input", [&] { return show_info(program->program.inputs(), index, name, info, nhwc); });
}

int openrknn_program_output(const openrknn_program* program, int index, const char** name, openrknn_tensor* info,
                            int* nhwc) {
  if (program == nullptr) return bad_argument("program", "NULL");
  return guarded("output", [&] { return show_info(program->program.outputs(), index, name, info, nhwc); });
}

int openrknn_program_run(openrknn_program* program, const openrknn_options* options, const openrknn_tensor* inputs,
                         int count, openrknn_outputs** outputs) {
  if (program == nullptr || outputs == nullptr) return bad_argument("program", "NULL");
  return guarded("run", [&] {
    tk::Tensors tensors;
    if (const int code = take_inputs(program->program.inputs(), inputs, count, tensors); code != OPENRKNN_OK)
      return code;
    return give_outputs(program->program.run(tensors, options == nullptr ? tk::RunOptions{} : options->all.run),
                        outputs);
  });
}

int openrknn_program_inspect_json(const openrknn_program* program, char** json) {
  if (program == nullptr || json == nullptr) return bad_argument("program", "NULL");
  return guarded("inspect", [&] { return give_text(tk::to_json(program->program.inspect()), json); });
}

int openrknn_compare_json(const openrknn_model* model, openrknn_program* program, const char* dataset, char** json) {
  if (model == nullptr || program == nullptr || dataset == nullptr || json == nullptr)
    return bad_argument("compare", "NULL");
  return guarded("compare", [&] {
    const auto report = tk::compare(model->model, program->program, dataset);
    return report.ok() ? give_text(tk::to_json(*report), json) : failed(report.error());
  });
}

void openrknn_outputs_free(openrknn_outputs* outputs) { delete outputs; }
int openrknn_outputs_count(const openrknn_outputs* outputs) {
  return outputs == nullptr ? 0 : static_cast<int>(outputs->outputs.size());
}

int openrknn_outputs_get(const openrknn_outputs* outputs, int index, const char** name, openrknn_tensor* tensor,
                         int* quantized, float* scale, int32_t* zero_point) {
  if (outputs == nullptr || index < 0 || static_cast<size_t>(index) >= outputs->outputs.size())
    return bad_argument("index", "out of range");
  const tk::Output& o = outputs->outputs[static_cast<size_t>(index)];
  if (name != nullptr) *name = o.name.c_str();
  if (tensor != nullptr) {
    show_tensor(o.tensor.dtype, o.tensor.shape, *tensor);
    tensor->data = o.tensor.data.data();
    tensor->bytes = o.tensor.data.size();
  }
  if (quantized != nullptr) *quantized = o.scale.has_value() ? 1 : 0;
  if (scale != nullptr && o.scale) *scale = *o.scale;
  if (zero_point != nullptr && o.zero_point) *zero_point = *o.zero_point;
  return OPENRKNN_OK;
}

}  // extern "C"
