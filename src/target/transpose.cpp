#include "target/transpose.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"

namespace openrknn::target {
namespace {

// A row of sdk.md C.4: the permutation and its conditions. "hw<up" reads h * w < u * p, "nw%4": n * w is a multiple of
// 4. u is 16 for int8 and 8 for two-byte types; p and q are the target's. A digit in front is a factor.
struct Row {
  std::string_view perm;
  std::string_view conditions;
};

constexpr Row kTable[] = {
    {"0123", ""},
    {"0132", "h%u hw<up hw<2q"},
    {"0231", "c<8192 hw%8 cw<up"},
    {"0213", "h%u hw<up hw<2q cw<p"},
    {"0312", "hw<p w<8192 hc<p"},
    {"0321", "h%u hw<up hw<2q c<up"},
    {"1023", "hw<p n<8192"},
    {"1032", "h%u chw<up hw<2q"},
    {"1203", "nw<up chw<p w%u"},
    {"1230", "hw<p n<up chw<up nw<up"},
    {"1302", "cw<8192 nh<p w%u"},
    {"1320", "chw<p nh<p w<8192 w%u"},
    {"2103", "c<8192 chw<p nw<p"},
    {"2130", "chw<p nw<up c<8192 nw%4"},
    {"2031", "c<8192 chw<p"},
    {"2013", "nchw<p hw%u"},
    {"2310", "chw<p nc<p hw<8192 hw%u"},
    {"2301", "hw<8192 nc<p"},
    {"3021", "hw<p nc<8192 ch<p nw<8192 nw%u"},
    {"3012", "hw<p nc<8192 ch<p nw<8192 nhw%u"},
    {"3201", "hw<p nc<8192 ncw<p"},
    {"3210", "chw<p hw<8192 2hw<q nc<up h%u"},
    {"3102", "hw<p cw<8192 nh<p"},
    {"3120", "hw<p nc<8192 nh<p ncw<p"},
};

struct Sizes {
  std::array<int64_t, 4> dims;
  int64_t u = 16;
  int64_t p = 0;
  int64_t q = 0;
};

// The product that a word like "2hw", "up" or "8192" names.
int64_t product(std::string_view word, const Sizes& s) {
  int64_t result = 1;
  for (size_t i = 0; i < word.size(); ++i) {
    int64_t factor = 0;
    if (word[i] >= '0' && word[i] <= '9') {
      for (; i < word.size() && word[i] >= '0' && word[i] <= '9'; ++i) factor = factor * 10 + (word[i] - '0');
      --i;
    } else {
      const size_t axis = std::string_view("nchw").find(word[i]);
      factor = axis < 4 ? s.dims[axis] : word[i] == 'u' ? s.u : word[i] == 'p' ? s.p : s.q;
    }
    if (__builtin_mul_overflow(result, factor, &result)) return INT64_MAX;
  }
  return result;
}

std::optional<TransposeRefusal> failing(std::string_view condition, const Sizes& s, const Target& target) {
  const size_t at = condition.find_first_of("<%");
  const std::string_view left = condition.substr(0, at);
  const std::string_view right = condition.substr(at + 1);
  const int64_t value = product(left, s);
  const int64_t bound = product(right, s);
  const bool below = condition[at] == '<';
  if (below ? value < bound : value % bound == 0) return std::nullopt;
  const char* limit = right.ends_with('p') ? "transpose.p" : right.ends_with('q') ? "transpose.q" : "transpose.table";
  std::string name;
  for (char c : left) name += (name.empty() ? "" : " * ") + std::string(1, c);
  return TransposeRefusal{limit, name + " is " + std::to_string(value) +
                                     (below ? ", it must be below " : ", no multiple of ") + std::to_string(bound) +
                                     " (" + target.limit(limit).source + ")"};
}

// RK3566 and RK3568 move long vectors only. The source's condition reads "n1=h1=1 and h1%4=0 resp. w1%4=0", which
// cannot be meant: taken as one spatial axis of 1 and the other, which comes first in the result, a multiple of 4.
std::optional<TransposeRefusal> restricted(std::string_view perm, const Sizes& s, const Target& target) {
  const auto [n, c, h, w] = s.dims;
  const auto refuse = [&](const std::string& why) {
    return TransposeRefusal{"transpose.restricted", why + " (" + target.limit("transpose.restricted").source + ")"};
  };
  constexpr std::string_view kPerms[] = {"0123", "2103", "2130", "3102", "3120"};
  if (perm == "0123") return std::nullopt;
  if (std::find(std::begin(kPerms), std::end(kPerms), perm) == std::end(kPerms)) {
    return refuse("this NPU has no permutation " + std::string(perm));
  }
  if (c >= 8192 || n >= 8192 || product("hw", s) >= 8192) return refuse("n, c and h * w must be below 8192");
  const bool batch = h == 1 && w == 1 && n % 4 == 0;
  const bool spatial = n == 1 && (perm[0] == '2' ? w == 1 && h % 4 == 0 : h == 1 && w % 4 == 0);
  if (!batch && !spatial) return refuse("two of n, h and w must be 1 and the third a multiple of 4");
  return std::nullopt;
}

}  // namespace

std::optional<TransposeRefusal> transpose_refusal(const Target& target, const std::array<int, 4>& perm,
                                                  const std::array<int64_t, 4>& dims, DType dtype) {
  std::string key;
  for (int axis : perm) key += static_cast<char>('0' + axis);
  const Sizes sizes{dims, dtype_size(dtype) == 1 ? 16 : 8, target.limit("transpose.p").value,
                    target.limit("transpose.q").value};
  if (target.limit("transpose.restricted").value != 0) return restricted(key, sizes, target);
  const auto* row = std::find_if(std::begin(kTable), std::end(kTable), [&](const Row& r) { return r.perm == key; });
  if (row == std::end(kTable)) return TransposeRefusal{"transpose.table", key + " is no permutation"};
  for (const std::string& condition : split(row->conditions, ' ')) {
    if (condition.empty()) continue;
    if (auto refusal = failing(condition, sizes, target)) return refusal;
  }
  return std::nullopt;
}

}  // namespace openrknn::target
