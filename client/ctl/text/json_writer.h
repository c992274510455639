// Writes one JSON document straight to a stream, value by value, so that a document may be larger
// than memory.
//
//   json.Object([&] {
//     json.Field("job", job.name());
//     json.Field("last_step", Maybe(job.has_last_step(), job.last_step()));  // Or null.
//     json.Array("tasks", job.tasks(), [&](const v1::Task& task) { json.Value(task.task()); });
//   });
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/json_text.h"

namespace tacho::ctl {

// The value, if there is one: `there` is mostly the has_ of a field.
template <typename T>
std::optional<T> Maybe(bool there, const T& value) {
  return there ? std::optional<T>(value) : std::nullopt;
}
// The text, unless it is empty.
inline std::optional<absl::string_view> MaybeText(absl::string_view text) {
  return Maybe(!text.empty(), text);
}

// Within an object every value has a name. Not thread-safe.
class JsonWriter {
 public:
  // `one_line`: no line break but the last one, for a document a line.
  explicit JsonWriter(std::ostream& out, bool one_line = false) : out_(out), one_line_(one_line) {}

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }
  void Key(absl::string_view name);
  void Null() { Raw("null"); }

  // A boolean, number or text; null for nullopt; an array for a container, and an object for one of
  // pairs. NaN and infinities, for which JSON has no number, are the strings "NaN", "Infinity",
  // "-Infinity".
  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      Raw(value ? "true" : "false");
    } else if constexpr (std::is_floating_point_v<T>) {
      Double(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      Uint(value);
    } else if constexpr (std::is_integral_v<T>) {
      Int(value);
    } else if constexpr (std::is_convertible_v<T, absl::string_view>) {
      String(value);
    } else {
      Array(value, [this](const auto& one) { this->Value(one); });
    }
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    value ? Value(*value) : Null();
  }
  void Value(const std::map<std::string, std::string>& map) { Pairs(map); }
  void Value(const std::vector<std::pair<std::string, std::string>>& pairs) { Pairs(pairs); }

  // A member of the open object.
  template <typename T>
  void Field(absl::string_view name, const T& value) {
    Key(name);
    Value(value);
  }
  // `name`: RFC 3339 in UTC, and `name`_unix_ns: an integer; both null if there is no time.
  void TimeFields(absl::string_view name, std::optional<int64_t> unix_ns);

  // An object of the members that `body` writes.
  template <typename Body>
  void Object(const Body& body) {
    BeginObject();
    body();
    EndObject();
  }
  template <typename Body>
  void Object(absl::string_view name, const Body& body) {
    Key(name);
    Object(body);
  }
  // An array of what `each` writes for each item.
  template <typename Items, typename Each>
  void Array(const Items& items, const Each& each) {
    BeginArray();
    for (const auto& item : items) each(item);
    EndArray();
  }
  template <typename Items, typename Each>
  void Array(absl::string_view name, const Items& items, const Each& each) {
    Key(name);
    Array(items, each);
  }
  // An array of objects, whose members `each` writes.
  template <typename Items, typename Each>
  void Objects(absl::string_view name, const Items& items, const Each& each) {
    Array(name, items, [&](const auto& item) { Object([&] { each(item); }); });
  }

 private:
  void Begin(char bracket);
  void End(char bracket);
  // Comma and line break where one is due.
  void Separate();
  void Raw(absl::string_view text);
  void String(absl::string_view value);
  void Int(int64_t value);
  void Uint(uint64_t value);
  void Double(double value);
  template <typename Map>
  void Pairs(const Map& map) {
    BeginObject();
    for (const auto& [name, value] : map) Field(name, value);
    EndObject();
  }

  std::ostream& out_;
  const bool one_line_;
  std::vector<bool> has_members_;  // One entry an open bracket.
  bool after_key_ = false;
};

}  // namespace tacho::ctl
