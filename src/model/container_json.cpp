#include "model/container_json.hpp"

#include "model/json_archive.hpp"

namespace openrknn::model {

template <>
struct EnumNames<Engine> {
  static constexpr std::array names{"npu", "cpu"};
};
template <>
struct EnumNames<Layout> {
  static constexpr std::array names{"plain", "nc1hwc2", "nhwc"};
};
template <>
struct EnumNames<ConvMode> {
  static constexpr std::array names{"direct", "depthwise"};
};
template <>
struct EnumNames<ActivationKind> {
  static constexpr std::array names{"linear", "clamp", "prelu", "table", "function"};
};
template <>
struct EnumNames<TableForm> {
  static constexpr std::array names{"value", "gate", "plus"};
};
template <>
struct EnumNames<TaskKind> {
  static constexpr std::array names{"conv",    "pool", "elementwise", "activation", "concat",
                                    "convert", "move", "matmul",      "modelled",   "cpu"};
};
template <>
struct EnumNames<Granularity> {
  static constexpr std::array names{"tensor", "channel", "group"};
};
template <>
struct EnumNames<ChannelMultiplier> {
  static constexpr std::array names{"int16", "q14"};
};

template <class A, Is<NumericsProfile> T>
void fields(A& a, T& p) {
  a("name", p.name);
  a("channel_multiplier", p.channel_multiplier);
  a("zero_point_before_rounding", p.zero_point_before_rounding);
  a("fused_residual", p.fused_residual);
  a("fp16_group", p.fp16_group);
  a("fp16_slice", p.fp16_slice);
}

template <class A, Is<QuantParams> T>
void fields(A& a, T& q) {
  a("dtype", q.dtype);
  a("granularity", q.granularity);
  a("axis", q.axis);
  a("group_size", q.group_size);
  a("scales", q.scales);
  a("zero_points", q.zero_points);
}

template <class A, Is<Cube> T>
void fields(A& a, T& c) {
  a("n", c.n);
  a("c", c.c);
  a("h", c.h);
  a("w", c.w);
}

template <class A, Is<Buffer> T>
void fields(A& a, T& b) {
  a("name", b.name);
  a("size", b.size);
  a("offset", b.offset);
  a("first_task", b.first_task);
  a("last_task", b.last_task);
}

template <class A, Is<TensorDesc> T>
void fields(A& a, T& t) {
  a("name", t.name);
  a("aliases", t.aliases);
  a("dtype", t.dtype);
  a("shape", t.shape);
  a("layout", t.layout);
  a("cube", t.cube);
  a("c2", t.c2);
  a("surface_stride", t.surface_stride);
  a("batch_stride", t.batch_stride);
  a("row_stride", t.row_stride);
  a("buffer", t.buffer);
  a("offset", t.offset);
  a("constant", t.constant);
  a("quant", t.quant);
}

template <class A, Is<Blob> T>
void fields(A& a, T& b) {
  a("offset", b.offset);
  a("size", b.size);
}

// Tiles are many: a list of numbers each, in this order.
constexpr int32_t Tile::*kTileMembers[] = {
    &Tile::n,        &Tile::oc,         &Tile::ocs,       &Tile::oh,         &Tile::ohs,         &Tile::ow,
    &Tile::ows,      &Tile::ih,         &Tile::ihs,       &Tile::iw,         &Tile::iws,         &Tile::pad_top,
    &Tile::pad_left, &Tile::pad_bottom, &Tile::pad_right, &Tile::data_banks, &Tile::weight_banks};

Json encode(const Tile& tile) {
  Json out = Json::array();
  for (const auto member : kTileMembers) out.push_back(tile.*member);
  return out;
}

void decode(const Json& json, Tile& tile, Trail& trail) {
  std::array<int32_t, std::size(kTileMembers)> values{};
  decode(json, values, trail);
  for (size_t i = 0; i < values.size(); ++i) tile.*kTileMembers[i] = values[i];
}

template <class A, Is<Convolution> T>
void fields(A& a, T& c) {
  a("mode", c.mode);
  a("transposed", c.transposed);
  a("kernel", c.kernel);
  a("stride", c.stride);
  a("pad", c.pad);
  a("dilation", c.dilation);
  a("pad_value", c.pad_value);
  a("in_channels", c.in_channels);
  a("out_channels", c.out_channels);
  a("weights", c.weights);
  a("weight_dtype", c.weight_dtype);
  a("kernel_group", c.kernel_group);
  a("channel_group", c.channel_group);
  a("weight_quant", c.weight_quant);
  a("params", c.params);
}

template <class A, Is<Requant> T>
void fields(A& a, T& r) {
  a("channel_multiplier_bypass", r.channel_multiplier_bypass);
  a("channel_shift", r.channel_shift);
  a("channel_shift_negative", r.channel_shift_negative);
  a("multiplier", r.multiplier);
  a("shift", r.shift);
  a("zero_point", r.zero_point);
}

template <class A, Is<Operand> T>
void fields(A& a, T& o) {
  a("offset", o.offset);
  a("multiplier", o.multiplier);
  a("shift", o.shift);
}

template <class A, Is<Activation> T>
void fields(A& a, T& x) {
  a("kind", x.kind);
  a("function", x.function);
  a("min", x.min);
  a("max", x.max);
  a("fmin", x.fmin);
  a("fmax", x.fmax);
  a("slopes", x.slopes);
  a("slope_count", x.slope_count);
  a("slope_shift", x.slope_shift);
  a("table", x.table);
  a("index_scale", x.index_scale);
  a("index_shift", x.index_shift);
  a("findex_scale", x.findex_scale);
  a("out_scale", x.out_scale);
  a("alpha", x.alpha);
  a("beta", x.beta);
  a("form", x.form);
}

template <class A, Is<Pool> T>
void fields(A& a, T& p) {
  a("average", p.average);
  a("kernel", p.kernel);
  a("stride", p.stride);
  a("pad", p.pad);
  a("pad_value", p.pad_value);
}

template <class A, Is<Task> T>
void fields(A& a, T& t) {
  a("name", t.name);
  a("kind", t.kind);
  a("op", t.op);
  a("engine", t.engine);
  a("source", t.source);
  a("reason", t.reason);
  a("inputs", t.inputs);
  a("outputs", t.outputs);
  a("attributes", t.attributes);
  a("conv", t.conv);
  a("pool", t.pool);
  a("requant", t.requant);
  a("operands", t.operands);
  a("activation", t.activation);
  a("in_place", t.in_place);
  a("tiles", t.tiles);
  a("macs", t.macs);
}

template <class A, Is<Port> T>
void fields(A& a, T& p) {
  a("name", p.name);
  a("tensor", p.tensor);
  a("source_dtype", p.source_dtype);
  a("source_shape", p.source_shape);
  a("mean", p.mean);
  a("std_dev", p.std_dev);
  a("channel_axis", p.channel_axis);
}

template <class A, Is<Program> T>
void fields(A& a, T& p) {
  a("target", p.target);
  a("profile", p.profile);
  a("dtype", p.dtype);
  a("tasks", p.tasks);
  a("tensors", p.tensors);
  a("buffers", p.buffers);
  a("inputs", p.inputs);
  a("outputs", p.outputs);
  a("blobs", p.blobs);
  a("arena_size", p.arena_size);
  a("arena_lower_bound", p.arena_lower_bound);
  a("cbuf_bytes", p.cbuf_bytes);
  a("cbuf_bank_bytes", p.cbuf_bank_bytes);
  a("custom_string", p.custom_string);
  a("provenance", p.provenance);
  a("graph_text", p.graph_text);
}

std::string describe(const Program& program) { return encode(program).dump(); }

Result<Program> parse_description(std::string_view text) {
  const auto fail = [](std::string where, std::string why) {
    return Error{ErrorCode::kFormat, "cannot read the program's description", std::move(where), std::move(why),
                 "build the file again"};
  };
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) return fail("", "it is not JSON");
  Program program;
  Trail trail;
  decode(json, program, trail);
  if (!trail.ok()) return fail(trail.where().empty() ? "" : trail.where().substr(1), trail.why());
  return program;
}

}  // namespace openrknn::model
