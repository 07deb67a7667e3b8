// Runs backend tests in ONNX's layout through the importer and the golden run.
//
//   openrknn_onnx_nodes LIST     LIST names one test folder per line: model.onnx, test_data_set_*/{input,output}_N.pb
//
// Prints one line of JSON per folder: name, result ("pass", "wrong", "refused" or "crash"), operators, detail. Every
// test runs in a process of its own, so that one that crashes or hangs is a line like the others.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "import/importer.hpp"
#include "import/onnx_load.hpp"
#include "import/onnx_tensor.hpp"

namespace openrknn {
namespace {

namespace fs = std::filesystem;

// What ONNX's own runner allows a result to differ by.
constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;
constexpr unsigned kSeconds = 60;
constexpr int64_t kBudget = int64_t{1} << 30;

struct Verdict {
  std::string result;
  std::string detail;
};

Verdict refused(const Error& error) { return {"refused", error.message()}; }
Verdict wrong(std::string why) { return {"wrong", std::move(why)}; }

struct DataSet {
  std::vector<Tensor> inputs;  // undefined: not given
  std::vector<Tensor> outputs;
};

// A tensor as its type says. The importer's reader would widen the small and the double floats.
Result<Tensor> read_tensor(const fs::path& path) {
  onnx::TensorProto proto;
  std::ifstream file(path, std::ios::binary);
  if (!proto.ParseFromIstream(&file))
    return Error{ErrorCode::kUnsupported, "cannot read test data", path.filename().string(), "it is no tensor", ""};
  import::TensorReader reader(path.string(), kBudget);
  OPENRKNN_TRY(Tensor tensor, reader.read(proto, path.filename().string()));
  return cast(tensor.view(), import::dtype_from_onnx(proto.data_type()).value_or(DType::kFloat32));
}

Result<std::vector<Tensor>> read_tensors(const fs::path& folder, const std::string& stem, int count) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    tensors.emplace_back();
    if (!fs::exists(path)) continue;
    OPENRKNN_TRY(tensors.back(), read_tensor(path));
  }
  return tensors;
}

bool near(double got, double expected) {
  if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(got) : got == expected;
  return std::abs(got - expected) <= kAbsolute + kRelative * std::abs(expected);
}

std::optional<std::string> difference(const Tensor& got, const Tensor& expected) {
  const auto type = [](const Tensor& t) { return fmt::format("{} {}", dtype_name(t.dtype()), t.shape().to_string()); };
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape()))
    return fmt::format("{}, expected {}", type(got), type(expected));
  if (!is_float(expected.dtype())) {
    const auto a = to_ints(got.view());
    const auto b = to_ints(expected.view());
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return fmt::format("element {} is {}, expected {}", i, a[i], b[i]);
    }
    return std::nullopt;
  }
  const auto a = to_doubles(got.view());
  const auto b = to_doubles(expected.view());
  for (size_t i = 0; i < a.size(); ++i) {
    if (!near(a[i], b[i])) return fmt::format("element {} is {:.9g}, expected {:.9g}", i, a[i], b[i]);
  }
  return std::nullopt;
}

std::vector<std::string> free_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> constants;
  for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : graph.input()) {
    if (!constants.contains(input.name())) names.push_back(input.name());
  }
  return names;
}

// Inputs that decide which branch is taken and how often a loop runs: an import takes them as constants only.
std::set<std::string> deciding_inputs(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& node : graph.node()) {
    const int count = node.op_type() == "Loop" ? 2 : node.op_type() == "If" ? 1 : 0;
    for (int i = 0; i < std::min(count, node.input_size()); ++i) names.insert(node.input(i));
  }
  return names;
}

// float16, bfloat16 and float64 are computed in float32: a result counts as what the file declares.
Tensor as_declared(const Tensor& tensor, DType declared) {
  return tensor.dtype() == DType::kFloat32 && import::computed_dtype(declared) == DType::kFloat32
             ? cast(tensor.view(), declared)
             : tensor;
}

Verdict run_set(const std::string& model, const onnx::GraphProto& graph, const DataSet& set) {
  import::ImportOptions options;
  options.memory_budget = kBudget;
  options.allow_empty = true;
  eval::Tensors feed;
  const auto names = free_inputs(graph);
  const auto deciding = deciding_inputs(graph);
  for (size_t i = 0; i < names.size() && i < set.inputs.size(); ++i) {
    if (!set.inputs[i].defined()) continue;
    if (deciding.contains(names[i])) {
      options.input_values.emplace(names[i], set.inputs[i]);
      continue;
    }
    options.inputs.emplace_back(names[i], set.inputs[i].shape().to_vector());
    feed[names[i]] = cast(set.inputs[i].view(), import::computed_dtype(set.inputs[i].dtype()));
  }
  auto imported = import::import_onnx(model, options);
  if (!imported.ok()) return refused(imported.error());
  const auto evaluator = eval::Evaluator::make(imported->graph);
  if (!evaluator.ok()) return refused(evaluator.error());
  const auto results = evaluator->run(feed);
  if (!results.ok()) return refused(results.error());
  for (int i = 0; i < graph.output_size(); ++i) {
    const auto& output = graph.output(i);
    const Tensor& expected = set.outputs[static_cast<size_t>(i)];
    const auto got = results->find(output.name());
    if (!expected.defined()) continue;
    if (got == results->end()) return wrong(fmt::format("output '{}' is not there", output.name()));
    const auto declared = import::dtype_from_onnx(output.type().tensor_type().elem_type());
    const auto why = difference(as_declared(got->second, declared.value_or(expected.dtype())), expected);
    if (why) return wrong(fmt::format("output '{}': {}", output.name(), *why));
  }
  return {"pass", ""};
}

Verdict run_test(const fs::path& folder) {
  const std::string path = (folder / "model.onnx").string();
  const auto model = import::load_onnx(path);
  if (!model.ok()) return refused(model.error());
  const onnx::GraphProto& graph = model->graph();
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  for (const fs::path& data : sets) {
    auto inputs = read_tensors(data, "input", graph.input_size());
    if (!inputs.ok()) return refused(inputs.error());
    auto outputs = read_tensors(data, "output", graph.output_size());
    if (!outputs.ok()) return refused(outputs.error());
    const Verdict verdict = run_set(path, graph, {std::move(*inputs), std::move(*outputs)});
    if (verdict.result != "pass") return verdict;
  }
  return {"pass", ""};
}

void add_operators(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, std::set<std::string>& names) {
  for (const auto& node : nodes) {
    names.insert(node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type());
    for (const auto& attribute : node.attribute()) add_operators(attribute.g().node(), names);
  }
}

std::set<std::string> operators_of(const fs::path& folder) {
  std::set<std::string> names;
  const auto model = import::load_onnx((folder / "model.onnx").string());
  if (model.ok()) add_operators(model->graph().node(), names);
  return names;
}

std::string read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(pipe, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

// The test in a child process: its verdict comes through a pipe, its death is a verdict.
Verdict run_apart(const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) return {"crash", "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {"crash", "no process"};
  if (child == 0) {
    close(ends[0]);
    alarm(kSeconds);
    const Verdict verdict = run_test(folder);
    const std::string text = verdict.result + "\n" + verdict.detail;
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {"crash",
            signal == SIGALRM ? fmt::format("not done after {} s", kSeconds) : fmt::format("signal {}", signal)};
  }
  const size_t end = text.find('\n');
  if (status != 0 || end == std::string::npos) return {"crash", "no verdict"};
  return {text.substr(0, end), text.substr(end + 1)};
}

int run(const char* list) {
  std::ifstream file(list);
  if (!file) {
    fmt::print(stderr, "cannot read '{}'\n", list);
    return 2;
  }
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const fs::path folder(line);
    const Verdict verdict = run_apart(folder);
    nlohmann::ordered_json json;
    json["name"] = folder.filename().string();
    json["result"] = verdict.result;
    json["operators"] = operators_of(folder);
    json["detail"] = verdict.detail;
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (std::fflush(stdout) != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace openrknn

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: openrknn_onnx_nodes LIST\n");
    return 2;
  }
  return openrknn::run(argv[1]);
}
