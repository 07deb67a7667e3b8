// Where each node runs and in which number format, decided before any range is known. Every CPU node cites a limit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "target/target.hpp"

namespace openrknn::quant {

enum class Engine : uint8_t { kNpu, kCpu };

enum class Format : uint8_t {
  kInt8,  // w8a8
  kFloat16,
  kFloat32,  // CPU tasks, plain layout
  kRaw,      // integers and booleans as they are (CPU)
};

struct NodePlacement {
  Engine engine = Engine::kNpu;
  Format format = Format::kInt8;
  std::string limit;     // name of the limit that sent it to the CPU ("conv.kernel.max"), empty on the NPU
  std::string reason;    // the sentence for people, with values and source
  std::string obstacle;  // why no Program can hold the node, with what to do; empty when one can
  std::string warning;   // on the CPU, but the vendor's runtime of the target has no such operator there; else empty
};

struct Placement {
  std::map<NodeId, NodePlacement> nodes;
  std::map<ValueId, Format> inputs;  // graph inputs whose format was asked for; the others follow their readers
  const NodePlacement& at(NodeId id) const { return nodes.at(id); }
};

struct PlacementOptions {
  std::string dtype = "w8a8";                      // "w8a8" or "fp16"
  std::map<std::string, std::string> layer_dtype;  // tensor name or alias -> "fp16", "w8a8": of its producer, or
                                                   // of the graph input itself
};

// Fails for a dtype that the target lacks, and for layer names that no node or input has (near names are listed).
Result<Placement> place(const Graph& graph, const target::Target& target, const PlacementOptions& options);
std::string_view format_name(Format format);
// All obstacles of a placement in one error; ok when there are none.
Status check_buildable(const Graph& graph, const Placement& placement, const target::Target& target);

}  // namespace openrknn::quant
