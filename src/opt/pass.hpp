// Passes: functions over the Graph that keep its float meaning. The manager runs them in order, verifies after each,
// dumps, stops, counts, and compares the golden outputs once per pass that changed anything.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluator.hpp"
#include "ir/graph.hpp"

namespace openrknn::opt {

// What the engine behind can do; rules that only pay on the NPU ask here. Filled from a Target by npu.
struct Capabilities {
  bool fuse_residual = true;  // Conv + Add in one task
  bool lower_to_conv = true;  // MatMul, Gemm, big pools, Resize as convolutions
  int64_t pool_kernel_max = 7;
  int64_t depthwise_kernel_max = 8;
  int64_t conv_kernel_max = 31;
  std::vector<int64_t> deconv_strides{1, 2, 4, 8};
};

// Decides whether one more rewrite may happen (bisection) and records it. A rewrite is known by its rule and by `what`:
// "conv1 (Conv) + bn1 (BatchNormalization) -> Conv"; tensor names are unique, so no two rewrites of a run share it.
class RewriteLog {
 public:
  // Ask before each rewrite; false: leave the graph alone.
  bool allow(std::string_view rule, std::string_view what);
  void applied(std::string_view rule, std::string what);
  struct Entry {
    std::string rule, what;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  int64_t limit = INT64_MAX;         // rewrites that may still happen in this log
  std::vector<std::string> skipped;  // "rule: what" of the rewrites that were rolled back earlier

 private:
  std::vector<Entry> entries_;
};

struct PassContext {
  Capabilities capabilities;
  int level = 3;
  RewriteLog* log = nullptr;
};

using PassFn = Result<int> (*)(Graph&, PassContext&);  // how many rewrites were applied

struct PassInfo {
  std::string_view name;  // accepted by --disable, --dump-after, --stop-after
  int level = 1;          // lowest optimisation level that runs it; 0: always (needed for correctness)
  PassFn run = nullptr;
  std::string_view doc;  // one line for docs/PASSES.md
  bool late = false;     // waits until the others have nothing left to do, since it hides operands from them
};

// In the order they run; late ones stand at the end.
const std::vector<PassInfo>& passes();

struct OptimizeOptions {
  int level = 3;
  Capabilities capabilities;
  std::vector<std::string> disabled;
  std::string stop_after;
  std::string dump_after;  // a pass name or "all"
  std::string dump_dir = ".";
  int64_t max_rewrites = INT64_MAX;
  eval::Tensors golden_inputs;  // first sample; empty: seeded
  bool check_golden = true;
};

struct OptimizeReport {
  struct Row {
    std::string pass;
    int rewrites = 0;
  };
  std::vector<Row> rows;
  int64_t rewrites = 0;
  std::vector<RewriteLog::Entry> log;  // every rewrite, in order
  std::vector<std::string>
      rolled_back;  // "fuse_batchnorm_into_conv: conv3 (Conv) + bn3 (..) -> Conv (largest difference 0.2)"
};

Result<OptimizeReport> optimize(Graph& graph, const OptimizeOptions& options);

}  // namespace openrknn::opt
