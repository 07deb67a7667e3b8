// Any description (and weights) as a program. Checksums would stop every changed byte at the door, so an input is the
// description's size (4 bytes), the description as JSON text, and the weights; the size's highest bit says that the
// rest is the container itself. What is valid runs when that is little work, strictly and fast, with one result.
#include <cstring>

#include "fuzz/target.hpp"
#include "model/container.hpp"
#include "model/container_json.hpp"
#include "sim/machine.hpp"

namespace {

using namespace openrknn;  // NOLINT

constexpr int64_t kMostMacs = 1 << 20;
constexpr int64_t kMostBytes = 4 << 20;

bool small(const model::Program& program) {
  int64_t macs = 0, bytes = program.arena_size;
  for (const auto& task : program.tasks) macs += std::max<int64_t>(task.macs, 0);
  for (const auto& tensor : program.tensors) bytes += tensor.shape.elements() * 8;
  return macs <= kMostMacs && bytes <= kMostBytes;
}

void run(const model::Program& program) {
  if (!small(program)) return;
  auto machine = sim::Machine::load(program);
  if (!machine.ok()) return;
  sim::Tensors inputs;
  for (const model::Port& port : program.inputs) {
    if (port.source_shape.elements() > kMostBytes) return;
    inputs.insert_or_assign(port.name, Tensor(port.source_dtype, port.source_shape));
  }
  const auto fast = machine->run(inputs);
  sim::RunOptions options;
  options.strict = true;
  const auto strict = machine->run(inputs, options);
  if (!fast.ok() || !strict.ok()) return;
  for (const auto& [name, tensor] : *fast) {
    const Tensor& other = strict->at(name);
    if (tensor.bytes() != other.bytes() || std::memcmp(tensor.data(), other.data(), tensor.bytes()) != 0) {
      fuzz::fail(name + " differs in strict mode");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t length = 0;
  if (size < sizeof(length)) return 0;
  std::memcpy(&length, data, sizeof(length));
  const auto rest = fuzz::bytes(data, size).subspan(sizeof(length));
  if ((length >> 31) != 0) {
    const auto program = model::parse_program(rest, "input.rknn");
    if (program.ok()) run(*program);
    return 0;
  }
  length = static_cast<uint32_t>(std::min<size_t>(length, rest.size()));
  auto program = model::parse_description({reinterpret_cast<const char*>(rest.data()), length});
  if (!program.ok()) return 0;
  const auto weights = rest.subspan(length);
  program->weights = std::make_shared<const model::WeightStore>(std::vector<std::byte>(weights.begin(), weights.end()));
  if (model::validate(*program).ok()) run(*program);
  return 0;
}
