#include "analysis/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "analysis/slice.hpp"
#include "base/log.hpp"

namespace openrknn::analysis {
namespace {

using toolkit::Similarity;

// Mean and worst over the samples.
struct Statistics {
  double cos_sum = 0, euc_sum = 0;
  double cos_worst = std::numeric_limits<double>::infinity();
  double euc_worst = 0;
  int64_t count = 0;

  void add(const Similarity& s) {
    cos_sum += s.cos;
    euc_sum += s.euc;
    // A difference that is no number (infinite values) is the worst there is, and stays it.
    if (!std::isnan(cos_worst) && !(s.cos >= cos_worst)) cos_worst = s.cos;
    if (!std::isnan(euc_worst) && !(s.euc <= euc_worst)) euc_worst = s.euc;
    ++count;
  }
  Similarity mean() const {
    return count == 0 ? Similarity{}
                      : Similarity{cos_sum / static_cast<double>(count), euc_sum / static_cast<double>(count)};
  }
  Similarity worst() const { return count == 0 ? Similarity{} : Similarity{cos_worst, euc_worst}; }
};

// The real values of a tensor as the machine shows it.
std::vector<double> reals(const TensorView& data, const std::optional<QuantParams>& quant) {
  std::vector<double> values = to_doubles(data);
  if (!quant || !is_integer(data.dtype)) return values;
  for (double& v : values) v = (v - quant->zero_point()) * static_cast<double>(quant->scale());
  return values;
}

Similarity similarity(const std::vector<double>& a, const std::vector<double>& b) {
  double aa = 0;
  double bb = 0;
  double ab = 0;
  double dd = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    // Masks hold infinities: equal ones, and NaN on both sides, say nothing against the result.
    if (!std::isfinite(a[i]) && (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) continue;
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
    dd += (a[i] - b[i]) * (a[i] - b[i]);
  }
  Similarity s;
  s.euc = std::sqrt(dd);
  if (aa == 0 && bb == 0) return s;
  s.cos = aa == 0 || bb == 0 ? 0 : ab / (std::sqrt(aa) * std::sqrt(bb));
  return s;
}

// One result of a task that the golden run has as well.
struct Layer {
  int task = 0;
  int tensor = 0;
  Statistics entire, single;
  std::shared_ptr<const model::Program> program;  // the task alone
  std::optional<sim::Machine> machine;
};

class Comparison {
 public:
  Comparison(const Graph& graph, const model::Program& program, sim::Machine& machine)
      : graph_(graph),
        program_(program),
        machine_(machine),
        worst_difference_(program.outputs.size(), 0.0),
        outputs_(program.outputs.size()) {}

  Status prepare() {
    OPENRKNN_TRY(evaluator_, eval::Evaluator::make(graph_));
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      const model::TensorDesc& tensor = program_.tensors[t];
      const auto id = graph_.find_value(tensor.name);
      const bool same = id && graph_.value(*id).name == tensor.name && tensor.constant == model::kNone &&
                        (!graph_.value(*id).shape || *graph_.value(*id).shape == tensor.shape);
      if (same) wanted_.insert(tensor.name);
    }
    for (size_t t = 0; t < program_.tasks.size(); ++t) {
      for (const int id : program_.tasks[t].outputs) {
        if (id != model::kNone && wanted_.count(program_.tensor(id).name) != 0) add_layer(static_cast<int>(t), id);
      }
    }
    return {};
  }

  Status add_sample(const ComparedSample& sample) {
    OPENRKNN_TRY(const eval::Tensors golden_outputs, run_golden(sample.golden));
    std::map<int, Statistics*> by_tensor;
    for (Layer& layer : layers_) by_tensor[layer.tensor] = &layer.entire;
    sim::RunOptions options;
    options.observer = [&](int tensor, const Tensor& data) {
      const auto it = by_tensor.find(tensor);
      if (it == by_tensor.end()) return;
      const auto golden = golden_.find(program_.tensor(tensor).name);
      if (golden != golden_.end() && golden->second.elements() == data.elements()) {
        it->second->add(
            similarity(to_doubles(golden->second.view()), reals(data.view(), program_.tensor(tensor).quant)));
      }
    };
    OPENRKNN_TRY(const sim::Tensors outputs, machine_.run(sample.program, options));
    OPENRKNN_CHECK_OK(compare_outputs(golden_outputs, outputs));
    for (Layer& layer : layers_) OPENRKNN_CHECK_OK(run_single(layer));
    ++samples_;
    return {};
  }

  toolkit::CompareReport report() const {
    toolkit::CompareReport report;
    report.samples = samples_;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      report.outputs.push_back(
          {program_.outputs[i].name, outputs_[i].mean(), outputs_[i].worst(), worst_difference_[i]});
    }
    for (const Layer& layer : layers_) {
      const model::Task& task = program_.tasks[static_cast<size_t>(layer.task)];
      const model::TensorDesc& tensor = program_.tensor(layer.tensor);
      report.layers.push_back({tensor.name, task.op, task.source, std::string(dtype_name(tensor.dtype)),
                               layer.entire.mean(), layer.entire.worst(), layer.single.count > 0, layer.single.mean(),
                               layer.single.worst()});
    }
    return report;
  }

 private:
  void add_layer(int task, int tensor) {
    Layer layer;
    layer.task = task;
    layer.tensor = tensor;
    const auto known = [&](int id) { return wanted_.count(program_.tensor(id).name) != 0; };
    layer.program = std::make_shared<const model::Program>(slice(program_, task, known));
    layers_.push_back(std::move(layer));
  }

  Result<eval::Tensors> run_golden(const eval::Tensors& inputs) {
    golden_.clear();
    const auto keep = [&](ValueId id, const TensorView& data) {
      const std::string& name = graph_.value(id).name;
      if (wanted_.count(name) != 0) golden_.insert_or_assign(name, Tensor::copy_of(data));
    };
    return evaluator_->run(inputs, keep);
  }

  Status compare_outputs(const eval::Tensors& golden, const sim::Tensors& tested) {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const std::string& name = program_.outputs[i].name;
      const auto expected = golden.find(name);
      const auto found = tested.find(name);
      if (expected == golden.end() || found == tested.end() ||
          expected->second.elements() != found->second.elements()) {
        return Error{ErrorCode::kInvalidArgument, "the program was not made from this model", name,
                     "the model has no such output of this shape", "give the model that the program was built from"};
      }
      const auto a = to_doubles(expected->second.view());
      const auto b = to_doubles(found->second.view());
      outputs_[i].add(similarity(a, b));
      for (size_t k = 0; k < a.size(); ++k) {
        const double difference = std::fabs(a[k] - b[k]);
        worst_difference_[i] = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                                      : std::max(worst_difference_[i], difference);
      }
    }
    return {};
  }

  Status run_single(Layer& layer) {
    if (!layer.machine) {
      auto machine = sim::Machine::load(*layer.program);
      if (!machine.ok()) return machine.error().within(program_.tensor(layer.tensor).name + " alone: ");
      layer.machine = std::move(machine).value();
    }
    sim::Tensors inputs;
    for (const model::Port& port : layer.program->inputs) {
      const auto it = golden_.find(port.name);
      if (it == golden_.end()) return {};  // nothing golden to feed: entire only
      inputs.insert_or_assign(port.name, it->second);
    }
    OPENRKNN_TRY(const sim::Tensors results, layer.machine->run(inputs));
    const std::string& name = program_.tensor(layer.tensor).name;
    const auto golden = golden_.find(name);
    const auto found = results.find(name);
    if (golden == golden_.end() || found == results.end() || golden->second.elements() != found->second.elements())
      return {};
    layer.single.add(similarity(to_doubles(golden->second.view()), to_doubles(found->second.view())));
    return {};
  }

  const Graph& graph_;
  const model::Program& program_;
  sim::Machine& machine_;
  std::optional<eval::Evaluator> evaluator_;
  std::set<std::string> wanted_;  // names that both runs have
  eval::Tensors golden_;          // of the current sample
  std::vector<Layer> layers_;
  std::vector<double> worst_difference_;
  std::vector<Statistics> outputs_;
  int64_t samples_ = 0;
};

}  // namespace

toolkit::Similarity similarity(const TensorView& golden, const TensorView& tested) {
  return similarity(to_doubles(golden), to_doubles(tested));
}

Result<toolkit::CompareReport> compare(const Graph& graph, const model::Program& program, sim::Machine& machine,
                                       const ComparedSource& next) {
  Comparison comparison(graph, program, machine);
  OPENRKNN_CHECK_OK(comparison.prepare());
  while (true) {
    OPENRKNN_TRY(const std::optional<ComparedSample> sample, next());
    if (!sample) break;
    OPENRKNN_CHECK_OK(comparison.add_sample(*sample));
  }
  return comparison.report();
}

}  // namespace openrknn::analysis
