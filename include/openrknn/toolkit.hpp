// The C++ interface of openrknn: load a trained network, build it for an NPU, run both, and compare them.
//
//   namespace tk = openrknn::toolkit;
//   auto model = tk::Model::load("net.onnx");
//   if (!model) return fail(model.error().message());
//   tk::Config config;
//   config.target = "rk3588";
//   auto program = model->build(config, "dataset.txt");
//   if (!program) return fail(program.error().message());
//   auto written = program->write("net.rknn");
//
// The header needs the standard library only; link libopenrknn.so. No function throws; failures are Result values.
// Objects may be moved between threads; one object is used by one thread at a time. Results depend neither on the
// number of threads nor on the machine. Shapes are those of the source model, row-major, sizes are bytes, times
// milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#define OPENRKNN_API __attribute__((visibility("default")))

namespace openrknn::toolkit {

// ---------------------------------------------------------------------------------------------------- errors

enum class ErrorCode { kInvalidArgument, kNotFound, kIo, kFormat, kUnsupported, kShape, kResource, kInternal };

// A failure: what could not be done, where (file, node, tensor or argument), why (values met and expected), what to do
// next.
struct OPENRKNN_API Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;
  std::string where;
  std::string why;
  std::string hint;

  // All of it on one line: "what: where: why; hint".
  std::string message() const;
};

// A value or the Error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Only when ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  // Only when not ok().
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// ---------------------------------------------------------------------------------------------------- tensors

enum class DType : uint8_t {
  kUndefined,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kInt4,
  kUInt4,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kString,
};

// "float32", "int8", ...: numpy's names where numpy has the type.
OPENRKNN_API std::string_view dtype_name(DType dtype);
// kUndefined for a name that is no type.
OPENRKNN_API DType dtype_from_name(std::string_view name);
// Bytes of one element in memory; 4-bit types are held one to a byte.
OPENRKNN_API size_t dtype_size(DType dtype);

// Dense row-major elements in the byte order of the machine.
struct OPENRKNN_API Tensor {
  DType dtype = DType::kUndefined;
  std::vector<int64_t> shape;  // empty: a scalar
  std::vector<std::byte> data;

  int64_t elements() const;
  // The caller picks the C++ type that belongs to dtype.
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
};

using Tensors = std::map<std::string, Tensor, std::less<>>;

// An input or output as the application sees it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> shape;  // -1: an open dimension (only from model_inputs)
  bool nhwc = false;           // a 4-D tensor whose channels come last
};

// One output of a run. With RunOptions::raw_outputs the tensor holds the program's own numbers:
// real = scale * (number - zero_point).
struct Output {
  std::string name;
  Tensor tensor;
  std::optional<float> scale;
  std::optional<int32_t> zero_point;
};

// Layout of 4-D data given or wanted, where it is not the model's own.
enum class DataLayout : uint8_t { kModel, kNchw, kNhwc };

// ---------------------------------------------------------------------------------------------------- options

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};

struct LoadOptions {
  // Binds open dimensions; the name of an inner tensor cuts the graph there. An empty name stands for the model's input
  // at the same position.
  std::vector<NamedShape> inputs;
  Tensors input_values;              // inputs that become constants
  std::vector<std::string> outputs;  // cut here; empty: the model's own
  // Loops are written out, iteration by iteration, into at most so many nodes.
  int64_t max_unrolled_nodes = 20'000;
};

// Values per channel of one input; an empty name takes the inputs in the model's order.
struct ChannelValues {
  std::string input;
  std::vector<float> values;
};

struct Config {
  std::string target;                        // "rk3588": one of targets(), upper or lower case
  std::string dtype = "w8a8";                // w8a8 or fp16 (later: w8a16, w4a16, w16a16i_dfp)
  std::string algorithm = "normal";          // of ranges (later: mmse, kl_divergence, gdq)
  std::string method = "channel";            // weight scales: layer or channel (later: group32, ...)
  std::vector<ChannelValues> mean, std_dev;  // (x - mean) / std is built into the program
  bool bgr_all = false;                      // swaps red and blue of calibration pictures ...
  std::vector<std::string> bgr;              // ... or of these inputs only
  std::map<std::string, std::string>
      layer_dtype;  // tensor name or alias -> number format of its producer or, of an input, its own
  int64_t max_samples = std::numeric_limits<int64_t>::max();
  int batch = 1;
  int opt_level = 3;                         // 0: only what a build needs; 3: everything
  std::string memory_plan = "Optimal";       // or BestFit, GreedyBySize, GreedyByLifetime, SlowPeakGrowth
  std::string compute_order = "WidthFirst";  // or DepthFirst
  std::vector<std::string> disabled_passes;  // names: docs/PASSES.md
  std::string dump_after;                    // the graph's text after this pass, or after "all" of them, ...
  std::string dump_dir = ".";                // ... goes here
  std::string stop_after;                    // no pass after this one
  int64_t max_rewrites = std::numeric_limits<int64_t>::max();
  std::string custom_string;  // stored in the file; at most 1023 bytes
};

struct RunOptions {
  bool strict = false;       // programs: one poisoned arena at the program's own addresses; same bytes, slower
  bool raw_outputs = false;  // programs: the program's own dtype instead of float32
  std::string dump_dir;      // programs: every tensor and constant goes here (docs/JSON.md)
};

// How files become input tensors.
struct FeedOptions {
  std::vector<ChannelValues> mean, std_dev;  // applied here; a program has its own built in as well
  bool bgr = false;                          // pictures: swap red and blue
  DataLayout layout = DataLayout::kModel;    // of .npy files with 4 dimensions
};

// ---------------------------------------------------------------------------------------------------- reports
// Each has a JSON form (to_json) whose keys are stable.

struct Similarity {
  double cos = 1;  // cosine; 1 when both are zero
  double euc = 0;  // euclidean distance
};

struct OutputDifference {
  std::string name;
  Similarity mean, worst;  // over the samples
  double max_abs = 0;
};

struct LayerDifference {
  std::string name;  // tensor of the program
  std::string op;
  std::vector<std::string> source;  // nodes of the source model
  std::string dtype;                // of the tensor
  Similarity entire, entire_worst;  // errors of all layers before it included
  bool has_single = false;
  Similarity single, single_worst;  // the layer alone, fed with golden inputs
};

struct CompareReport {
  int64_t samples = 0;
  std::vector<OutputDifference> outputs;
  std::vector<LayerDifference> layers;  // in order of execution
};

struct TaskTime {
  std::string name;
  std::string op;
  double min_ms = 0;
  int64_t macs = 0;
};

struct BenchReport {
  std::string model;
  std::string target;  // empty for a source model
  std::string isa;
  std::vector<std::pair<std::string, std::string>> kernels;  // each kind, and the instruction set of its loops
  int threads = 1;
  int64_t repeat = 0;
  double min_ms = 0, median_ms = 0;  // the program alone
  double first_ms = 0;               // its first run, which also packs weights and takes memory
  double load_ms = 0, input_ms = 0, output_ms = 0;
  std::vector<TaskTime> tasks;
};

struct ModelReport {
  std::string format;
  int64_t opset = 0;
  std::vector<TensorInfo> inputs, outputs;
  std::map<std::string, int64_t> nodes;  // operator -> count
  int64_t parameters = 0;
  int64_t macs = 0;  // -1: not known, because the model cannot be imported (only from inspect_model_file)
};

struct TaskReport {
  std::string name;
  std::string op;
  std::string engine;  // "npu" or "cpu"
  std::vector<std::string> source, inputs, outputs;
  int64_t tiles = 0;
  int64_t macs = 0;
  int64_t bytes = 0;   // read and written, constants included
  std::string reason;  // why it is on the CPU
};

struct ProgramReport {
  std::string format;
  std::string target, dtype;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<TaskReport> tasks;
  int64_t weights = 0;      // bytes of constants
  int64_t internal = 0;     // bytes of the arena, inputs and outputs apart
  int64_t lower_bound = 0;  // what no plan can be below, in this order of execution: the largest sum of live bytes
  bool plan_is_smallest = false;  // internal is the lower bound, or a complete search has shown that no plan is smaller
  int64_t io = 0;                 // bytes of inputs and outputs
  std::string provenance;         // JSON text
};

struct PreflightNode {
  std::string name;
  std::string op;
  std::string engine;  // "npu", "cpu" or "none"
  std::string reason;  // why it is not on the NPU
  std::string limit;   // the named limit behind it
  int64_t macs = 0;
  int64_t bytes = 0;  // operands and results in the number format chosen
};

struct PreflightReport {
  std::string target;
  bool buildable = true;
  std::vector<PreflightNode> nodes;
  std::vector<std::string> unsupported;  // one sentence each
  std::string summary;
};

struct TargetInfo {
  std::string name, title;
  int cores = 1;
  double clock_mhz = 0;
  int64_t int8_macs_per_cycle = 0;  // of one core
  int64_t cbuf_bytes = 0;
  double dram_gb_s = 0;
  std::vector<std::string> dtypes;
};

OPENRKNN_API std::string to_json(const CompareReport& report);
OPENRKNN_API std::string to_json(const BenchReport& report);
OPENRKNN_API std::string to_json(const ModelReport& report);
OPENRKNN_API std::string to_json(const ProgramReport& report);
OPENRKNN_API std::string to_json(const PreflightReport& report);
OPENRKNN_API std::string to_json(const std::vector<TargetInfo>& targets);

// ---------------------------------------------------------------------------------------------------- programs

// A compiled network: what the NPU will do. Running it simulates the NPU's own arithmetic.
class OPENRKNN_API Program {
 public:
  // Reads a .rknn of openrknn. Every byte is checked: a corrupt file is an error, never a different result.
  static Result<Program> load(const std::string& path);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Writes beside `path` under a temporary name, then renames. Two builds of the same model give the same bytes.
  Status write(const std::string& path) const;
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  // Warnings of the build (values beyond fp16, rewrites rolled back, ...); empty for a loaded file.
  const std::vector<std::string>& warnings() const;
  // One tensor an input, in the source model's shape; any numeric dtype, as the application would give it. Outputs in
  // the model's order, float32 in the source model's layout unless raw.
  Result<std::vector<Output>> run(const Tensors& inputs, const RunOptions& options = {});
  ProgramReport inspect() const;

  struct State;
  explicit Program(std::unique_ptr<State> state);
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// A source model with all dimensions known.
class OPENRKNN_API Model {
 public:
  // The format is found from the content, then the name. Everything that cannot be imported is reported in one error.
  static Result<Model> load(const std::string& path, const LoadOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  const std::vector<std::string>& warnings() const;
  // The golden run: fp32 (and the model's integer types). Outputs in the model's order and dtype.
  Result<std::vector<Output>> run(const Tensors& inputs) const;
  ModelReport inspect() const;
  // Every node's engine on `target`, with reasons; what keeps the model from being built, all at once. `dtype` empty:
  // w8a8 where the target has it.
  Result<PreflightReport> preflight(const std::string& target, const std::string& dtype = "") const;
  // `dataset`: path of a calibration list; may be empty when every layer is fp16. Warnings are logged and kept in the
  // program.
  Result<Program> build(const Config& config, const std::string& dataset) const&;
  // The same; the model is used up, and its weights are freed as soon as rewrites have replaced them.
  Result<Program> build(const Config& config, const std::string& dataset) &&;

  struct State;
  explicit Model(std::unique_ptr<State> state);
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// ---------------------------------------------------------------------------------------------------- functions

OPENRKNN_API std::string version();
OPENRKNN_API std::vector<TargetInfo> targets();
// True when the file is a .rknn by content or by name (it need not be a sound one): Program::load is the function for
// it, Model::load for others.
OPENRKNN_API bool is_program_file(const std::string& path);
// The inputs of a source model before anything is bound: open dimensions are -1.
OPENRKNN_API Result<std::vector<TensorInfo>> model_inputs(const std::string& path);
// What a source model file says of itself, for models that Model::load refuses (unknown operators, open dimensions):
// operators as in the file, shapes as declared, open dimensions -1, macs -1.
OPENRKNN_API Result<ModelReport> inspect_model_file(const std::string& path);

// "FILE" or "NAME=FILE" against the inputs' names (longest match; without a name in order), as (name, file) pairs. An
// input without a file and a file without an input are errors.
OPENRKNN_API Result<std::vector<std::pair<std::string, std::string>>> match_files(
    const std::vector<std::string>& arguments, const std::vector<TensorInfo>& inputs);
// Reads .npy files (in the model's shape) and pictures (resized to it) for these inputs.
OPENRKNN_API Result<Tensors> load_inputs(const std::vector<std::pair<std::string, std::string>>& files,
                                         const std::vector<TensorInfo>& inputs, const FeedOptions& options = {});
// Shapes for the inputs that have open dimensions: of the .npy file given, or of the picture (batch 1, its own size).
OPENRKNN_API Result<std::vector<NamedShape>> bind_open_dimensions(
    const std::vector<std::pair<std::string, std::string>>& files, const std::vector<TensorInfo>& inputs);
OPENRKNN_API Result<Tensor> read_npy(const std::string& path);
// Writes atomically. Types that npy lacks are widened to float32 or int8.
OPENRKNN_API Status write_npy(const std::string& path, const Tensor& tensor);
// Writes `text` atomically.
OPENRKNN_API Status write_text(const std::string& path, std::string_view text);
// DIR/<output>.npy and DIR/outputs.json; 4-D outputs in `layout`. `infos` say the layout that the outputs have.
OPENRKNN_API Status write_outputs(const std::string& folder, const std::vector<Output>& outputs,
                                  const std::vector<TensorInfo>& infos, DataLayout layout = DataLayout::kModel);
// The JSON list of outputs.json.
OPENRKNN_API std::string outputs_to_json(const std::vector<Output>& outputs);
// The files that write_outputs writes for outputs of these names.
OPENRKNN_API std::vector<std::string> output_paths(const std::string& folder, const std::vector<TensorInfo>& infos);
// Every file that a calibration list names; nothing when it cannot be read.
OPENRKNN_API std::vector<std::string> dataset_files(const std::string& path);
// Seeded random inputs in each input's range.
OPENRKNN_API Tensors seeded_inputs(const Model& model, uint64_t seed);
OPENRKNN_API Tensors seeded_inputs(const Program& program, uint64_t seed);

// The golden run of `model` against the simulated run of `program` over the samples of a calibration list, layer by
// layer. Mean and std of the program are applied to the golden run's data.
OPENRKNN_API Result<CompareReport> compare(const Model& model, Program& program, const std::string& dataset,
                                           int64_t max_samples = std::numeric_limits<int64_t>::max(), bool bgr = false);
// Repeats for at least one second, or `repeat` times when it is above 0.
OPENRKNN_API Result<BenchReport> bench(Program& program, const Tensors& inputs, int64_t repeat = 0);
OPENRKNN_API Result<BenchReport> bench(const Model& model, const Tensors& inputs, int64_t repeat = 0);

// Worker threads of everything in this process, 0: all cores. Changes speed only.
OPENRKNN_API void set_threads(int count);
// Bytes that all tensors of the process may take together; what needs more is an error. 0: the default, 8 GiB.
OPENRKNN_API void set_memory_budget(int64_t bytes);
enum class LogLevel { kDebug, kInfo, kWarning, kError };
// Messages go to stderr, never to stdout. kWarning is the default.
OPENRKNN_API void set_log_level(LogLevel level);
OPENRKNN_API Status set_log_file(const std::string& path);
OPENRKNN_API void set_progress(bool enabled);
OPENRKNN_API void log(LogLevel level, std::string_view text);

}  // namespace openrknn::toolkit
