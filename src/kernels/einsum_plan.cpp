#include "kernels/einsum_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace openrknn {
namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = -1;

Error malformed(std::string why) {
  return {ErrorCode::kShape, "the node's operands do not fit", "attribute 'equation'", std::move(why),
          "repair the model"};
}

std::optional<int> letter_index(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return std::nullopt;
}

// One term of the equation: letters as numbers, the ellipsis as -1.
Result<std::vector<int>> parse_term(std::string_view term) {
  std::vector<int> indices;
  for (size_t i = 0; i < term.size(); ++i) {
    if (const auto letter = letter_index(term[i])) {
      indices.push_back(*letter);
      continue;
    }
    const bool again = std::find(indices.begin(), indices.end(), kEllipsis) != indices.end();
    if (term.substr(i, 3) != "..." || again) return malformed(fmt::format("'{}' is no list of indices", term));
    indices.push_back(kEllipsis);
    i += 2;
  }
  return indices;
}

struct Parsed {
  std::vector<std::vector<int>> operands;
  std::optional<std::vector<int>> output;
};

Result<Parsed> parse(std::string_view equation) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  Parsed parsed;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    OPENRKNN_TRY(parsed.output, parse_term(std::string_view(text).substr(arrow + 2)));
    text.resize(arrow);
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    OPENRKNN_TRY(auto term, parse_term(std::string_view(text).substr(begin, end - begin)));
    parsed.operands.push_back(std::move(term));
    begin = end + 1;
  }
  return parsed;
}

// The axes of an ellipsis of `axes` dimensions, aligned to the last of the `most` that any operand has.
void append_ellipsis(int axes, int most, std::vector<int>& to) {
  for (int i = most - axes; i < most; ++i) to.push_back(kLetters + i);
}

// How many axes the ellipsis of a term stands for; nullopt when the ranks do not fit.
std::optional<int> ellipsis_axes(const std::vector<int>& term, const Shape& shape) {
  const bool has = std::find(term.begin(), term.end(), kEllipsis) != term.end();
  const int rest = shape.rank() - static_cast<int>(term.size()) + (has ? 1 : 0);
  if (rest < 0 || (!has && rest != 0)) return std::nullopt;
  return rest;
}

std::vector<int> implied_output(const std::vector<std::vector<int>>& operands, int most) {
  std::vector<int> counts(kLetters, 0);
  for (const auto& term : operands) {
    for (const int index : term) {
      if (index < kLetters) ++counts[static_cast<size_t>(index)];
    }
  }
  std::vector<int> output;
  append_ellipsis(most, most, output);
  for (int i = 0; i < kLetters; ++i) {
    if (counts[static_cast<size_t>(i)] == 1) output.push_back(i);
  }
  return output;
}

std::vector<int> spread(const std::vector<int>& term, int axes, int most) {
  std::vector<int> indices;
  for (const int index : term) {
    if (index == kEllipsis) {
      append_ellipsis(axes, most, indices);
    } else {
      indices.push_back(index);
    }
  }
  return indices;
}

// -1 until an operand has the index.
Result<std::vector<int64_t>> joint_extents(const EinsumPlan& plan, std::span<const Shape> shapes) {
  std::vector<int64_t> extents(kLetters + Shape::kMaxRank, -1);
  for (size_t k = 0; k < shapes.size(); ++k) {
    for (int axis = 0; axis < shapes[k].rank(); ++axis) {
      int64_t& extent = extents[static_cast<size_t>(plan.operands[k][static_cast<size_t>(axis)])];
      const int64_t own = shapes[k][axis];
      if (extent == -1 || extent == 1) {
        extent = own;
      } else if (own != 1 && own != extent) {
        return malformed(fmt::format("an index has extents {} and {}", extent, own));
      }
    }
  }
  return extents;
}

}  // namespace

Result<EinsumPlan> einsum_plan(std::string_view equation, std::span<const Shape> operands) {
  OPENRKNN_TRY(const Parsed parsed, parse(equation));
  if (parsed.operands.size() != operands.size())
    return malformed(fmt::format("{} terms for {} operands", parsed.operands.size(), operands.size()));
  std::vector<int> axes;
  for (size_t k = 0; k < operands.size(); ++k) {
    const auto count = ellipsis_axes(parsed.operands[k], operands[k]);
    if (!count) return malformed(fmt::format("term {} does not fit the shape {}", k, operands[k].to_string()));
    axes.push_back(*count);
  }
  const int most = axes.empty() ? 0 : *std::max_element(axes.begin(), axes.end());
  EinsumPlan plan;
  for (size_t k = 0; k < operands.size(); ++k) plan.operands.push_back(spread(parsed.operands[k], axes[k], most));
  plan.output = parsed.output ? spread(*parsed.output, most, most) : implied_output(plan.operands, most);
  OPENRKNN_TRY(plan.extents, joint_extents(plan, operands));
  std::vector<int64_t> dims;
  for (size_t i = 0; i < plan.output.size(); ++i) {
    const int index = plan.output[i];
    if (std::find(plan.output.begin(), plan.output.begin() + static_cast<std::ptrdiff_t>(i), index) !=
        plan.output.begin() + static_cast<std::ptrdiff_t>(i))
      return malformed("an index occurs twice in the result");
    if (plan.extents[static_cast<size_t>(index)] < 0) return malformed("an index of the result is in no operand");
    dims.push_back(plan.extents[static_cast<size_t>(index)]);
  }
  OPENRKNN_TRY(plan.shape, Shape::make(dims));
  return plan;
}

}  // namespace openrknn
