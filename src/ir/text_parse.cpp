#include <fmt/core.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <map>

#include "base/half.hpp"
#include "ir/text.hpp"
#include "ir/text_lexer.hpp"

namespace openrknn {
namespace {

using text::Lexer;
using text::Token;

struct Type {
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape;
  std::optional<QuantParams> quant;
  std::vector<std::string> aliases;
};

// A number or one of the words inf and nan; whether it was written as a float decides an attribute's kind.
struct Number {
  std::string text;
  bool is_float = false;
};

template <typename T>
std::optional<T> number_as(const Number& n) {
  if constexpr (std::is_floating_point_v<T>) {
    if (n.text == "nan") return std::numeric_limits<T>::quiet_NaN();
    if (n.text == "inf") return std::numeric_limits<T>::infinity();
    if (n.text == "-inf") return -std::numeric_limits<T>::infinity();
  }
  T value{};
  const char* begin = n.text.data() + (n.text[0] == '+' ? 1 : 0);
  const char* end = n.text.data() + n.text.size();
  const auto [at, code] = std::from_chars(begin, end, value);
  if (code != std::errc{} || at != end) return std::nullopt;
  return value;
}

// Uniform numbers in [0, 1) with 24 bits: splitmix64, so that a seed means the same everywhere.
double next_unit(uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<double>(z >> 40) * 0x1p-24;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : lexer_(text, name) {}
  Result<Graph> run();

 private:
  Status take_mark(char c);
  Status take_word(std::string_view word);
  Result<std::string> take(Token token, std::string_view wanted);
  Result<Number> peek_number() const;
  Result<Number> take_number();
  template <typename T>
  Result<T> take_as(std::string_view wanted);
  template <typename T>
  Result<std::vector<T>> take_list();
  Result<std::vector<std::string>> take_strings();

  Status statement();
  Status input();
  Status constant();
  Status output();
  Status node();

  Result<DType> dtype();
  Result<Type> type();
  Result<std::optional<Shape>> shape();
  Result<QuantParams> quant();
  Result<Tensor> content(DType dtype, const Shape& shape);
  Status fill_listed(Tensor& tensor);
  Status store(Tensor& tensor, int64_t at, const Number& number);
  Result<Attributes> attributes();
  Result<Attribute> attribute();
  Result<Attribute> list_attribute();
  Result<ValueId> define(const std::string& name, const Type& type);
  Result<std::vector<ValueId>> operands();

  Lexer lexer_;
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> values_;
};

Status Parser::take_mark(char c) {
  if (!lexer_.is_mark(c)) return lexer_.expected(fmt::format("'{}'", c));
  return lexer_.advance();
}

Status Parser::take_word(std::string_view word) {
  if (!lexer_.is_word(word)) return lexer_.expected(fmt::format("'{}'", word));
  return lexer_.advance();
}

Result<std::string> Parser::take(Token token, std::string_view wanted) {
  if (lexer_.token() != token) return lexer_.expected(wanted);
  std::string text = lexer_.text();
  OPENRKNN_CHECK_OK(lexer_.advance());
  return text;
}

Result<Number> Parser::peek_number() const {
  const bool word = lexer_.is_word("inf") || lexer_.is_word("nan");
  if (lexer_.token() != Token::kNumber && !word) return lexer_.expected("a number");
  Number n{lexer_.text(), false};
  n.is_float = word || n.text == "-inf" || n.text.find_first_of(".eE") != std::string::npos;
  if (!number_as<double>(n)) return lexer_.expected("a number");
  return n;
}

Result<Number> Parser::take_number() {
  OPENRKNN_TRY(Number n, peek_number());
  OPENRKNN_CHECK_OK(lexer_.advance());
  return n;
}

template <typename T>
Result<T> Parser::take_as(std::string_view wanted) {
  OPENRKNN_TRY(const Number n, peek_number());
  const auto value = number_as<T>(n);
  if (!value) return lexer_.expected(wanted);
  OPENRKNN_CHECK_OK(lexer_.advance());
  return *value;
}

template <typename T>
Result<std::vector<T>> Parser::take_list() {
  std::vector<T> items;
  OPENRKNN_CHECK_OK(take_mark('['));
  while (!lexer_.is_mark(']')) {
    if (!items.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(T item, take_as<T>(std::is_integral_v<T> ? "an integer" : "a number"));
    items.push_back(item);
  }
  OPENRKNN_CHECK_OK(take_mark(']'));
  return items;
}

Result<std::vector<std::string>> Parser::take_strings() {
  std::vector<std::string> items;
  OPENRKNN_CHECK_OK(take_mark('['));
  while (!lexer_.is_mark(']')) {
    if (!items.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(items.emplace_back(), take(Token::kString, "a string"));
  }
  OPENRKNN_CHECK_OK(take_mark(']'));
  return items;
}

Result<DType> Parser::dtype() {
  const Error here = lexer_.expected("an element type");
  OPENRKNN_TRY(const std::string name, take(Token::kWord, "an element type"));
  const auto found = dtype_from_name(name);
  if (!found) return here;
  return *found;
}

Result<std::optional<Shape>> Parser::shape() {
  OPENRKNN_CHECK_OK(take_mark('['));
  if (lexer_.is_mark('?')) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_CHECK_OK(take_mark(']'));
    return std::optional<Shape>{};
  }
  std::vector<int64_t> dims;
  while (!lexer_.is_mark(']')) {
    if (!dims.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(const int64_t extent, take_as<int64_t>("an extent"));
    dims.push_back(extent);
  }
  auto made = Shape::make(dims);
  if (!made.ok()) return lexer_.fail(made.error().why);
  OPENRKNN_CHECK_OK(take_mark(']'));
  return std::optional<Shape>{*made};
}

Result<QuantParams> Parser::quant() {
  QuantParams q;
  OPENRKNN_CHECK_OK(take_mark('('));
  OPENRKNN_TRY(q.dtype, dtype());
  OPENRKNN_CHECK_OK(take_mark(','));
  const Error here = lexer_.expected("tensor, channel or group");
  OPENRKNN_TRY(const std::string granularity, take(Token::kWord, "tensor, channel or group"));
  if (granularity == "channel" || granularity == "group") {
    q.granularity = granularity == "channel" ? Granularity::kChannel : Granularity::kGroup;
    OPENRKNN_TRY(q.axis, take_as<int>("an axis"));
    if (granularity == "group") {
      OPENRKNN_TRY(q.group_size, take_as<int>("a group size"));
    }
  } else if (granularity != "tensor") {
    return here;
  }
  OPENRKNN_CHECK_OK(take_mark(','));
  OPENRKNN_TRY(q.scales, take_list<float>());
  OPENRKNN_CHECK_OK(take_mark(','));
  OPENRKNN_TRY(q.zero_points, take_list<int32_t>());
  OPENRKNN_CHECK_OK(take_mark(')'));
  return q;
}

// ": float32[1,2] quant(...) aka [...]", every part optional.
Result<Type> Parser::type() {
  Type t;
  if (lexer_.is_mark(':')) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_TRY(t.dtype, dtype());
    OPENRKNN_TRY(t.shape, shape());
  }
  if (lexer_.is_word("quant")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_TRY(t.quant, quant());
  }
  if (lexer_.is_word("aka")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_TRY(t.aliases, take_strings());
  }
  return t;
}

// One element of a tensor set to a converted scalar: the rules of rounding stay with cast().
template <typename T>
void set_element(Tensor& tensor, size_t at, T value) {
  const Tensor element = cast(Tensor::scalar(value).view(), tensor.dtype());
  const size_t size = dtype_size(tensor.dtype());
  std::memcpy(static_cast<std::byte*>(tensor.mutable_data()) + at * size, element.data(), size);
}

Status Parser::store(Tensor& tensor, int64_t at, const Number& number) {
  const auto i = static_cast<size_t>(at);
  const auto bad = [&] { return lexer_.fail(fmt::format("'{}' is no {}", number.text, dtype_name(tensor.dtype()))); };
  if (tensor.dtype() == DType::kUInt64) {
    const auto v = number_as<uint64_t>(number);
    if (!v) return bad();
    tensor.mutable_as<uint64_t>()[i] = *v;
  } else if (tensor.dtype() == DType::kFloat32) {
    tensor.mutable_as<float>()[i] = *number_as<float>(number);
  } else if (is_float(tensor.dtype())) {
    set_element(tensor, i, *number_as<double>(number));
  } else {
    const auto v = number_as<int64_t>(number);
    const bool narrow = dtype_size(tensor.dtype()) < 8;
    if (!v || (narrow && (*v < dtype_min(tensor.dtype()) || *v > dtype_max(tensor.dtype())))) return bad();
    set_element(tensor, i, *v);
  }
  return {};
}

Status Parser::fill_listed(Tensor& tensor) {
  OPENRKNN_CHECK_OK(take_mark('{'));
  int64_t count = 0;
  while (!lexer_.is_mark('}')) {
    if (count > 0) OPENRKNN_CHECK_OK(take_mark(','));
    if (count == tensor.elements())
      return lexer_.fail(fmt::format("more than {} values for {}", count, tensor.shape().to_string()));
    OPENRKNN_TRY(const Number n, take_number());
    OPENRKNN_CHECK_OK(store(tensor, count++, n));
  }
  if (count != tensor.elements())
    return lexer_.fail(fmt::format("{} values for {}", count, tensor.shape().to_string()));
  return take_mark('}');
}

Result<Tensor> Parser::content(DType dtype, const Shape& shape) {
  if (dtype_size(dtype) == 0) return lexer_.fail(fmt::format("a constant of type {}", dtype_name(dtype)));
  auto made = Tensor::make(dtype, shape);
  if (!made.ok()) return lexer_.fail(made.error().why);
  Tensor tensor = *std::move(made);
  if (lexer_.is_mark('{')) {
    OPENRKNN_CHECK_OK(fill_listed(tensor));
    return tensor;
  }
  if (lexer_.is_mark('<')) return lexer_.fail("the values of this constant were left out when the graph was printed");
  const bool seeded = lexer_.is_word("seeded");
  if (!seeded && !lexer_.is_word("fill")) return lexer_.expected("'{', seeded or fill");
  OPENRKNN_CHECK_OK(lexer_.advance());
  OPENRKNN_CHECK_OK(take_mark('('));
  if (seeded) {
    OPENRKNN_TRY(uint64_t state, take_as<uint64_t>("a seed"));
    OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(const double low, take_as<double>("a number"));
    OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(const double high, take_as<double>("a number"));
    std::vector<double> values(static_cast<size_t>(tensor.elements()));
    for (double& v : values) v = low + (high - low) * next_unit(state);
    tensor = cast(Tensor::from(shape, values).view(), dtype);
  } else {
    OPENRKNN_TRY(const Number n, take_number());
    if (tensor.elements() > 0) OPENRKNN_CHECK_OK(store(tensor, 0, n));
    const size_t size = dtype_size(dtype);
    auto* bytes = static_cast<std::byte*>(tensor.mutable_data());
    for (int64_t i = 1; i < tensor.elements(); ++i) std::memcpy(bytes + static_cast<size_t>(i) * size, bytes, size);
  }
  OPENRKNN_CHECK_OK(take_mark(')'));
  return tensor;
}

Result<Attribute> Parser::list_attribute() {
  OPENRKNN_CHECK_OK(take_mark('['));
  std::vector<Number> numbers;
  std::vector<std::string> strings;
  while (!lexer_.is_mark(']')) {
    if (!numbers.empty() || !strings.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    if (lexer_.token() == Token::kString && numbers.empty()) {
      strings.push_back(lexer_.text());
      OPENRKNN_CHECK_OK(lexer_.advance());
    } else {
      if (!strings.empty()) return lexer_.expected("a string");
      OPENRKNN_TRY(numbers.emplace_back(), take_number());
    }
  }
  OPENRKNN_CHECK_OK(take_mark(']'));
  if (!strings.empty()) return Attribute(strings);
  std::vector<float> floats;
  std::vector<int64_t> ints;
  bool any_float = false;
  for (const Number& n : numbers) any_float = any_float || n.is_float;
  for (const Number& n : numbers) {
    if (any_float) {
      floats.push_back(*number_as<float>(n));
    } else {
      const auto v = number_as<int64_t>(n);
      if (!v) return lexer_.fail(fmt::format("'{}' does not fit 64 bits", n.text));
      ints.push_back(*v);
    }
  }
  return any_float ? Attribute(floats) : Attribute(ints);
}

Result<Attribute> Parser::attribute() {
  if (lexer_.is_mark('[')) return list_attribute();
  if (lexer_.token() == Token::kString) {
    OPENRKNN_TRY(std::string text, take(Token::kString, "a string"));
    return Attribute(std::move(text));
  }
  if (lexer_.is_word("floats") || lexer_.is_word("strings")) {
    const bool floats = lexer_.is_word("floats");
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_CHECK_OK(take_mark('['));
    OPENRKNN_CHECK_OK(take_mark(']'));
    return floats ? Attribute(std::vector<float>{}) : Attribute(std::vector<std::string>{});
  }
  if (lexer_.token() == Token::kWord && dtype_from_name(lexer_.text())) {
    OPENRKNN_TRY(const DType element, dtype());
    OPENRKNN_TRY(const auto extents, shape());
    if (!extents) return lexer_.fail("a tensor needs a shape");
    OPENRKNN_TRY(Tensor tensor, content(element, *extents));
    return Attribute(std::move(tensor));
  }
  OPENRKNN_TRY(const Number n, peek_number());
  if (n.is_float) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    return Attribute(*number_as<float>(n));
  }
  OPENRKNN_TRY(const int64_t v, take_as<int64_t>("an integer of 64 bits"));
  return Attribute(v);
}

Result<Attributes> Parser::attributes() {
  Attributes made;
  OPENRKNN_CHECK_OK(take_mark('{'));
  while (!lexer_.is_mark('}')) {
    if (!made.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    OPENRKNN_TRY(const std::string name, take(Token::kWord, "an attribute name"));
    if (made.has(name)) return lexer_.fail(fmt::format("attribute '{}' is given twice", name));
    OPENRKNN_CHECK_OK(take_mark('='));
    OPENRKNN_TRY(Attribute value, attribute());
    made.set(name, std::move(value));
  }
  OPENRKNN_CHECK_OK(take_mark('}'));
  return made;
}

Result<ValueId> Parser::define(const std::string& name, const Type& type) {
  if (values_.find(name) != values_.end()) return lexer_.fail(fmt::format("value '{}' is defined twice", name));
  const ValueId id = graph_.add_value(name, type.dtype, type.shape);
  graph_.value(id).quant = type.quant;
  graph_.value(id).aliases = type.aliases;
  values_.emplace(name, id);
  return id;
}

Status Parser::input() {
  OPENRKNN_TRY(const std::string name, take(Token::kValue, "a value"));
  OPENRKNN_TRY(const Type t, type());
  if (!t.shape) return lexer_.fail(fmt::format("input '{}' needs a type", name));
  OPENRKNN_TRY(const ValueId id, define(name, t));
  std::vector<ValueId> inputs = graph_.inputs();
  inputs.push_back(id);
  graph_.set_graph_inputs(std::move(inputs));
  return {};
}

Status Parser::constant() {
  OPENRKNN_TRY(const std::string name, take(Token::kValue, "a value"));
  OPENRKNN_TRY(const Type t, type());
  if (!t.shape) return lexer_.fail(fmt::format("constant '{}' needs a type", name));
  OPENRKNN_CHECK_OK(take_mark('='));
  OPENRKNN_TRY(Tensor tensor, content(t.dtype, *t.shape));
  OPENRKNN_TRY(const ValueId id, define(name, t));
  graph_.value(id).constant = std::move(tensor);
  return {};
}

Status Parser::output() {
  const Error here = lexer_.expected("a value that is defined");
  OPENRKNN_TRY(const std::string name, take(Token::kValue, "a value"));
  const auto found = values_.find(name);
  if (found == values_.end()) return here;
  graph_.add_output(found->second);
  return {};
}

Result<std::vector<ValueId>> Parser::operands() {
  std::vector<ValueId> made;
  OPENRKNN_CHECK_OK(take_mark('('));
  while (!lexer_.is_mark(')')) {
    if (!made.empty()) OPENRKNN_CHECK_OK(take_mark(','));
    if (lexer_.is_word("_")) {
      made.emplace_back();
      OPENRKNN_CHECK_OK(lexer_.advance());
      continue;
    }
    const Error here = lexer_.expected("a value that is defined");
    OPENRKNN_TRY(const std::string name, take(Token::kValue, "a value"));
    const auto found = values_.find(name);
    if (found == values_.end()) return here;
    made.push_back(found->second);
  }
  OPENRKNN_CHECK_OK(take_mark(')'));
  return made;
}

Status Parser::node() {
  struct Output {
    std::string name;
    Type type;
  };
  std::vector<Output> outputs;
  while (true) {
    if (lexer_.is_word("_")) {
      outputs.emplace_back();
      OPENRKNN_CHECK_OK(lexer_.advance());
    } else {
      OPENRKNN_TRY(std::string name, take(Token::kValue, "input, const, output or a value"));
      OPENRKNN_TRY(Type t, type());
      outputs.push_back({std::move(name), std::move(t)});
    }
    if (!lexer_.is_mark(',')) break;
    OPENRKNN_CHECK_OK(lexer_.advance());
  }
  OPENRKNN_CHECK_OK(take_mark('='));
  OPENRKNN_TRY(const std::string op, take(Token::kWord, "an operator"));
  OPENRKNN_TRY(auto inputs, operands());
  Attributes attrs;
  if (lexer_.is_mark('{')) {
    OPENRKNN_TRY(attrs, attributes());
  }
  std::string name;
  if (lexer_.token() == Token::kString) {
    OPENRKNN_TRY(name, take(Token::kString, "a name"));
  }
  Source source;
  if (lexer_.is_word("from")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    OPENRKNN_TRY(source.nodes, take_strings());
  }
  std::vector<ValueId> results;
  for (const Output& o : outputs) {
    if (o.name.empty()) {
      results.emplace_back();
      continue;
    }
    OPENRKNN_TRY(const ValueId id, define(o.name, o.type));
    results.push_back(id);
  }
  graph_.add_node(op, name, std::move(inputs), std::move(results), std::move(attrs), std::move(source));
  return {};
}

Status Parser::statement() {
  if (lexer_.is_word("input")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    return input();
  }
  if (lexer_.is_word("const")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    return constant();
  }
  if (lexer_.is_word("output")) {
    OPENRKNN_CHECK_OK(lexer_.advance());
    return output();
  }
  return node();
}

Result<Graph> Parser::run() {
  OPENRKNN_CHECK_OK(lexer_.advance());
  OPENRKNN_CHECK_OK(take_word("graph"));
  OPENRKNN_TRY(graph_.name, take(Token::kString, "the graph's name"));
  OPENRKNN_CHECK_OK(take_mark('{'));
  while (!lexer_.is_mark('}')) OPENRKNN_CHECK_OK(statement());
  OPENRKNN_CHECK_OK(lexer_.advance());
  if (lexer_.token() != Token::kEnd) return lexer_.expected("nothing more");
  OPENRKNN_CHECK_OK(graph_.verify());
  return std::move(graph_);
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::string& name) {
  auto graph = Parser(text, name).run();
  if (graph.ok()) graph->source_file = name;
  return graph;
}

}  // namespace openrknn
