// What the NPU will do: tasks over tensors that lie in planned buffers, with packed weights and integer constants.
// A Program is self-contained: the simulator needs nothing else, least of all the compiler that made it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "core/attributes.hpp"
#include "core/dtype.hpp"
#include "core/numerics.hpp"
#include "core/quant_params.hpp"
#include "core/shape.hpp"

namespace openrknn::model {

enum class Engine : uint8_t { kNpu, kCpu };

enum class Layout : uint8_t {
  kPlain,    // row-major elements of `shape`: what CPU tasks read and write
  kNC1HWC2,  // the feature cube: [n][c / c2][h][w][c % c2], planes `surface_stride` apart
  kNHWC,     // packed pixels with padded rows: network inputs of 1, 3 or 4 channels
};

// The 4-D view of a logical tensor. A rank-2 [N, C] is (N, C, 1, 1), a rank-3 [N, C, L] is (N, C, 1, L); see cube_of.
struct Cube {
  int64_t n = 1, c = 1, h = 1, w = 1;
  bool operator==(const Cube&) const = default;
};

constexpr int kNone = -1;

// One allocation of the internal arena. Graph inputs and outputs lie there too.
struct Buffer {
  std::string name;
  int64_t size = 0;    // bytes, a multiple of the alignment
  int64_t offset = 0;  // bytes from the start of the arena
  int first_task = 0;  // index of the task that writes it first; -1 for graph inputs
  int last_task = 0;   // index of the last task that touches it; tasks.size() for graph outputs
};

struct TensorDesc {
  std::string name;
  std::vector<std::string> aliases;  // source names that fusion has swallowed
  DType dtype = DType::kInt8;        // kInt8, kInt16, kFloat16 on the NPU; any on the CPU
  Shape shape;                       // logical, as the source model has it
  Layout layout = Layout::kNC1HWC2;
  Cube cube;                         // of kNC1HWC2 and kNHWC
  int c2 = 16;                       // lanes of kNC1HWC2
  int64_t surface_stride = 0;        // kNC1HWC2: bytes from one plane of c2 channels to the next
  int64_t batch_stride = 0;          // kNC1HWC2, kNHWC: bytes from one image to the next
  int64_t row_stride = 0;            // kNC1HWC2, kNHWC: bytes from one row to the next
  int buffer = kNone;                // index into Program::buffers; kNone for constants
  int64_t offset = 0;                // bytes inside the buffer: a Concat operand in place starts at its channel plane
  int constant = kNone;              // blob that holds the elements, in `layout`
  std::optional<QuantParams> quant;  // integers only, per tensor for activations
};

// A slice of the weights section.
struct Blob {
  int64_t offset = 0;  // 64-byte aligned
  int64_t size = 0;
};

// One step of a task on the hardware: a block of the output and the input window it needs.
struct Tile {
  int32_t n = 0;                             // image of the batch
  int32_t oc = 0, ocs = 0;                   // output channels [oc, oc + ocs)
  int32_t oh = 0, ohs = 0, ow = 0, ows = 0;  // output rows and columns
  int32_t ih = 0, ihs = 0, iw = 0, iws = 0;  // input rows and columns that exist (halo included, padding excluded)
  int32_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;  // of this tile
  int32_t data_banks = 0, weight_banks = 0;  // convolution buffer split (0: the task does not use it)
};

enum class ConvMode : uint8_t { kDirect, kDepthwise };

struct Convolution {
  ConvMode mode = ConvMode::kDirect;    // grouped convolutions are several tasks or dense ones with zero weights
  bool transposed = false;              // ConvTranspose: the input is dilated by `stride` with pad_value, then stride 1
  std::array<int32_t, 2> kernel{1, 1};  // h, w
  std::array<int32_t, 2> stride{1, 1};
  std::array<int32_t, 4> pad{0, 0, 0, 0};  // top, left, bottom, right; of a transposed one as ONNX has them
  std::array<int32_t, 2> dilation{1, 1};
  int32_t pad_value = 0;    // int8: the input's zero point; fp16: 0
  int32_t in_channels = 0;  // real ones
  int32_t out_channels = 0;
  // Packed weights. The logical order is [oc][ic][kh][kw] (ConvTranspose too: already flipped and transposed into
  // the equivalent stride-1 convolution's weights). Packing: docs/ARITHMETIC.md "Weight cubes".
  int weights = kNone;  // blob
  DType weight_dtype = DType::kInt8;
  int32_t kernel_group = 32;                // output channels a group of the cube (1 for depthwise)
  int32_t channel_group = 32;               // input channels a slice of the cube
  std::optional<QuantParams> weight_quant;  // per channel (axis 0) or per tensor
  // int8: the stream of A (int32 bias with the input zero point folded in), B (int16, minus the weight zero point) and
  // C (multiplier) per output channel, see codec.hpp. fp16: fp32 bias per output channel, dense; kNone when there is
  // none.
  int params = kNone;
};

// The two integer stages behind an accumulator.
struct Requant {
  bool channel_multiplier_bypass = false;  // per-layer weights: the first stage is v = sat32(t)
  int32_t channel_shift = 0;               // of non-negative products
  int32_t channel_shift_negative = 0;      // of negative ones
  int32_t multiplier = 1;                  // signed 16 bits
  int32_t shift = 0;
  int32_t zero_point = 0;  // of the output
};

// v += rne((x + offset) * multiplier, shift): an integer operand of Add, Sub, Max, Min, Concat or a fused residual.
struct Operand {
  int32_t offset = 0;  // minus the operand's zero point
  int32_t multiplier = 1;
  int32_t shift = 0;
};

enum class ActivationKind : uint8_t {
  kLinear,    // none
  kClamp,     // min(max(v, min), max): Relu, Relu6, Clip
  kPRelu,     // v < 0 ? rne(v * slope[c], slope_shift) : v  (int8);  v < 0 ? v * slope[c] : v  (fp16)
  kTable,     // the look-up table
  kFunction,  // fp16 only: `function` itself in fp32, one rounding at the end. What the silicon's tables give for small
              // results is not known well enough to be repeated; labelled "modelled" in reports
};

// What the table of a fp16 task means. Integer tasks tabulate the function itself (kValue).
enum class TableForm : uint8_t {
  kValue,  // y = T(x)
  kGate,   // y = x * T(x)
  kPlus,   // y = max(x, 0) + T(x)
};

struct Activation {
  ActivationKind kind = ActivationKind::kLinear;
  std::string function;  // ONNX's or our name of what it stands for: "Relu", "Sigmoid", "exSwish", ...
  // int8: limits of v after the residual ("value" domain). fp16: limits as fp32.
  int64_t min = 0, max = 0;
  float fmin = 0, fmax = 0;
  int slopes = kNone;  // blob: int16 (int8 tasks) or fp32 (fp16 tasks), one or one per channel
  int32_t slope_count = 0;
  int32_t slope_shift = 0;
  // Table: int16 [2][513], negative half first. index x = clamp(rne(v * index_scale, index_shift), -16384, 16384) for
  // int8; x = clamp(rne_int(v * findex_scale), -16384, 16384) for fp16. Then d = x + 16384 or x, i = d >> 5, f = d &
  // 31, y = T[i] + ((T[i + 1] - T[i]) * f >> 5) (floor). int8: y goes to the output stage. fp16: y * out_scale in fp32,
  // then `form`.
  int table = kNone;  // blob
  int32_t index_scale = 1;
  int32_t index_shift = 0;
  float findex_scale = 1;
  float out_scale = 1;
  TableForm form = TableForm::kValue;
  float alpha = 0, beta = 0;  // kFunction: the parameters of HardSigmoid, Elu
};

enum class TaskKind : uint8_t {
  kConv,         // Conv, ConvTranspose: inputs x [, residual]
  kPool,         // MaxPool, AveragePool (padding counted)
  kElementwise,  // Add, Sub, Mul, Div, Max, Min of tensors of equal cube, or broadcast over dims of extent 1
  kActivation,   // an activation alone: v = x - zero point (int8) or x (fp16)
  kConcat,       // along the cube's channels or another axis of `shape`; operands requantized
  kConvert,      // exDataConvert: changes dtype, scale or layout, values kept
  kMove,         // moves raw elements: the float kernel's plan on raw dtypes (Transpose, Reshape, Slice, ...)
  kMatMul,       // of two fp16 tensors, batches as numpy's: sums in the profile's groups along K
  kModelled,     // NPU function in fp16 whose inside is not known: fp32 kernel, one rounding to fp16
  kCpu,          // fp32 kernel of kernels/cpu on plain tensors
};

struct Pool {
  bool average = false;
  std::array<int32_t, 2> kernel{1, 1};
  std::array<int32_t, 2> stride{1, 1};
  std::array<int32_t, 4> pad{0, 0, 0, 0};  // top, left, bottom, right
  int32_t pad_value = 0;                   // average: the zero point (int8); max: never wins
};

struct Task {
  std::string name;  // of its (first) output
  TaskKind kind = TaskKind::kCpu;
  std::string op;  // ONNX's name where ONNX has one
  Engine engine = Engine::kNpu;
  std::vector<std::string> source;  // nodes of the source model
  std::string reason;               // why it is on the CPU, with the limit's name; empty on the NPU
  std::vector<int> inputs;          // tensors; kNone for an absent optional operand of a CPU task
  std::vector<int> outputs;
  Attributes attributes;  // kMove, kModelled, kCpu, kConcat: the operator's own
  std::optional<Convolution> conv;
  std::optional<Pool> pool;
  std::optional<Requant> requant;  // int8 tasks that end in the output stage
  std::vector<Operand> operands;   // one per tensor input of Add, Sub, Max, Min, Concat; one for a fused residual
  Activation activation;
  bool in_place = false;  // nothing to execute: the result already lies where it belongs (addressing only)
  std::vector<Tile> tiles;
  int64_t macs = 0;  // logical
};

// A graph input or output as the application sees it.
struct Port {
  std::string name;
  int tensor = kNone;
  DType source_dtype = DType::kFloat32;
  Shape source_shape;
  std::vector<float> mean, std_dev;  // inputs: (x - mean) / std per channel before quantization; empty: none
  int channel_axis = 1;              // of mean and std
};

// The weights section: owned bytes, or a part of a mapped file.
class WeightStore {
 public:
  WeightStore() = default;
  explicit WeightStore(std::vector<std::byte> bytes) : owned_(std::move(bytes)), view_(owned_) {}
  WeightStore(MappedFile file, size_t offset, size_t size)
      : mapped_(std::move(file)), view_(mapped_.bytes().subspan(offset, size)) {}
  WeightStore(WeightStore&&) = default;
  WeightStore& operator=(WeightStore&&) = default;
  std::span<const std::byte> bytes() const { return view_; }

 private:
  std::vector<std::byte> owned_;
  MappedFile mapped_;
  std::span<const std::byte> view_;
};

struct Program {
  std::string target;  // "rk3588"
  NumericsProfile profile;
  std::string dtype;        // what was asked for: "w8a8", "fp16"
  std::vector<Task> tasks;  // in order of execution
  std::vector<TensorDesc> tensors;
  std::vector<Buffer> buffers;
  std::vector<Port> inputs, outputs;
  std::vector<Blob> blobs;
  std::shared_ptr<const WeightStore> weights;
  int64_t arena_size = 0;
  int64_t arena_lower_bound = 0;    // the largest sum of live bytes in this order
  int64_t cbuf_bytes = 0;           // convolution buffer: what strict mode lets one tile hold
  int64_t cbuf_bank_bytes = 32768;  // of one bank, the unit of Tile::data_banks and weight_banks
  std::string custom_string;
  std::string provenance;  // JSON text: source file name, its checksum, config, tool version
  std::string graph_text;  // the optimised graph, opaque here

  std::span<const std::byte> blob(int id) const {
    const Blob& b = blobs[static_cast<size_t>(id)];
    return weights->bytes().subspan(static_cast<size_t>(b.offset), static_cast<size_t>(b.size));
  }
  const TensorDesc& tensor(int id) const { return tensors[static_cast<size_t>(id)]; }
};

// Everything that DESIGN promises of a Program: indices in range, offsets aligned and inside the arena, live buffers
// apart, reads after writes, views inside their buffers, blobs inside the section and of the right size, tiles that
// cover each output exactly once, parameters in range. The reader calls it, so a file that passes can be executed
// safely.
Status validate(const Program& program);

}  // namespace openrknn::model
