#include "analysis/inspect.hpp"

#include <algorithm>
#include <set>

#include "ops/registry.hpp"

namespace openrknn::analysis {
namespace {

std::string_view format_name(import::Format format) {
  switch (format) {
    case import::Format::kOnnx:
      return "onnx";
    case import::Format::kTflite:
      return "tflite";
    case import::Format::kTensorflow:
      return "tensorflow";
    case import::Format::kCaffe:
      return "caffe";
    case import::Format::kDarknet:
      return "darknet";
    case import::Format::kTorchscript:
      return "pytorch";
    case import::Format::kUnknown:
      break;
  }
  return "unknown";
}

int64_t tensor_bytes(const model::TensorDesc& t) {
  return t.shape.elements() * static_cast<int64_t>(dtype_size(t.dtype));
}

int64_t blob_bytes(const model::Program& program, int id) {
  return id == model::kNone ? 0 : program.blobs[static_cast<size_t>(id)].size;
}

// Bytes of the arena that at least one of the buffers covers.
int64_t covered(std::vector<std::pair<int64_t, int64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t total = 0;
  int64_t end = 0;
  for (const auto& [from, to] : ranges) {
    total += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return total;
}

// The largest sum of live bytes over the tasks: no plan for this order can need less.
int64_t largest_live(const std::vector<const model::Buffer*>& buffers, int tasks) {
  int64_t largest = 0;
  for (int t = 0; t < tasks; ++t) {
    int64_t live = 0;
    for (const model::Buffer* b : buffers) live += b->first_task <= t && t <= b->last_task ? b->size : 0;
    largest = std::max(largest, live);
  }
  return largest;
}

void add_memory(const model::Program& program, toolkit::ProgramReport& report) {
  std::set<int> io;
  for (const auto* ports : {&program.inputs, &program.outputs}) {
    for (const model::Port& port : *ports) {
      const int buffer = program.tensor(port.tensor).buffer;
      if (buffer != model::kNone) io.insert(buffer);
    }
  }
  std::vector<std::pair<int64_t, int64_t>> inner;
  std::vector<const model::Buffer*> inner_buffers;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const model::Buffer& b = program.buffers[i];
    if (io.count(static_cast<int>(i)) != 0) {
      report.io += b.size;
    } else {
      inner.emplace_back(b.offset, b.offset + b.size);
      inner_buffers.push_back(&b);
    }
  }
  report.internal = covered(std::move(inner));
  report.lower_bound = largest_live(inner_buffers, static_cast<int>(program.tasks.size()));
  report.plan_is_smallest = program.arena_lower_bound == program.arena_size;
  report.weights = program.weights ? static_cast<int64_t>(program.weights->bytes().size()) : 0;
}

}  // namespace

toolkit::ModelReport inspect_graph(const import::Imported& imported) {
  toolkit::ModelReport report;
  report.format = format_name(imported.format);
  report.opset = imported.opset;
  const Graph& graph = imported.graph;
  for (const NodeId id : graph.nodes()) {
    ++report.nodes[graph.node(id).op];
    report.macs += ops::macs(graph, id);
  }
  for (const ValueId id : graph.values()) {
    const Tensor* constant = graph.constant(id);
    if (constant != nullptr && !graph.value(id).users.empty() && is_float(constant->dtype()))
      report.parameters += constant->elements();
  }
  return report;
}

toolkit::ModelReport inspect_signature(const import::Signature& signature) {
  toolkit::ModelReport report;
  report.format = format_name(signature.format);
  report.opset = signature.opset;
  report.nodes = signature.nodes;
  report.parameters = signature.parameters;
  report.macs = -1;
  return report;
}

int64_t task_bytes(const model::Program& program, const model::Task& task) {
  std::set<int> tensors(task.inputs.begin(), task.inputs.end());
  tensors.insert(task.outputs.begin(), task.outputs.end());
  int64_t bytes = 0;
  for (const int id : tensors) {
    if (id != model::kNone) bytes += tensor_bytes(program.tensor(id));
  }
  if (task.conv) bytes += blob_bytes(program, task.conv->weights) + blob_bytes(program, task.conv->params);
  return bytes + blob_bytes(program, task.activation.table) + blob_bytes(program, task.activation.slopes);
}

toolkit::ProgramReport inspect_program(const model::Program& program) {
  toolkit::ProgramReport report;
  report.format = "rknn";
  report.target = program.target;
  report.dtype = program.dtype;
  report.provenance = program.provenance;
  for (const model::Task& task : program.tasks) {
    toolkit::TaskReport row;
    row.name = task.name;
    row.op = task.op;
    row.engine = task.engine == model::Engine::kNpu ? "npu" : "cpu";
    row.source = task.source;
    const auto name = [&](int id) { return id == model::kNone ? std::string() : program.tensor(id).name; };
    std::transform(task.inputs.begin(), task.inputs.end(), std::back_inserter(row.inputs), name);
    std::transform(task.outputs.begin(), task.outputs.end(), std::back_inserter(row.outputs), name);
    row.tiles = static_cast<int64_t>(task.tiles.size());
    row.macs = task.macs;
    row.bytes = task_bytes(program, task);
    row.reason = task.reason;
    report.tasks.push_back(std::move(row));
  }
  add_memory(program, report);
  return report;
}

}  // namespace openrknn::analysis
