// The state of one compilation: the Program as it grows, which tensor holds which value in which format, and what
// shares memory with what. Each family of operators is lowered in a file of its own.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "kernels/activation.hpp"
#include "model/program.hpp"
#include "npu/compile.hpp"
#include "quant/placement.hpp"
#include "target/target.hpp"

namespace openrknn::npu {

using quant::Format;

// A tensor that lies inside another one's memory: `planes` channel planes (kNC1HWC2) after its start, with its strides.
struct Inside {
  int parent = model::kNone;
  int64_t planes = 0;
};

class Lowering {
 public:
  Lowering(const Graph& graph, const quant::Placement& placement, const target::Target& target,
           const CompileOptions& options);

  Result<model::Program> run();

  // --- what the families use
  const Graph& graph() const { return graph_; }
  const target::Target& target() const { return target_; }
  const NumericsProfile& profile() const { return program_.profile; }
  const CompileOptions& options() const { return options_; }
  const quant::NodePlacement& placement(NodeId id) const { return placement_.at(id); }
  const target::Lanes& lanes(DType dtype) const;

  // The tensor that holds `value` in `format`: made by its producer, converted (once) from another format, or a
  // constant. `rank`: constants of lower rank get leading dims of 1, so that their cube lines up with the other
  // operand's.
  Result<int> operand(ValueId value, Format format, int rank = 0);
  // A new tensor for a result of the node being lowered.
  Result<int> result(ValueId value, Format format);
  // Another view of a part of a tensor's channels.
  int channel_view(int tensor, int64_t first_channel, int64_t channels, const std::string& name);
  // A plain constant (row-major, as it is) for CPU tasks and parameters of movement tasks.
  int plain_constant(const std::string& name, const Tensor& data);
  int add_blob(std::span<const std::byte> bytes);
  template <typename T>
  int add_blob(const std::vector<T>& values) {
    return add_blob(std::as_bytes(std::span<const T>(values)));
  }

  model::Task task_for(NodeId id, model::TaskKind kind, std::string op) const;
  void emit(model::Task task) { program_.tasks.push_back(std::move(task)); }
  model::TensorDesc& tensor(int id) { return program_.tensors[static_cast<size_t>(id)]; }
  const model::TensorDesc& tensor(int id) const { return program_.tensors[static_cast<size_t>(id)]; }
  bool is_view(int id) const { return inside_[static_cast<size_t>(id)].parent != model::kNone; }
  // Makes `child` a part of `parent`. False when it cannot be (other element size, plane size or lanes; already inside
  // something).
  bool place_inside(int child, int parent, int64_t planes);
  // Nothing but this one consumer reads the value.
  bool only_reader(ValueId value) const { return graph_.only_use(value).has_value(); }
  // The error of a node that cannot be lowered.
  Error fail(NodeId id, std::string why) const;

 private:
  friend class BufferPlanner;

  Status lower_node(NodeId id);
  Status add_inputs();
  Status add_outputs();
  int convert(int from, ValueId value, Format format);
  int new_tensor(model::TensorDesc desc);
  model::TensorDesc describe(ValueId value, Format format) const;
  Result<int> constant_operand(ValueId value, Format format, int rank);
  bool packed_input(ValueId value, Format format) const;

  const Graph& graph_;
  const quant::Placement& placement_;
  const target::Target& target_;
  const CompileOptions& options_;
  model::Program program_;
  std::vector<std::byte> weights_;
  std::vector<Inside> inside_;
  std::map<std::pair<ValueId, Format>, int> stored_;
  std::map<ValueId, Format> made_in_;  // format in which a value came to be
};

// Families. Each lowers one node completely; the placement has been decided.
Status lower_conv(Lowering& l, NodeId id);
Status lower_pool(Lowering& l, NodeId id);
Status lower_elementwise(Lowering& l, NodeId id);
Status lower_activation(Lowering& l, NodeId id);
Status lower_concat(Lowering& l, NodeId id);
Status lower_movement(Lowering& l, NodeId id);
Status lower_matmul(Lowering& l, NodeId id);
Status lower_modelled(Lowering& l, NodeId id);
Status lower_cpu(Lowering& l, NodeId id);

// An activation that a node carries or is, with PRelu's slopes (one, or one a channel; empty otherwise).
struct ActivationRequest {
  ActivationSpec spec;
  std::string function;  // the operator's name
  std::vector<float> slopes;
};
Result<ActivationRequest> carried_activation(const Graph& graph, const Node& node);
Result<ActivationRequest> own_activation(const Graph& graph, const Node& node);
// Channels [first, first + count) of a request.
ActivationRequest channel_part(const ActivationRequest& request, int64_t first, int64_t count);
// Integer: v in steps of v_scale; returns the real value of one step of what reaches the output stage.
Result<double> integer_activation(Lowering& l, const ActivationRequest& request, double v_scale, const QuantParams& out,
                                  model::Activation& activation);
void half_activation(Lowering& l, const ActivationRequest& request, model::Activation& activation);
// Multiplier, shift and zero point from the scale before to the result's parameters.
void output_constants(double scale_before, const QuantParams& out, model::Requant& requant);

}  // namespace openrknn::npu
