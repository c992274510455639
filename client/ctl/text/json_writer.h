// Writes one JSON document straight to a stream, value by value, so that a document may be larger
// than memory.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/json_text.h"

namespace tacho::ctl {

// The caller keeps the nesting right: Key() before each value within an object, and each Begin with
// its End. Not thread-safe.
class JsonWriter {
 public:
  // `one_line`: no line break but the last one, for a document a line.
  explicit JsonWriter(std::ostream& out, bool one_line = false) : out_(out), one_line_(one_line) {}

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  void Key(absl::string_view name);
  void String(absl::string_view value);
  void Int(int64_t value);
  void Uint(uint64_t value);
  // NaN and infinities, for which JSON has no number, are the strings "NaN", "Infinity",
  // "-Infinity".
  void Double(double value);
  void Bool(bool value);
  void Null();

  // `name`: RFC 3339 in UTC, and `name`_unix_ns: an integer; both null if there is no time.
  void TimeFields(absl::string_view name, std::optional<int64_t> unix_ns);

 private:
  void Begin(char bracket);
  void End(char bracket);
  // Comma and line break where one is due.
  void Separate();

  std::ostream& out_;
  const bool one_line_;
  std::vector<bool> has_members_;  // One entry an open bracket.
  bool after_key_ = false;
};

}  // namespace tacho::ctl
