// Small ONNX files, encoded by hand: protobuf fields in the order of onnx.proto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace openrknn::toolkit::onnx_bytes {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
inline std::string part(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}

// Element types of TensorProto.
constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kFloat16 = 10;
constexpr int kDouble = 11;
constexpr int kBFloat16 = 16;

struct Port {
  std::string name;
  int type = kFloat;
  std::vector<uint64_t> dims;
};

inline std::string port(const Port& p) {
  std::string shape;
  for (const uint64_t d : p.dims) shape += part(1, number(1, d));
  return part(1, p.name) + part(2, part(1, number(1, static_cast<uint64_t>(p.type)) + part(2, shape)));
}

// A model of one node.
inline std::string model(const std::string& op, const std::vector<Port>& inputs, const Port& output) {
  std::string node;
  for (const Port& p : inputs) node += part(1, p.name);
  node += part(2, output.name) + part(3, "node") + part(4, op);
  std::string graph = part(1, node) + part(2, "graph");
  for (const Port& p : inputs) graph += part(11, port(p));
  graph += part(12, port(output));
  return number(1, 8) + part(7, graph) + part(8, part(1, "") + number(2, 17));
}

}  // namespace openrknn::toolkit::onnx_bytes
