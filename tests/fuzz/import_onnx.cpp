// Any bytes as an ONNX file: refused with an error, or imported; then optimised and evaluated when that is little work.
// Nothing but an error may come of it, and no more memory than the budget.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/target.hpp"
#include "import/importer.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"

namespace {

using namespace openrknn;  // NOLINT

constexpr int64_t kBudget = int64_t{32} << 20;
constexpr int64_t kMostMacs = 1 << 20;
constexpr int64_t kMostElements = 1 << 18;

bool small(const Graph& graph) {
  int64_t macs = 0, elements = 0;
  for (const NodeId id : graph.nodes()) {
    macs += ops::macs(graph, id);
    for (const ValueId output : graph.node(id).outputs) {
      if (!output.valid()) continue;
      const auto& shape = graph.value(output).shape;
      if (shape) elements += shape->elements();
    }
    if (macs > kMostMacs || elements > kMostElements) return false;
  }
  return true;
}

void import_and_run(const std::string& path) {
  import::ImportOptions options;
  options.memory_budget = kBudget;
  auto imported = import::import_onnx(path, options);
  if (!imported.ok()) return;
  Graph& graph = imported->graph;
  if (const Status verified = ops::verify(graph); !verified.ok()) fuzz::fail(verified.error().message());
  if (!small(graph)) return;
  const auto evaluator = eval::Evaluator::make(graph);
  if (!evaluator.ok()) return;
  (void)evaluator->run(eval::seeded_inputs(graph, 1));
  opt::OptimizeOptions optimize;
  optimize.check_golden = false;
  (void)opt::optimize(graph, optimize);
  if (const Status verified = ops::verify(graph); !verified.ok()) fuzz::fail(verified.error().message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int file = memfd_create("model.onnx", 0);
  if (file < 0) return 0;
  if (write(file, data, size) == static_cast<ssize_t>(size)) import_and_run("/proc/self/fd/" + std::to_string(file));
  close(file);
  return 0;
}
