// Builds small Programs by hand for tests: every tensor in a buffer of its own that lives from start to end.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "model/codec.hpp"
#include "model/program.hpp"

namespace openrknn::model::test {

class Builder {
 public:
  Builder() {
    p_.target = "test";
    p_.dtype = "w8a8";
    p_.cbuf_bytes = 12 * 32768;
  }

  Program& program() { return p_; }

  int blob(const void* data, size_t size) {
    weights_.resize(static_cast<size_t>(align_up(static_cast<int64_t>(weights_.size()), 64)));
    p_.blobs.push_back({static_cast<int64_t>(weights_.size()), static_cast<int64_t>(size)});
    const auto* bytes = static_cast<const std::byte*>(data);
    weights_.insert(weights_.end(), bytes, bytes + size);
    return static_cast<int>(p_.blobs.size()) - 1;
  }
  template <typename T>
  int blob(const std::vector<T>& values) {
    return blob(values.data(), values.size() * sizeof(T));
  }

  int buffer(const std::string& name, int64_t bytes) {
    const int64_t size = align_up(bytes, 64);
    p_.buffers.push_back({name, size, p_.arena_size, -1, 0});
    p_.arena_size += size;
    return static_cast<int>(p_.buffers.size()) - 1;
  }

  // A tensor without a place yet.
  static TensorDesc desc(const std::string& name, DType dtype, const Shape& shape, Layout layout) {
    TensorDesc t;
    t.name = name;
    t.dtype = dtype;
    t.shape = shape;
    t.layout = layout;
    t.cube = cube_of(shape);
    t.c2 = static_cast<int>(16 / dtype_size(dtype));
    return t;
  }

  int add(TensorDesc t, int pixel_align = 1, int width_align = 1) {
    t.buffer = buffer(t.name, set_dense_strides(t, pixel_align, width_align));
    return place(std::move(t));
  }
  int place(TensorDesc t) {
    p_.tensors.push_back(std::move(t));
    return static_cast<int>(p_.tensors.size()) - 1;
  }
  int int8(const std::string& name, const Shape& shape, float scale, int zero, Layout layout = Layout::kNC1HWC2) {
    TensorDesc t = desc(name, DType::kInt8, shape, layout);
    t.quant = QuantParams::per_tensor(DType::kInt8, scale, zero);
    return add(std::move(t));
  }
  int half(const std::string& name, const Shape& shape, Layout layout = Layout::kNC1HWC2) {
    return add(desc(name, DType::kFloat16, shape, layout));
  }
  int plain(const std::string& name, DType dtype, const Shape& shape) {
    return add(desc(name, dtype, shape, Layout::kPlain));
  }
  // A constant with row-major elements.
  int constant(TensorDesc t, const void* elements) {
    std::vector<std::byte> bytes(static_cast<size_t>(set_dense_strides(t, 1, 1)));
    pack_tensor(t, elements, bytes.data());
    t.constant = blob(bytes);
    return place(std::move(t));
  }

  void input(const std::string& name, int tensor) { p_.inputs.push_back(port(name, tensor)); }
  void output(const std::string& name, int tensor) { p_.outputs.push_back(port(name, tensor)); }

  Task& task(TaskKind kind, const std::string& op, std::vector<int> inputs, std::vector<int> outputs) {
    Task t;
    t.kind = kind;
    t.op = op;
    t.engine = kind == TaskKind::kCpu ? Engine::kCpu : Engine::kNpu;
    t.name = p_.tensor(outputs[0]).name;
    t.inputs = std::move(inputs);
    t.outputs = std::move(outputs);
    p_.tasks.push_back(std::move(t));
    return p_.tasks.back();
  }

  // Blocks of at most so many channels, rows and columns, each with the input window it needs.
  void tile(Task& t, int64_t channels, int64_t rows, int64_t columns) {
    const Cube& x = p_.tensor(t.inputs[0]).cube;
    const Cube& y = p_.tensor(t.outputs[0]).cube;
    for (int64_t n = 0; n < y.n; ++n) {
      for (int64_t c = 0; c < y.c; c += channels) {
        for (int64_t h = 0; h < y.h; h += rows) {
          for (int64_t w = 0; w < y.w; w += columns) {
            Tile tile;
            tile.n = static_cast<int32_t>(n);
            tile.oc = static_cast<int32_t>(c);
            tile.ocs = static_cast<int32_t>(std::min(channels, y.c - c));
            axis(t, 0, h, std::min(rows, y.h - h), x.h,
                 {&tile.oh, &tile.ohs, &tile.ih, &tile.ihs, &tile.pad_top, &tile.pad_bottom});
            axis(t, 1, w, std::min(columns, y.w - w), x.w,
                 {&tile.ow, &tile.ows, &tile.iw, &tile.iws, &tile.pad_left, &tile.pad_right});
            t.tiles.push_back(tile);
          }
        }
      }
    }
  }

  Program finish() {
    weights_.resize(static_cast<size_t>(align_up(static_cast<int64_t>(weights_.size()), 64)));
    p_.weights = std::make_shared<const WeightStore>(weights_);
    for (Buffer& b : p_.buffers) b.last_task = static_cast<int>(p_.tasks.size());
    return p_;
  }

 private:
  Port port(const std::string& name, int tensor) const {
    Port port;
    port.name = name;
    port.tensor = tensor;
    port.source_shape = p_.tensor(tensor).shape;
    return port;
  }

  struct AxisFields {
    int32_t *out, *outs, *in, *ins, *pad_low, *pad_high;
  };
  static void axis(const Task& t, size_t d, int64_t first, int64_t count, int64_t extent, const AxisFields& f) {
    const int64_t k = t.conv ? t.conv->kernel[d] : t.pool->kernel[d];
    const int64_t s = t.conv ? t.conv->stride[d] : t.pool->stride[d];
    const int64_t p = t.conv ? t.conv->pad[d] : t.pool->pad[d];
    const int64_t reach = (k - 1) * (t.conv ? t.conv->dilation[d] : 1);
    int64_t start = first * s - p, end = (first + count - 1) * s - p + reach;
    if (t.conv && t.conv->transposed) {
      start = first - (reach - p);
      end = start + count - 1 + reach;
      start = start >= 0 ? ceil_div(start, s) : 0;
      end = end >= 0 ? end / s : -1;
    }
    const int64_t lo = std::clamp<int64_t>(start, 0, extent), hi = std::clamp<int64_t>(end + 1, lo, extent);
    *f.out = static_cast<int32_t>(first);
    *f.outs = static_cast<int32_t>(count);
    *f.in = static_cast<int32_t>(lo);
    *f.ins = static_cast<int32_t>(hi - lo);
    *f.pad_low = static_cast<int32_t>(std::max<int64_t>(0, lo - start));
    *f.pad_high = static_cast<int32_t>(std::max<int64_t>(0, end + 1 - hi));
  }

  Program p_;
  std::vector<std::byte> weights_;
};

// Random elements for tests, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  float real(float low, float high) {
    return low + (high - low) * static_cast<float>(static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  std::vector<int8_t> bytes(int64_t count, int64_t low = -128, int64_t high = 127) {
    std::vector<int8_t> out(static_cast<size_t>(count));
    for (auto& x : out) x = static_cast<int8_t>(between(low, high));
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace openrknn::model::test
