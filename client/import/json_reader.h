// Reads JSON of any length, token by token, from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/import/input_file.h"

namespace tacho::importer {

enum class JsonToken {
  kBeginObject,
  kEndObject,
  kBeginArray,
  kEndArray,
  kKey,
  kString,
  kNumber,  // Also NaN, Infinity and -Infinity, which Python writes.
  kTrue,
  kFalse,
  kNull,
  kEnd,  // After the one value; only white space follows it.
};

// Used from one thread.
class JsonReader {
 public:
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxTextBytes = size_t{1} << 20;  // One key, string or number.

  // The source must outlive the reader.
  explicit JsonReader(ByteSource* source) : source_(source) {}

  //   INVALID_ARGUMENT  not JSON, too deep, or a text too long; the message names the line.
  //   others            as the source.
  absl::Status Next(JsonToken* token);
  // The text of a key or string, unescaped; that of a number, as it is written.
  const std::string& text() const { return text_; }
  // Reads to the end of the value that began with `token`.
  absl::Status SkipValue(JsonToken token);

  uint64_t line() const { return line_; }  // From 1.

 private:
  enum class Expect { kValue, kFirstKey, kKey, kColon, kFirstElement, kCommaOrEnd, kNothing };

  int Peek();  // The next byte, -1 at the end.
  void Advance();
  int PeekPastSpace();
  absl::Status Malformed(absl::string_view what);
  absl::Status ReadValue(JsonToken* token);
  absl::Status ReadString();
  absl::Status ReadEscape();
  absl::Status ReadCodeUnit(uint32_t* unit);
  absl::Status ReadNumber();
  absl::Status ReadWord(JsonToken* token);
  absl::Status Open(char bracket);
  absl::Status Close(int bracket, JsonToken* token);
  void AfterValue();

  ByteSource* const source_;
  std::string buffer_;
  size_t at_ = 0;
  bool at_end_ = false;
  uint64_t line_ = 1;
  std::vector<char> open_;  // '{' or '['.
  Expect expect_ = Expect::kValue;
  std::string text_;
};

// An object whose members are few, as a list. Objects within it are flattened: {"a": {"b": 1}} has
// the member "a/b". Lists are members of kind kBeginArray without a text.
struct JsonMember {
  std::string name;
  JsonToken kind = JsonToken::kNull;
  std::string text;
};
class FlatObject {
 public:
  static constexpr size_t kMaxMembers = 20'000;
  static constexpr size_t kMaxBytes = size_t{8} << 20;

  // Reads the object whose kBeginObject was the last token.
  //   INVALID_ARGUMENT  as JsonReader, or too many members.
  absl::Status Read(JsonReader* reader);
  // Reads all of `text`, which must be one object.
  absl::Status Parse(absl::string_view text);

  const std::vector<JsonMember>& members() const { return members_; }
  // The last member of that name; null if there is none.
  const JsonMember* Find(absl::string_view name) const;

 private:
  std::vector<JsonMember> members_;
};

}  // namespace tacho::importer
