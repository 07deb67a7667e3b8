#include <fmt/core.h>

#include <cstring>
#include <new>

#include "model/codec.hpp"
#include "sim/runner.hpp"

namespace openrknn::sim {
namespace {

constexpr std::align_val_t kAlignment{64};
// Kernels may load whole vectors behind the last element.
constexpr int64_t kSlack = 1024;
constexpr int kPoison = 0xA5;

bool reads_row_major(const model::Task& task) {
  switch (task.kind) {
    case model::TaskKind::kMove:
    case model::TaskKind::kMatMul:
    case model::TaskKind::kModelled:
    case model::TaskKind::kCpu:
      return !task.in_place;
    default:
      return false;
  }
}

}  // namespace

// Tensors that have a buffer of their own and that only runners of row-major elements touch. As cubes they would be
// transposed twice: a channel shuffle is nothing but such tasks, and cubes of few channels are mostly padding.
std::vector<bool> Memory::row_major_tensors(const model::Program& program) {
  std::vector<int> sharers(program.buffers.size());
  for (const model::TensorDesc& t : program.tensors) {
    if (t.constant == model::kNone) ++sharers[static_cast<size_t>(t.buffer)];
  }
  std::vector<bool> row_major(program.tensors.size());
  for (size_t i = 0; i < row_major.size(); ++i) {
    const model::TensorDesc& t = program.tensors[i];
    row_major[i] = t.constant == model::kNone && sharers[static_cast<size_t>(t.buffer)] == 1;
  }
  for (const model::Task& task : program.tasks) {
    if (reads_row_major(task)) continue;
    for (const std::vector<int>* ids : {&task.inputs, &task.outputs}) {
      for (const int id : *ids) {
        if (id != model::kNone) row_major[static_cast<size_t>(id)] = false;
      }
    }
  }
  return row_major;
}

Result<std::byte*> Scratch::reserve_tensors(int64_t bytes) {
  if (!tensors.defined() || tensors.shape()[0] < bytes) {
    tensors = Tensor();
    OPENRKNN_TRY(tensors, Tensor::uninitialized(DType::kUInt8, Shape{bytes}));
  }
  return static_cast<std::byte*>(tensors.mutable_data());
}

void Memory::Release::operator()(std::byte* p) const { ::operator delete[](p, kAlignment); }

Result<Memory::Bytes> Memory::allocate(int64_t size) {
  auto* p = static_cast<std::byte*>(::operator new[](static_cast<size_t>(size + kSlack), kAlignment, std::nothrow));
  if (p == nullptr)
    return Error{ErrorCode::kResource, "not enough memory to run the program", "",
                 fmt::format("{} bytes are needed", size), "close other programs or use a smaller model"};
  std::memset(p, 0, static_cast<size_t>(size + kSlack));
  return Bytes(p);
}

Status Memory::place(const model::Program& program, size_t i) {
  const model::TensorDesc& t = program.tensors[i];
  if (t.constant == model::kNone) {
    const model::Buffer& buffer = program.buffers[static_cast<size_t>(t.buffer)];
    OPENRKNN_TRY(views_[i], view_of(t, mode_, arena_.get() + buffer.offset, buffer.size));
    return {};
  }
  // Constants are read only; views have no const form.
  const auto blob = program.blob(t.constant);
  auto* elements = const_cast<std::byte*>(blob.data());
  OPENRKNN_TRY(View stored, view_of(t, Mode::kStrict, elements, static_cast<int64_t>(blob.size())));
  views_[i] = stored;
  if (mode_ == Mode::kStrict || stored.single() || t.layout == model::Layout::kPlain) return {};
  OPENRKNN_TRY(Bytes dense, allocate(t.shape.elements() * stored.size));
  views_[i] = dense_view(t, dense.get());
  const View& v = views_[i];
  for (int64_t n = 0; n < v.cube.n; ++n) {
    for (int64_t h = 0; h < v.cube.h; ++h) gather(stored, {n, h, 0, v.cube.w, 0, v.cube.c}, v.at(n, h, 0), v.stride());
  }
  constants_.push_back(std::move(dense));
  return {};
}

Result<Memory> Memory::make(const model::Program& program, Mode mode) {
  Memory m;
  m.mode_ = mode;
  m.arena_size_ = program.arena_size;
  OPENRKNN_TRY(m.arena_, allocate(program.arena_size));
  m.views_.resize(program.tensors.size());
  for (size_t i = 0; i < program.tensors.size(); ++i) OPENRKNN_CHECK_OK(m.place(program, i));
  if (mode == Mode::kStrict) return m;
  const std::vector<bool> row_major = row_major_tensors(program);
  for (size_t i = 0; i < row_major.size(); ++i) {
    const model::TensorDesc& t = program.tensors[i];
    if (!row_major[i] || t.layout == model::Layout::kPlain) continue;
    const model::Buffer& buffer = program.buffers[static_cast<size_t>(t.buffer)];
    m.views_[i] = row_major_view(t, m.arena_.get() + buffer.offset);  // never larger than the cube that fits
  }
  return m;
}

void Memory::poison() { std::memset(arena_.get(), kPoison, static_cast<size_t>(arena_size_)); }

void Memory::poison(const model::Buffer& buffer) {
  std::memset(arena_.get() + buffer.offset, kPoison, static_cast<size_t>(buffer.size));
}

}  // namespace openrknn::sim
