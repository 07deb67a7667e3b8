// Max and average pooling: whole images in fast mode, the Program's tiles in strict mode.
#include "kernels/npu/pool.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "sim/parts.hpp"
#include "sim/runner.hpp"
#include "sim/slab.hpp"

namespace openrknn::sim {
namespace {

constexpr uint16_t kMinusInfinity = 0xFC00;
constexpr int64_t kGrainValues = 1 << 13;

struct Block {
  int64_t n, h, hs, w, ws, c, cs;
};

class PoolRunner final : public Runner {
 public:
  PoolRunner(const model::Program& program, const model::Task& task)
      : task_(task), pool_(*task.pool), integer_(program.tensor(task.outputs[0]).dtype == DType::kInt8) {}

  Status run(const Context& context) override {
    const View& x = context.view(task_.inputs[0]);
    const View& y = context.view(task_.outputs[0]);
    if (!context.strict()) {
      for (int64_t n = 0; n < y.cube.n; ++n)
        compute(context, {&x, n, 0, 0, x.cube.h, x.cube.w}, y, {n, 0, y.cube.h, 0, y.cube.w, 0, y.cube.c});
      return {};
    }
    for (const model::Tile& tile : task_.tiles) run_tile(context, x, y, tile);
    return {};
  }

 private:
  Rectangle rectangle(const Block& b, int64_t columns) const {
    Rectangle r{};
    r.top = b.h * pool_.stride[0] - pool_.pad[0];
    r.left = b.w * pool_.stride[1] - pool_.pad[1];
    r.rows = (b.hs - 1) * pool_.stride[0] + pool_.kernel[0];
    r.columns = (b.ws - 1) * pool_.stride[1] + pool_.kernel[1];
    if (r.left == 0 && r.columns < columns) r.columns = columns;
    r.channels = b.cs;
    set_padding(r);
    return r;
  }

  // Max: what never wins. Average: the padding value counts; fp16 pads with 0.
  void set_padding(Rectangle& r) const {
    const auto byte = static_cast<std::byte>(pool_.average ? pool_.pad_value : -128);
    if (integer_) {
      r.fill[0] = r.fill[1] = byte;
    } else if (!pool_.average) {
      r.fill[0] = static_cast<std::byte>(kMinusInfinity & 0xFF);
      r.fill[1] = static_cast<std::byte>(kMinusInfinity >> 8);
    }
  }

  void compute(const Context& context, const Source& source, const View& y, const Block& b) const {
    const Rectangle r = rectangle(b, source.left == 0 ? source.columns : 0);
    const Slab slab = cut(source, r, context.scratch.slab);
    const int64_t grain = std::max<int64_t>(1, kGrainValues / (b.ws * b.cs));
    parallel_for(b.hs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Part part{b.n, b.h + i, b.w, b.ws, b.c, b.cs};
        const std::byte* rows = slab.pixels + i * pool_.stride[0] * r.columns * slab.lanes * y.size;
        npu::PoolShape shape{r.columns,       b.cs, slab.lanes, 0, pool_.kernel[0], pool_.kernel[1], pool_.stride[0],
                             pool_.stride[1], 1,    b.ws};
        integer_ ? row<int8_t>(y, part, shape, rows) : row<uint16_t>(y, part, shape, rows);
      }
    });
  }

  template <typename T>
  void row(const View& y, const Part& part, npu::PoolShape shape, const std::byte* rows) const {
    store<T>(y, part, [&](T* to, int64_t stride) {
      shape.out_stride = stride;
      const T* from = reinterpret_cast<const T*>(rows);
      if constexpr (sizeof(T) == 1) {
        pool_.average ? npu::average_pool_s8(shape, from, to) : npu::max_pool_s8(shape, from, to);
      } else {
        pool_.average ? npu::average_pool_f16(shape, from, to) : npu::max_pool_f16(shape, from, to);
      }
    });
  }

  void run_tile(const Context& context, const View& x, const View& y, const model::Tile& t) const {
    View window = x;
    window.cube = {1, t.ocs, std::max(1, t.ihs), std::max(1, t.iws)};
    window.lanes = t.ocs;
    window.blocks = 1;
    window.pixel = t.ocs * x.size;
    window.row = window.cube.w * window.pixel;
    window.image = window.cube.h * window.row;
    window.base = reserve(context.scratch.window, window.image);
    for (int64_t h = 0; h < t.ihs; ++h) gather(x, {t.n, t.ih + h, t.iw, t.iws, t.oc, t.ocs}, window.at(0, h, 0), t.ocs);
    compute(context, {&window, 0, t.ih, t.iw, t.ihs, t.iws}, y, {t.n, t.oh, t.ohs, t.ow, t.ows, t.oc, t.ocs});
  }

  const model::Task& task_;
  const model::Pool& pool_;
  bool integer_;
};

}  // namespace

RunnerPtr make_pool(const model::Program& program, const model::Task& task) {
  return std::make_unique<PoolRunner>(program, task);
}

}  // namespace openrknn::sim
