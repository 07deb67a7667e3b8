// Concat: operands copied behind each other, each brought to the result's scale.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/shape.hpp"
#include "kernels/npu/arithmetic.hpp"
#include "kernels/npu/elementwise.hpp"
#include "model/codec.hpp"
#include "sim/parts.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

constexpr int64_t kPartValues = 1 << 13;
using Table = std::array<int8_t, 256>;

// y = sat8(rne((x + offset) * multiplier, shift) + zero point), for every int8.
Table table_of(const model::Operand& o, int32_t zero_point) {
  Table table{};
  for (int x = -128; x < 128; ++x)
    table[static_cast<uint8_t>(x)] = npu::sat8(npu::operand_stage(x, o.offset, o.multiplier, o.shift) + zero_point);
  return table;
}

// The member of a Part that an axis of a shape moves; nothing for an axis that the cube folds into its images.
int64_t Part::*member_of(int axis, int rank) {
  if (rank > 4 && axis < rank - 3) return nullptr;
  if (rank >= 4) {
    const std::array<int64_t Part::*, 3> tail{&Part::c, &Part::h, &Part::w};
    return axis >= rank - 3 ? tail[static_cast<size_t>(axis - (rank - 3))] : &Part::n;
  }
  const std::array<int64_t Part::*, 3> members{&Part::n, &Part::c, &Part::w};
  return rank == 1 ? &Part::c : members[static_cast<size_t>(axis)];
}

void apply(const Table& table, int8_t* elements, int64_t n) { npu::look_up_s8(n, elements, table.data(), elements); }

class ConcatRunner final : public Runner {
 public:
  ConcatRunner(const model::Program& program, const model::Task& task) : task_(task), tables_(task.inputs.size()) {
    const model::TensorDesc& out = program.tensor(task.outputs[0]);
    const auto axis = static_cast<int>(task.attributes.int_or("axis", 1));
    axis_ = axis < 0 ? axis + out.shape.rank() : axis;
    for (size_t i = 0; i < task.operands.size(); ++i) {
      const model::Operand& o = task.operands[i];
      const bool copy = o.multiplier == int64_t{1} << o.shift && -o.offset == out.quant->zero_point();
      if (!copy) tables_[i] = table_of(o, out.quant->zero_point());
    }
  }

  Status run(const Context& context) override {
    const model::TensorDesc& out = context.program.tensor(task_.outputs[0]);
    const auto member = member_of(axis_, out.shape.rank());
    if (member == nullptr) return folded(context, out);
    int64_t at = 0;
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      const bool there = axis_ == 1 && model::lies_inside(context.program.tensor(task_.inputs[i]), out, at);
      if (!there) operand(context, i, member, at);
      at += context.program.tensor(task_.inputs[i]).shape[axis_];
    }
    return {};
  }

 private:
  void operand(const Context& context, size_t i, int64_t Part::*member, int64_t at) const {
    std::array<View, 2> views{context.view(task_.outputs[0]), context.view(task_.inputs[i])};
    if (!context.strict() && member == &Part::c) join_pixels(views, false);
    const View& y = views[0];
    const View& x = views[1];
    for_parts(x.cube, kPartValues, [&](const Part& part) {
      Part target = part;
      target.*member += at;
      const int64_t n = part.ws * part.cs;
      if (y.direct() && !tables_[i])
        return gather(x, part, y.at(target.n, target.h, target.w) + target.c * y.size, y.stride());
      std::vector<std::byte> elements(static_cast<size_t>(n * x.size));
      gather(x, part, elements.data(), part.cs);
      if (tables_[i]) apply(*tables_[i], reinterpret_cast<int8_t*>(elements.data()), n);
      scatter(y, target, elements.data(), part.cs);
    });
  }

  // An axis among several images: through row-major copies.
  Status folded(const Context& context, const model::TensorDesc& out) const {
    const View& y = context.view(task_.outputs[0]);
    const int64_t outer = out.shape.elements(0, axis_), inner = out.shape.elements(axis_ + 1, out.shape.rank());
    const int64_t row = out.shape[axis_] * inner * y.size;
    std::vector<std::byte> all(static_cast<size_t>(outer * row)), part;
    int64_t at = 0;
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      const View& x = context.view(task_.inputs[i]);
      const int64_t bytes = context.program.tensor(task_.inputs[i]).shape[axis_] * inner * y.size;
      part.resize(static_cast<size_t>(outer * bytes));
      to_plain(x, part.data());
      if (tables_[i]) apply(*tables_[i], reinterpret_cast<int8_t*>(part.data()), outer * bytes);
      for (int64_t o = 0; o < outer; ++o)
        std::memcpy(all.data() + o * row + at, part.data() + o * bytes, static_cast<size_t>(bytes));
      at += bytes;
    }
    from_plain(y, all.data());
    return {};
  }

  const model::Task& task_;
  int axis_ = 1;
  std::vector<std::optional<Table>> tables_;
};

}  // namespace

RunnerPtr make_concat(const model::Program& program, const model::Task& task) {
  return std::make_unique<ConcatRunner>(program, task);
}

}  // namespace openrknn::sim
