/* The interface of openrknn/toolkit.hpp as a C ABI, for bindings.
 *
 * Functions return OPENRKNN_OK or the code of the failure; openrknn_error() then holds its text for the calling thread.
 * Handles are opaque and freed by the function of their name; freeing NULL is allowed. Texts are UTF-8 and end in 0;
 * those returned through a char** are freed by openrknn_text_free. One handle is used by one thread at a time. */
#ifndef OPENRKNN_TOOLKIT_H_
#define OPENRKNN_TOOLKIT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OPENRKNN_C_API __attribute__((visibility("default")))
#else
#define OPENRKNN_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  OPENRKNN_OK = 0,
  OPENRKNN_INVALID_ARGUMENT = 1,
  OPENRKNN_NOT_FOUND = 2,
  OPENRKNN_IO = 3,
  OPENRKNN_FORMAT = 4,
  OPENRKNN_UNSUPPORTED = 5,
  OPENRKNN_SHAPE = 6,
  OPENRKNN_RESOURCE = 7,
  OPENRKNN_INTERNAL = 8
} openrknn_status;

/* Element types; the numbers are those of DType in toolkit.hpp. */
typedef enum {
  OPENRKNN_UNDEFINED = 0,
  OPENRKNN_FLOAT32 = 1,
  OPENRKNN_FLOAT64 = 2,
  OPENRKNN_FLOAT16 = 3,
  OPENRKNN_BFLOAT16 = 4,
  OPENRKNN_INT8 = 5,
  OPENRKNN_INT16 = 6,
  OPENRKNN_INT32 = 7,
  OPENRKNN_INT64 = 8,
  OPENRKNN_UINT8 = 9,
  OPENRKNN_UINT16 = 10,
  OPENRKNN_UINT32 = 11,
  OPENRKNN_UINT64 = 12,
  OPENRKNN_BOOL = 13
} openrknn_dtype;

#define OPENRKNN_MAX_RANK 8

/* Dense row-major elements. Given ones are copied; returned ones point into their handle. */
typedef struct {
  int32_t dtype; /* openrknn_dtype */
  int32_t rank;  /* 0: a scalar */
  int64_t dims[OPENRKNN_MAX_RANK];
  const void* data; /* NULL where only type and shape are told */
  size_t bytes;
} openrknn_tensor;

typedef struct openrknn_options openrknn_options;
typedef struct openrknn_model openrknn_model;
typedef struct openrknn_program openrknn_program;
typedef struct openrknn_outputs openrknn_outputs;

/* The text of the calling thread's last failure, on one line; never NULL. */
OPENRKNN_C_API const char* openrknn_error(void);
/* Its parts: 0 what, 1 where, 2 why, 3 hint. */
OPENRKNN_C_API const char* openrknn_error_part(int part);
OPENRKNN_C_API const char* openrknn_version(void);
OPENRKNN_C_API void openrknn_text_free(char* text);
OPENRKNN_C_API int openrknn_targets_json(char** json);
/* 0: all cores. */
OPENRKNN_C_API void openrknn_set_threads(int count);
// Bytes that all tensors together may take; 0: the default, 8 GiB.
OPENRKNN_C_API void openrknn_set_memory_budget(int64_t bytes);
/* 0 debug, 1 info, 2 warning, 3 error. */
OPENRKNN_C_API void openrknn_set_log_level(int level);

/* Options of loading, building and running: names and texts as those of the command line without "--". Names that may
 * be repeated there may be set repeatedly: input, output, mean, std, bgr (an empty text: all), layer-dtype, disable.
 * Others: target, dtype, algorithm, method, max-samples, max-unrolled, batch, opt-level, memory-plan, compute-order,
 * custom-string, dump-after, dump-dir, stop-after, max-rewrites; for runs: strict, raw-output (0 or 1), dump. */
OPENRKNN_C_API int openrknn_options_new(openrknn_options** options);
OPENRKNN_C_API void openrknn_options_free(openrknn_options* options);
OPENRKNN_C_API int openrknn_options_set(openrknn_options* options, const char* name, const char* text);
/* Shape, mean, std and number format by the tensor's name, whatever characters it has. */
OPENRKNN_C_API int openrknn_options_set_input(openrknn_options* options, const char* name, const int64_t* dims,
                                              int rank);
OPENRKNN_C_API int openrknn_options_set_input_value(openrknn_options* options, const char* name,
                                                    const openrknn_tensor* value);
OPENRKNN_C_API int openrknn_options_set_mean(openrknn_options* options, const char* input, const float* values,
                                             int count);
OPENRKNN_C_API int openrknn_options_set_std(openrknn_options* options, const char* input, const float* values,
                                            int count);
OPENRKNN_C_API int openrknn_options_set_layer_dtype(openrknn_options* options, const char* tensor, const char* dtype);

/* Source models. `options` may be NULL everywhere. */
OPENRKNN_C_API int openrknn_model_load(const char* path, const openrknn_options* options, openrknn_model** model);
OPENRKNN_C_API void openrknn_model_free(openrknn_model* model);
OPENRKNN_C_API int openrknn_model_input_count(const openrknn_model* model);
OPENRKNN_C_API int openrknn_model_output_count(const openrknn_model* model);
/* Name (valid as long as the handle), type and shape; data is NULL. `nhwc` (may be NULL): 1 when channels come last. */
OPENRKNN_C_API int openrknn_model_input(const openrknn_model* model, int index, const char** name,
                                        openrknn_tensor* info, int* nhwc);
OPENRKNN_C_API int openrknn_model_output(const openrknn_model* model, int index, const char** name,
                                         openrknn_tensor* info, int* nhwc);
/* One tensor an input, in the model's order. */
OPENRKNN_C_API int openrknn_model_run(const openrknn_model* model, const openrknn_tensor* inputs, int count,
                                      openrknn_outputs** outputs);
OPENRKNN_C_API int openrknn_model_inspect_json(const openrknn_model* model, char** json);
/* `buildable` may be NULL. */
OPENRKNN_C_API int openrknn_model_preflight_json(const openrknn_model* model, const char* target, const char* dtype,
                                                 int* buildable, char** json);
/* `dataset`: path of a calibration list, or NULL. */
OPENRKNN_C_API int openrknn_model_build(const openrknn_model* model, const openrknn_options* options,
                                        const char* dataset, openrknn_program** program);

/* Compiled networks. */
OPENRKNN_C_API int openrknn_program_load(const char* path, openrknn_program** program);
OPENRKNN_C_API void openrknn_program_free(openrknn_program* program);
OPENRKNN_C_API int openrknn_program_write(const openrknn_program* program, const char* path);
OPENRKNN_C_API int openrknn_program_input_count(const openrknn_program* program);
OPENRKNN_C_API int openrknn_program_output_count(const openrknn_program* program);
OPENRKNN_C_API int openrknn_program_input(const openrknn_program* program, int index, const char** name,
                                          openrknn_tensor* info, int* nhwc);
OPENRKNN_C_API int openrknn_program_output(const openrknn_program* program, int index, const char** name,
                                           openrknn_tensor* info, int* nhwc);
OPENRKNN_C_API int openrknn_program_run(openrknn_program* program, const openrknn_options* options,
                                        const openrknn_tensor* inputs, int count, openrknn_outputs** outputs);
OPENRKNN_C_API int openrknn_program_inspect_json(const openrknn_program* program, char** json);
OPENRKNN_C_API int openrknn_compare_json(const openrknn_model* model, openrknn_program* program, const char* dataset,
                                         char** json);

/* Results of a run. */
OPENRKNN_C_API void openrknn_outputs_free(openrknn_outputs* outputs);
OPENRKNN_C_API int openrknn_outputs_count(const openrknn_outputs* outputs);
/* `quantized` (may be NULL) is 1 when scale and zero_point (may be NULL) were set: real = scale * (number -
 * zero_point). */
OPENRKNN_C_API int openrknn_outputs_get(const openrknn_outputs* outputs, int index, const char** name,
                                        openrknn_tensor* tensor, int* quantized, float* scale, int32_t* zero_point);

#ifdef __cplusplus
}
#endif

#endif /* OPENRKNN_TOOLKIT_H_ */
