// Runs the passes in order until none changes anything, verifies after each, dumps, stops, and proves by the golden
// outputs that the meaning is kept. The outputs are compared when all passes have run; only when they differ are the
// graphs between the passes evaluated to find the guilty pass, and its rewrites bisected to find the guilty one.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "ir/text.hpp"
#include "ops/registry.hpp"
#include "opt/pass.hpp"

namespace openrknn::opt {

namespace {

// Errors beyond rounding; relative to the largest value of the output.
constexpr double kTolerance = 1e-4;
// Rewrites of later passes make room for earlier ones; real networks settle in a few rounds.
constexpr int kMaxRounds = 24;
constexpr int kMaxRollbacks = 32;

// Outputs by position: a rewrite never renames them, but positions cost nothing.
using Outputs = std::vector<Tensor>;

Result<Outputs> run_golden(const Graph& graph, const eval::Tensors& inputs) {
  OPENRKNN_TRY(const auto evaluator, eval::Evaluator::make(graph, eval::Runs::kOne));
  OPENRKNN_TRY(const auto named, evaluator.run(inputs));
  Outputs outputs;
  for (const ValueId id : graph.outputs()) {
    const auto found = named.find(graph.value(id).name);
    if (found == named.end()) {
      return Error{ErrorCode::kInternal, "the golden run lost an output", graph.value(id).name,
                   "it is not among the results", ""};
    }
    outputs.push_back(found->second);
  }
  return outputs;
}

// Largest error relative to the largest value; infinity where one is finite and the other is not, or shapes differ.
double largest_difference(const Outputs& wanted, const Outputs& got) {
  double worst = 0.0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(wanted[i].shape() == got[i].shape()) || wanted[i].dtype() != got[i].dtype()) return INFINITY;
    const auto a = to_doubles(wanted[i].view());
    const auto b = to_doubles(got[i].view());
    double largest = 0.0, error = 0.0;
    for (size_t k = 0; k < a.size(); ++k) {
      const bool both_finite = std::isfinite(a[k]) && std::isfinite(b[k]);
      if (!both_finite) {
        const bool same = (std::isnan(a[k]) && std::isnan(b[k])) || a[k] == b[k];
        if (!same) return INFINITY;
        continue;
      }
      largest = std::max(largest, std::abs(a[k]));
      error = std::max(error, std::abs(a[k] - b[k]));
    }
    if (error > 0.0) worst = std::max(worst, error / std::max(largest, 1e-30));
  }
  return worst;
}

struct Step {
  size_t pass;
  Graph before;       // shares its constants with the others
  int64_t first_log;  // entries of the report's log before this step
  int64_t count;
};

class Manager {
 public:
  Manager(Graph& graph, const OptimizeOptions& options) : graph_(graph), options_(options) {}

  Result<OptimizeReport> run() {
    OPENRKNN_CHECK_OK(check_names());
    OPENRKNN_CHECK_OK(ops::verify(graph_));
    for (const PassInfo& info : passes()) report_.rows.push_back({std::string(info.name), 0});
    OPENRKNN_CHECK_OK(run_passes());
    if (options_.check_golden && !steps_.empty()) OPENRKNN_CHECK_OK(keep_meaning());
    for (const RewriteLog::Entry& entry : report_.log) {
      log_debug("{}: {}", entry.rule, entry.what);
    }
    report_.rewrites = static_cast<int64_t>(report_.log.size());
    return report_;
  }

 private:
  Status check_names() const {
    std::vector<std::string> known;
    for (const PassInfo& info : passes()) known.emplace_back(info.name);
    const auto check = [&](const std::string& name, const char* option) -> Status {
      if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return {};
      const auto near = near_names(name, known);
      return Error{ErrorCode::kInvalidArgument, "unknown pass", option, fmt::format("there is no pass '{}'", name),
                   near.empty() ? "see docs/PASSES.md" : "did you mean " + join_names(near) + "? see docs/PASSES.md"};
    };
    for (const std::string& name : options_.disabled) OPENRKNN_CHECK_OK(check(name, "disabled rules"));
    OPENRKNN_CHECK_OK(check(options_.stop_after, "stop after"));
    return options_.dump_after == "all" ? Status{} : check(options_.dump_after, "dump after");
  }

  bool enabled(const PassInfo& info) const {
    if (info.level > options_.level) return false;
    return std::find(options_.disabled.begin(), options_.disabled.end(), info.name) == options_.disabled.end();
  }

  Status dump(const PassInfo& info) {
    if (options_.dump_after.empty() || (options_.dump_after != "all" && options_.dump_after != info.name)) return {};
    const std::string path = fmt::format("{}/{:03}_{}.txt", options_.dump_dir, dumps_++, info.name);
    std::ofstream file(path);
    file << print_graph(graph_);
    file.flush();
    if (file.good()) return {};
    return Error{ErrorCode::kIo, "cannot write the graph", path, "the file cannot be created or the disk is full",
                 "name a folder that exists"};
  }

  // One pass with everything around it. A pass that fails is undone and reported; the graph stays as it was.
  Status run_pass(size_t index) {
    const PassInfo& info = passes()[index];
    Graph before = graph_;
    RewriteLog log;
    log.limit = options_.max_rewrites - static_cast<int64_t>(report_.log.size());
    log.skipped = skipped_;
    PassContext context{options_.capabilities, options_.level, &log};
    const auto count = info.run(graph_, context);
    Status verified = count.ok() ? ops::verify(graph_) : Status{count.error()};
    if (!verified.ok()) {
      graph_ = std::move(before);
      failed_.emplace_back(info.name);
      report_.rolled_back.push_back(fmt::format("{}: {}", info.name, verified.error().message()));
      log_warning("pass {} was undone: {}", info.name, verified.error().message());
      return {};
    }
    if (!log.entries().empty()) {
      const auto rewrites = static_cast<int64_t>(log.entries().size());
      steps_.push_back({index, std::move(before), static_cast<int64_t>(report_.log.size()), rewrites});
      report_.log.insert(report_.log.end(), log.entries().begin(), log.entries().end());
      report_.rows[index].rewrites += static_cast<int>(rewrites);
      changed_ = true;
    }
    return dump(info);
  }

  bool runs(const PassInfo& info) const {
    return enabled(info) && std::find(failed_.begin(), failed_.end(), info.name) == failed_.end();
  }

  Status run_group(bool late) {
    for (size_t i = 0; i < passes().size() && !stopped_; ++i) {
      const PassInfo& info = passes()[i];
      if (info.late != late || !runs(info)) continue;
      OPENRKNN_CHECK_OK(run_pass(i));
      stopped_ = info.name == options_.stop_after;
      if (late && changed_) break;
    }
    return {};
  }

  // Rounds until nothing changes. Late passes wait until a round of the others has changed nothing, and give way to
  // them as soon as one of them has changed something.
  Status run_passes() {
    stopped_ = false;
    bool settled = false;
    for (int round = 0; round < kMaxRounds && !settled && !stopped_; ++round) {
      changed_ = true;
      for (int inner = 0; inner < kMaxRounds && changed_ && !stopped_; ++inner) {
        changed_ = false;
        OPENRKNN_CHECK_OK(run_group(false));
      }
      changed_ = false;
      OPENRKNN_CHECK_OK(run_group(true));
      settled = !changed_;
    }
    return {};
  }

  // Compares the outputs before and after; rolls back what changed them.
  Status keep_meaning() {
    const Graph original = steps_.front().before;
    const eval::Tensors inputs =
        options_.golden_inputs.empty() ? eval::seeded_inputs(original, 1) : options_.golden_inputs;
    OPENRKNN_TRY(const Outputs wanted, run_golden(original, inputs));
    for (int attempt = 0; attempt < kMaxRollbacks && !steps_.empty(); ++attempt) {
      const auto got = run_golden(graph_, inputs);
      if (got.ok() && largest_difference(wanted, *got) <= kTolerance) return {};
      OPENRKNN_CHECK_OK(roll_back(wanted, inputs));
    }
    if (steps_.empty()) return {};
    const auto got = run_golden(graph_, inputs);
    if (got.ok() && largest_difference(wanted, *got) <= kTolerance) return {};
    graph_ = original;
    report_.rolled_back.emplace_back("everything: too many rewrites change the outputs");
    return {};
  }

  double difference_of(const Graph& graph, const Outputs& wanted, const eval::Tensors& inputs) const {
    const auto got = run_golden(graph, inputs);
    return got.ok() ? largest_difference(wanted, *got) : INFINITY;
  }

  // The graph of a step with its first `limit` rewrites only.
  Graph partly(const Step& step, int64_t limit) const {
    Graph graph = step.before;
    RewriteLog log;
    log.limit = limit;
    log.skipped = skipped_;
    PassContext context{options_.capabilities, options_.level, &log};
    if (!passes()[step.pass].run(graph, context).ok()) return step.before;
    return graph;
  }

  // Finds the first step after which the outputs differ, bisects its rewrites, forbids the guilty one and redoes the
  // rest.
  Status roll_back(const Outputs& wanted, const eval::Tensors& inputs) {
    size_t guilty = steps_.size() - 1;
    for (size_t i = 1; i < steps_.size(); ++i) {
      if (difference_of(steps_[i].before, wanted, inputs) > kTolerance) {
        guilty = i - 1;
        break;
      }
    }
    const Step step = steps_[guilty];
    int64_t good = 0, bad = step.count;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (difference_of(partly(step, middle), wanted, inputs) > kTolerance ? bad : good) = middle;
    }
    const double difference = difference_of(partly(step, bad), wanted, inputs);
    const RewriteLog::Entry entry = report_.log[static_cast<size_t>(step.first_log + bad - 1)];
    skipped_.push_back(entry.rule + ": " + entry.what);
    report_.rolled_back.push_back(
        fmt::format("{}: {} (largest difference {:.3g})", entry.rule, entry.what, difference));
    log_warning("rewrite rolled back, it changes the outputs: {}", report_.rolled_back.back());

    graph_ = step.before;
    report_.log.resize(static_cast<size_t>(step.first_log));
    for (size_t i = guilty; i < steps_.size(); ++i) {
      report_.rows[steps_[i].pass].rewrites -= static_cast<int>(steps_[i].count);
    }
    steps_.resize(guilty);
    return run_passes();
  }

  Graph& graph_;
  const OptimizeOptions& options_;
  OptimizeReport report_;
  std::vector<Step> steps_;  // passes that changed something
  std::vector<std::string> skipped_, failed_;
  bool changed_ = false, stopped_ = false;
  int dumps_ = 0;
};

}  // namespace

Result<OptimizeReport> optimize(Graph& graph, const OptimizeOptions& options) { return Manager(graph, options).run(); }

}  // namespace openrknn::opt
