// Reads JSON as a stream of tokens, because documents may be larger than memory, and errors have
// to name a line.
#include "client/import/json_reader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/import/text_source.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

bool IsNumberByte(int c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '.' ||
         c == 'e' || c == 'E';
}

}  // namespace

int JsonReader::Peek() {
  if (at_ == buffer_.size() && !at_end_) {
    buffer_.resize(kReadBytes);
    buffer_.resize(source_->Read(buffer_.data(), buffer_.size()));
    at_ = 0;
    at_end_ = buffer_.empty();
  }
  return at_end_ ? -1 : static_cast<unsigned char>(buffer_[at_]);
}

void JsonReader::Advance() {
  if (buffer_[at_] == '\n') ++line_;
  ++at_;
}

int JsonReader::PeekPastSpace() {
  int c = Peek();
  while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
    Advance();
    c = Peek();
  }
  return c;
}

absl::Status JsonReader::Malformed(absl::string_view what) {
  if (!source_->status().ok()) return source_->status();
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line_, ": ", Peek() < 0 ? "the JSON ends too early: " : "", what));
}

absl::Status JsonReader::Next(JsonToken* token) {
  const int c = PeekPastSpace();
  switch (expect_) {
    case Expect::kNothing:
      *token = JsonToken::kEnd;
      return c < 0 && source_->status().ok() ? absl::OkStatus()
                                             : Malformed("something follows the JSON value");
    case Expect::kFirstKey:
      if (c == '}') return Close(c, token);
      [[fallthrough]];
    case Expect::kKey:
      if (c != '"') return Malformed("a name in quotes is expected");
      TACHO_RETURN_IF_ERROR(ReadString());
      if (PeekPastSpace() != ':') return Malformed("':' is expected");
      Advance();
      *token = JsonToken::kKey;
      expect_ = Expect::kValue;
      return absl::OkStatus();
    case Expect::kFirstElement:
      if (c == ']') return Close(c, token);
      [[fallthrough]];
    case Expect::kValue:
      return ReadValue(token);
    case Expect::kCommaOrEnd:
      if (c == '}' || c == ']') return Close(c, token);
      if (c != ',') return Malformed("',' or the end of a list or object is expected");
      Advance();
      expect_ = open_.back() == '{' ? Expect::kKey : Expect::kValue;
      return Next(token);
    case Expect::kColon:
      break;
  }
  return Malformed("a value is expected");
}

absl::Status JsonReader::ReadValue(JsonToken* token) {
  const int c = PeekPastSpace();
  if (c == '{' || c == '[') {
    *token = c == '{' ? JsonToken::kBeginObject : JsonToken::kBeginArray;
    return Open(static_cast<char>(c));
  }
  absl::Status status;
  if (c == '"') {
    *token = JsonToken::kString;
    status = ReadString();
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    *token = JsonToken::kNumber;
    status = ReadNumber();
  } else {
    status = ReadWord(token);
  }
  if (status.ok()) AfterValue();
  return status;
}

absl::Status JsonReader::Open(char bracket) {
  if (open_.size() == kMaxDepth) {
    return Malformed(absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
  }
  Advance();
  open_.push_back(bracket);
  expect_ = bracket == '{' ? Expect::kFirstKey : Expect::kFirstElement;
  return absl::OkStatus();
}

absl::Status JsonReader::Close(int bracket, JsonToken* token) {
  const bool object = bracket == '}';
  if (open_.empty() || (open_.back() == '{') != object) {
    return Malformed("a bracket closes what it did not open");
  }
  Advance();
  open_.pop_back();
  *token = object ? JsonToken::kEndObject : JsonToken::kEndArray;
  AfterValue();
  return absl::OkStatus();
}

void JsonReader::AfterValue() { expect_ = open_.empty() ? Expect::kNothing : Expect::kCommaOrEnd; }

absl::Status JsonReader::ReadString() {
  text_.clear();
  Advance();
  while (true) {
    const int c = Peek();
    if (c < 0) return Malformed("a string has no end");
    if (text_.size() > kMaxTextBytes) return Malformed("a string is longer than 1 MiB");
    if (c == '"') break;
    if (c == '\\') {
      TACHO_RETURN_IF_ERROR(ReadEscape());
      continue;
    }
    if (c < 0x20 && c != '\t') return Malformed("a control character in a string");
    text_.push_back(static_cast<char>(c));
    Advance();
  }
  Advance();
  return absl::OkStatus();
}

absl::Status JsonReader::ReadEscape() {
  Advance();
  const int c = Peek();
  if (c < 0) return Malformed("a string has no end");
  static constexpr absl::string_view kFrom = "\"\\/bfnrt";
  static constexpr absl::string_view kTo = "\"\\/\b\f\n\r\t";
  const size_t simple = kFrom.find(static_cast<char>(c));
  Advance();
  if (simple != absl::string_view::npos) {
    text_.push_back(kTo[simple]);
    return absl::OkStatus();
  }
  if (c != 'u') return Malformed("an unknown escape in a string");
  uint32_t code = 0;
  TACHO_RETURN_IF_ERROR(ReadCodeUnit(&code));
  if (code >= 0xD800 && code < 0xDC00) {
    uint32_t low = 0;
    if (Peek() != '\\') return Malformed("half of a surrogate pair");
    Advance();
    if (Peek() != 'u') return Malformed("half of a surrogate pair");
    Advance();
    TACHO_RETURN_IF_ERROR(ReadCodeUnit(&low));
    if (low < 0xDC00 || low > 0xDFFF) return Malformed("half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    return Malformed("half of a surrogate pair");
  }
  AppendUtf8(code, &text_);
  return absl::OkStatus();
}

absl::Status JsonReader::ReadCodeUnit(uint32_t* unit) {
  *unit = 0;
  for (int i = 0; i < 4; ++i) {
    const int c = Peek();
    if (c < 0 || !absl::ascii_isxdigit(static_cast<unsigned char>(c))) {
      return Malformed("four hexadecimal digits are expected behind \\u");
    }
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    *unit = *unit << 4 | static_cast<uint32_t>(digit);
    Advance();
  }
  return absl::OkStatus();
}

// Checks only which characters may stand in a number; the caller converts it.
absl::Status JsonReader::ReadNumber() {
  text_.clear();
  bool digits = false;
  for (int c = Peek(); c >= 0 && IsNumberByte(c); c = Peek()) {
    if (text_.size() > kMaxTextBytes) return Malformed("a number is longer than 1 MiB");
    digits = digits || absl::ascii_isdigit(static_cast<unsigned char>(c));
    text_.push_back(static_cast<char>(c));
    Advance();
  }
  if (digits) return absl::OkStatus();
  if (text_ != "-" || Peek() != 'I') return Malformed("a number without digits");
  JsonToken token;
  TACHO_RETURN_IF_ERROR(ReadWord(&token));
  text_ = "-Infinity";
  return token == JsonToken::kNumber ? absl::OkStatus() : Malformed("a number without digits");
}

absl::Status JsonReader::ReadWord(JsonToken* token) {
  text_.clear();
  constexpr size_t kLongest = 8;
  for (int c = Peek(); c >= 0 && absl::ascii_isalpha(static_cast<unsigned char>(c)); c = Peek()) {
    if (text_.size() > kLongest) break;
    text_.push_back(static_cast<char>(c));
    Advance();
  }
  if (text_ == "true") {
    *token = JsonToken::kTrue;
  } else if (text_ == "false") {
    *token = JsonToken::kFalse;
  } else if (text_ == "null") {
    *token = JsonToken::kNull;
  } else if (text_ == "NaN" || text_ == "Infinity") {
    *token = JsonToken::kNumber;
  } else {
    return Malformed("a value is expected");
  }
  return absl::OkStatus();
}

absl::Status JsonReader::SkipValue(JsonToken token) {
  if (token != JsonToken::kBeginObject && token != JsonToken::kBeginArray) return absl::OkStatus();
  const size_t depth = open_.size() - 1;
  while (open_.size() > depth) {
    if (absl::Status status = Next(&token); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FlatObject::Read(JsonReader* reader) {
  members_.clear();
  size_t bytes = 0;
  std::vector<std::string> prefixes = {""};
  std::string name;
  while (!prefixes.empty()) {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    if (token == JsonToken::kEndObject) {
      prefixes.pop_back();
      continue;
    }
    if (token == JsonToken::kKey) {
      name = absl::StrCat(prefixes.back(), reader->text());
      continue;
    }
    if (token == JsonToken::kBeginObject) {
      prefixes.push_back(absl::StrCat(name, "/"));
      bytes += name.size();
    } else {
      const bool has_text = token == JsonToken::kString || token == JsonToken::kNumber;
      members_.push_back({name, token, has_text ? reader->text() : std::string()});
      bytes += name.size() + members_.back().text.size();
      if (absl::Status status = reader->SkipValue(token); !status.ok()) return status;
    }
    if (members_.size() > kMaxMembers || bytes > kMaxBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", reader->line(), ": an object has more than ", kMaxMembers, " members or 8 MiB"));
    }
  }
  return absl::OkStatus();
}

absl::Status FlatObject::Parse(absl::string_view text) {
  StringSource source(text);
  JsonReader reader(&source);
  JsonToken token;
  TACHO_RETURN_IF_ERROR(reader.Next(&token));
  if (token != JsonToken::kBeginObject) {
    return absl::InvalidArgumentError("line 1: an object is expected: {\"name\": value, …}");
  }
  TACHO_RETURN_IF_ERROR(Read(&reader));
  return reader.Next(&token);
}

const JsonMember* FlatObject::Find(absl::string_view name) const {
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    if (member->name == name) return &*member;
  }
  return nullptr;
}

}  // namespace tacho::importer
