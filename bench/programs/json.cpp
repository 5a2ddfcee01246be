// json: a document is parsed, written, edited and written again, one thread.
//
// Pattern   A text of about 1 MiB becomes a tree of standard containers: strings, arrays that grow by one, objects as
//           ordered maps with a node for each member. It is written into a growing text, then edited (subtrees removed,
//           replaced, copied to other places), written, parsed again, and all is freed. Everything comes from operator
//           new and goes with its size to operator delete; most blocks have 16 to 128 bytes.
// Idea      What services do with their requests, by the most common shape of a JSON library in C++: the format of
//           T. Bray, "The JavaScript Object Notation (JSON) Data Interchange Format", RFC 8259 (2017).
// Check     The text of the unedited tree is the one that it was parsed from, and so for the edited one.
// Usage     json [ROUNDS = 12] [KIB = 1024]      KIB: of the text, at least
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "bench.h"

struct Value;
using Array = std::vector<Value>;
using Object = std::map<std::string, Value>;

// 16 bytes: what does not fit is a block of its own.
struct Value {
  template <typename T>
  using Owned = std::unique_ptr<T>;

  std::variant<std::nullptr_t, bool, int64_t, Owned<std::string>, Owned<Array>, Owned<Object>> content;

  // NULL if it is of another kind.
  std::string* string() const { return owned<std::string>(); }
  Array*       array() const { return owned<Array>(); }
  Object*      object() const { return owned<Object>(); }

private:
  template <typename T>
  T* owned() const {
    auto pointer = std::get_if<Owned<T>>(&content);
    return pointer == nullptr ? nullptr : pointer->get();
  }
};

static uint64_t random_state;

static size_t random_below(size_t n) {
  return bench_random_below(&random_state, n);
}

// ---- the text that all begins with: members in the order of their names, and no spaces, as the writer writes

static const char* const names[] = {"active",
                                    "address",
                                    "category",
                                    "comments",
                                    "created_at",
                                    "description",
                                    "email",
                                    "enabled",
                                    "features",
                                    "geometry",
                                    "history_of_previous_values",
                                    "id",
                                    "items",
                                    "labels",
                                    "last_modified_by_user_name",
                                    "location",
                                    "metadata",
                                    "name",
                                    "options",
                                    "price",
                                    "quantity",
                                    "references_to_related_documents",
                                    "status",
                                    "tags",
                                    "url",
                                    "version"};
static const size_t      n_names = sizeof(names) / sizeof(names[0]);

// Most strings are short; 1 of 16 is a sentence.
static void text_add_string(std::string& text) {
  static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz";
  size_t            length = random_below(16) == 0 ? 32 + random_below(224) : random_below(28);
  text += '"';
  for (size_t i = 0; i < length; i++) {
    size_t r = random_below(256);
    if (r < 224) text += letters[r % 26];
    else if (r < 250) text += ' ';
    else text += r < 252 ? "\\\"" : r < 254 ? "\\\\" : r < 255 ? "\\n" : "\xC3\xA9";
  }
  text += '"';
}

static void text_add_value(std::string& text, size_t depth);

static void text_add_object(std::string& text, size_t depth) {
  char separator = '{';
  for (size_t i = random_below(6); i < n_names; i += 1 + random_below(6)) {
    text += separator;
    text += '"';
    text += names[i];
    text += "\":";
    text_add_value(text, depth + 1);
    separator = ',';
  }
  text += '}';
}

static void text_add_array(std::string& text, size_t depth) {
  size_t count = random_below(12);
  text += '[';
  for (size_t i = 0; i < count; i++) {
    if (i > 0) text += ',';
    text_add_value(text, depth + 1);
  }
  text += ']';
}

static void text_add_value(std::string& text, size_t depth) {
  size_t kind = random_below(depth < 5 ? 16 : 11);
  if (kind < 5) text_add_string(text);
  else if (kind < 9) text += std::to_string((int64_t)(bench_random(&random_state) >> (1 + random_below(60))) - 1000);
  else if (kind < 10) text += random_below(2) == 0 ? "true" : "false";
  else if (kind < 11) text += "null";
  else if (kind < 14) text_add_object(text, depth);
  else text_add_array(text, depth);
}

static std::string text_generate(size_t size) {
  std::string text = "[";
  while (text.size() < size) {
    if (text.size() > 1) text += ',';
    text_add_object(text, 1);
  }
  return text + ']';
}

// ---- parsing

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value document() {
    Value value = this->value();
    if (at_ != text_.size()) fail();
    return value;
  }

private:
  Value value() {
    switch (peek()) {
      case '{': return {object()};
      case '[': return {array()};
      case '"': return {std::make_unique<std::string>(string())};
      case 't': return expect("true"), Value{true};
      case 'f': return expect("false"), Value{false};
      case 'n': return expect("null"), Value{nullptr};
      default: return {number()};
    }
  }

  std::unique_ptr<Object> object() {
    auto members = std::make_unique<Object>();
    expect("{");
    while (peek() != '}') {
      if (!members->empty()) expect(",");
      std::string name = string();
      expect(":");
      members->emplace_hint(members->end(), std::move(name), value());
    }
    expect("}");
    return members;
  }

  std::unique_ptr<Array> array() {
    auto items = std::make_unique<Array>();
    expect("[");
    while (peek() != ']') {
      if (!items->empty()) expect(",");
      items->push_back(value());
    }
    expect("]");
    return items;
  }

  std::string string() {
    std::string result;
    expect("\"");
    while (peek() != '"') {
      char c = text_[at_++];
      if (c == '\\') c = peek() == 'n' ? '\n' : peek(), at_++;
      result += c;
    }
    expect("\"");
    return result;
  }

  int64_t number() {
    bool is_negative = peek() == '-';
    if (is_negative) at_++;
    if (peek() < '0' || peek() > '9') fail();
    int64_t result = 0;
    while (peek() >= '0' && peek() <= '9') result = result * 10 + (text_[at_++] - '0');
    return is_negative ? -result : result;
  }

  // The character at this place, 0 at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void expect(std::string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) fail();
    at_ += word.size();
  }

  [[noreturn]] void fail() const { bench_fail("the text is wrong at %zu", at_); }

  std::string_view text_;
  size_t           at_ = 0;
};

// ---- writing

static void write_string(std::string& text, const std::string& string) {
  text += '"';
  for (char c : string) {
    if (c == '"' || c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  text += '"';
}

static void write_value(std::string& text, const Value& value) {
  if (const Object* object = value.object()) {
    char separator = '{';
    for (const auto& [name, member] : *object) {
      text += separator;
      write_string(text, name);
      text += ':';
      write_value(text, member);
      separator = ',';
    }
    text += object->empty() ? "{}" : "}";
  }
  else if (const Array* array = value.array()) {
    text += '[';
    for (size_t i = 0; i < array->size(); i++) {
      if (i > 0) text += ',';
      write_value(text, (*array)[i]);
    }
    text += ']';
  }
  else if (const std::string* string = value.string()) write_string(text, *string);
  else if (auto number = std::get_if<int64_t>(&value.content)) text += std::to_string(*number);
  else if (auto flag = std::get_if<bool>(&value.content)) text += *flag ? "true" : "false";
  else text += "null";
}

static std::string written(const Value& value) {
  std::string text;
  write_value(text, value);
  return text;
}

// ---- editing

static Value copy_of(const Value& value) {
  if (const Object* object = value.object()) {
    auto copy = std::make_unique<Object>();
    for (const auto& [name, member] : *object) copy->emplace_hint(copy->end(), name, copy_of(member));
    return {std::move(copy)};
  }
  if (const Array* array = value.array()) {
    auto copy = std::make_unique<Array>();
    for (const Value& item : *array) copy->push_back(copy_of(item));
    return {std::move(copy)};
  }
  if (const std::string* string = value.string()) return {std::make_unique<std::string>(*string)};
  if (auto number = std::get_if<int64_t>(&value.content)) return {*number};
  if (auto flag = std::get_if<bool>(&value.content)) return {*flag};
  return {nullptr};
}

// A random object or array with content: goes down from the root until it meets a value without.
static Value& container_pick(Value& root) {
  Value* at = &root;
  for (;;) {
    Value* child = nullptr;
    if (Object* object = at->object()) child = &std::next(object->begin(), (long)random_below(object->size()))->second;
    else child = &(*at->array())[random_below(at->array()->size())];
    bool has_content = (child->object() && !child->object()->empty()) || (child->array() && !child->array()->empty());
    if (!has_content) return *at;
    at = child;
  }
}

static void object_edit(Object& object, Value&& other) {
  auto member = std::next(object.begin(), (long)random_below(object.size()));
  switch (random_below(4)) {
    case 0: object.insert_or_assign(names[random_below(n_names)], std::move(other)); break;
    case 1:
      object.insert_or_assign("edited_" + std::to_string(random_below(1000)),
                              Value{std::make_unique<std::string>("a text put in its place")});
      break;
    case 2:
      if (object.size() > 1) object.erase(member);
      break;
    default: member->second = std::move(other);
  }
}

static void array_edit(Array& array, Value&& other) {
  auto item = array.begin() + (long)random_below(array.size());
  switch (random_below(4)) {
    case 0: array.push_back(std::move(other)); break;
    case 1: array.insert(item, Value{(int64_t)random_below(1000000)}); break;
    case 2:
      if (array.size() > 1) array.erase(item);
      break;
    default: *item = std::move(other);
  }
}

static void document_edit(Value& root, size_t n_edits) {
  for (size_t i = 0; i < n_edits; i++) {
    Value  other = copy_of(container_pick(root));
    Value& place = container_pick(root);
    if (Object* object = place.object()) object_edit(*object, std::move(other));
    else array_edit(*place.array(), std::move(other));
  }
}

// ----

static uint64_t hash_of(const std::string& text) {
  uint64_t hash = text.size();
  for (char c : text) hash = (hash ^ (unsigned char)c) * 0x100000001B3u;
  return hash;
}

int main(int argc, char** argv) {
  size_t rounds = bench_argument(argc, argv, 1, "ROUNDS", 12, SIZE_MAX);
  size_t kib = bench_argument(argc, argv, 2, "KIB", 1024, 1 << 20);
  random_state = bench_random_seed(0);
  std::string text = text_generate(kib * 1024);
  uint64_t    sum = hash_of(text);
  for (size_t round = 0; round < rounds; round++) {
    Value document = Parser(text).document();
    if (written(document) != text) bench_fail("the document as written is not the one that was parsed");
    document_edit(document, kib);
    std::string edited = written(document);
    if (written(Parser(edited).document()) != edited) bench_fail("the edited document is another one when parsed");
    sum = sum * 31 + hash_of(edited);
  }
  printf("json %zu %zu: %016llx\n", rounds, kib, (unsigned long long)sum);
  return 0;
}
