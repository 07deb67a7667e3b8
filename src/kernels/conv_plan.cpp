#include "kernels/conv_plan.hpp"

#include <fmt/core.h>

#include <string>

namespace openrknn {
namespace {

Error misfit(std::string where, std::string why) {
  return {ErrorCode::kShape, "the convolution's operands do not fit", std::move(where), std::move(why),
          "repair the model"};
}

Result<ConvPlan> start_plan(const Attributes& attributes, const Shape& x, const Shape& w) {
  if (x.rank() < 3 || x.rank() > 5) return misfit("operand 0", fmt::format("rank {} is not 3, 4 or 5", x.rank()));
  if (w.rank() != x.rank()) {
    return misfit("operand 1", fmt::format("weights {} for an input {}", w.to_string(), x.to_string()));
  }
  ConvPlan plan;
  plan.batch = x[0];
  plan.in_channels = x[1];
  plan.groups = attributes.int_or("group", 1);
  if (plan.groups < 1 || plan.in_channels < 1 || plan.in_channels % plan.groups != 0) {
    return misfit("attribute 'group'", fmt::format("{} groups of {} input channels", plan.groups, plan.in_channels));
  }
  const std::vector<int64_t> stated = attributes.ints_or("kernel_shape", {});
  const auto kernel = w.dims().subspan(2);
  if (!stated.empty() && stated != std::vector<int64_t>(kernel.begin(), kernel.end())) {
    return misfit("attribute 'kernel_shape'", fmt::format("weights have shape {}", w.to_string()));
  }
  return plan;
}

Result<ConvPlan> finish_plan(ConvPlan plan) {
  std::vector<int64_t> dims = {plan.batch, plan.out_channels};
  for (const WindowAxis& axis : plan.axes) dims.push_back(axis.out);
  OPENRKNN_TRY(plan.output, Shape::make(dims));
  return plan;
}

}  // namespace

int64_t ConvPlan::taps() const {
  int64_t n = 1;
  for (const WindowAxis& axis : axes) n *= axis.kernel;
  return n;
}

int64_t ConvPlan::in_pixels() const {
  int64_t n = 1;
  for (const WindowAxis& axis : axes) n *= axis.in;
  return n;
}

int64_t ConvPlan::out_pixels() const {
  int64_t n = 1;
  for (const WindowAxis& axis : axes) n *= axis.out;
  return n;
}

Result<ConvPlan> conv_plan(const Attributes& attributes, const Shape& x, const Shape& w) {
  OPENRKNN_TRY(ConvPlan plan, start_plan(attributes, x, w));
  plan.out_channels = w[0];
  if (w[1] != plan.group_in() || plan.out_channels < 1 || plan.out_channels % plan.groups != 0) {
    return misfit("operand 1", fmt::format("weights {} for {} input channels in {} groups", w.to_string(),
                                           plan.in_channels, plan.groups));
  }
  OPENRKNN_TRY(plan.axes, window_axes(attributes, x.dims().subspan(2), w.dims().subspan(2)));
  return finish_plan(std::move(plan));
}

Result<ConvPlan> transposed_conv_plan(const Attributes& attributes, const Shape& x, const Shape& w) {
  OPENRKNN_TRY(ConvPlan plan, start_plan(attributes, x, w));
  if (w[0] != plan.in_channels || w[1] < 1) {
    return misfit("operand 1", fmt::format("weights {} for {} input channels", w.to_string(), plan.in_channels));
  }
  plan.out_channels = w[1] * plan.groups;
  OPENRKNN_TRY(plan.axes, transposed_window_axes(attributes, x.dims().subspan(2), w.dims().subspan(2)));
  return finish_plan(std::move(plan));
}

}  // namespace openrknn
