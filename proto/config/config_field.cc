#include "proto/config/config_field.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/config/config_value.h"

namespace tacho::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

using Value = std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, double, std::string>;

template <typename T>
absl::StatusOr<Value> Widened(absl::StatusOr<T> parsed) {
  if (!parsed.ok()) return parsed.status();
  return Value(*std::move(parsed));
}

template <typename T>
absl::StatusOr<Value> ParseInteger(absl::string_view text) {
  T number = 0;
  if (absl::SimpleAtoi(text, &number)) return Value(number);
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a whole number from ",
                                                 std::numeric_limits<T>::min(), " to ",
                                                 std::numeric_limits<T>::max()));
}

absl::StatusOr<Value> ParseNumber(absl::string_view text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return Value(number);
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a finite number"));
}

absl::StatusOr<Value> ParseBool(absl::string_view text) {
  if (text == "true" || text == "false") return Value(text == "true");
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not true or false"));
}

absl::StatusOr<Value> ParseString(absl::string_view text, const v1::Key& key) {
  if (text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("must not contain a NUL byte");
  }
  // yaml-cpp makes single bytes of the escapes \N and \_.
  if (!IsUtf8(text)) return absl::InvalidArgumentError("is not UTF-8");
  if (key.one_of_size() > 0 && !absl::c_linear_search(key.one_of(), text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not one of ", absl::StrJoin(key.one_of(), ", ")));
  }
  // An empty address or expression is "none" unless the key is required.
  absl::Status syntax;
  if (key.kind() == v1::KIND_ADDRESS && !text.empty()) syntax = CheckAddress(text);
  if (key.kind() == v1::KIND_REGEX) syntax = CheckRegex(text);
  if (!syntax.ok()) return syntax;
  return Value(std::string(text));
}

absl::StatusOr<Value> Parse(absl::string_view text, const FieldDescriptor& field) {
  const v1::Key& key = KeyOf(field);
  if (key.kind() == v1::KIND_DURATION) return Widened(ParseDuration(text));
  if (key.kind() == v1::KIND_BYTES) return Widened(ParseBytes(text));
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return ParseBool(text);
    case FieldDescriptor::CPPTYPE_INT32:
      return ParseInteger<int32_t>(text);
    case FieldDescriptor::CPPTYPE_UINT32:
      return ParseInteger<uint32_t>(text);
    case FieldDescriptor::CPPTYPE_INT64:
      return ParseInteger<int64_t>(text);
    case FieldDescriptor::CPPTYPE_UINT64:
      return ParseInteger<uint64_t>(text);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ParseNumber(text);
    case FieldDescriptor::CPPTYPE_STRING:
      return ParseString(text, key);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("the schema uses a type that no key can have: ", field.type_name()));
  }
}

// Both bounds are in the syntax of the file, so they are parsed like the value itself.
absl::Status CheckBounds(const Value& value, absl::string_view text, const FieldDescriptor& field) {
  const v1::Key& key = KeyOf(field);
  if (!key.min().empty()) {
    const absl::StatusOr<Value> min = Parse(key.min(), field);
    if (!min.ok()) return min.status();
    if (value < *min) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, " is too small; expected at least ", key.min()));
    }
  }
  if (!key.max().empty()) {
    const absl::StatusOr<Value> max = Parse(key.max(), field);
    if (!max.ok()) return max.status();
    if (*max < value) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, " is too large; expected at most ", key.max()));
    }
  }
  return absl::OkStatus();
}

// Overloads of the setters of Reflection, so that one std::visit serves every type.
struct Setter {
  const FieldDescriptor& field;
  Message* message;

  void operator()(bool v) const { Put(v, &Reflection::SetBool, &Reflection::AddBool); }
  void operator()(int32_t v) const { Put(v, &Reflection::SetInt32, &Reflection::AddInt32); }
  void operator()(uint32_t v) const { Put(v, &Reflection::SetUInt32, &Reflection::AddUInt32); }
  void operator()(int64_t v) const { Put(v, &Reflection::SetInt64, &Reflection::AddInt64); }
  void operator()(uint64_t v) const { Put(v, &Reflection::SetUInt64, &Reflection::AddUInt64); }
  void operator()(double v) const { Put(v, &Reflection::SetDouble, &Reflection::AddDouble); }
  void operator()(const std::string& v) const {
    Put(v, &Reflection::SetString, &Reflection::AddString);
  }

 private:
  template <typename T, typename Member>
  void Put(T value, Member set, Member add) const {
    const Reflection& reflection = *message->GetReflection();
    (reflection.*(field.is_repeated() ? add : set))(message, &field, std::move(value));
  }
};

bool IsNumberOrBool(const FieldDescriptor& field) {
  return field.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
         KeyOf(field).kind() == v1::KIND_PLAIN;
}

std::string KindName(const FieldDescriptor& field) {
  switch (KeyOf(field).kind()) {
    case v1::KIND_DURATION:
      return "a duration such as 90s, 10m, 1h30m, 30d";
    case v1::KIND_BYTES:
      return "a number of bytes such as 4096, 64MiB, 2GB";
    case v1::KIND_ADDRESS:
      return "an address, host:port or [v6]:port";
    case v1::KIND_PATH:
      return "a path";
    case v1::KIND_REGEX:
      return "a regular expression";
    default:
      break;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a mapping of keys";
    default:
      return "a whole number";
  }
}

}  // namespace

const v1::Key& KeyOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::key); }

absl::Status SetFromText(absl::string_view text, bool quoted, const FieldDescriptor& field,
                         Message* message) {
  if (quoted && IsNumberOrBool(field)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is a text; expected ", KindName(field), " without quotes"));
  }
  TACHO_ASSIGN_OR_RETURN(const Value value, Parse(text, field));
  TACHO_RETURN_IF_ERROR(CheckBounds(value, text, field));
  std::visit(Setter{field, message}, value);
  return absl::OkStatus();
}

std::string FormatField(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& r = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return field.is_repeated() ? (r.*repeated)(message, &field, index)
                               : (r.*single)(message, &field);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
      const bool is_duration = KeyOf(field).kind() == v1::KIND_DURATION;
      return is_duration ? FormatDuration(value) : absl::StrCat(value);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t value = get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
      const bool is_bytes = KeyOf(field).kind() == v1::KIND_BYTES;
      return is_bytes ? FormatBytes(value) : absl::StrCat(value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrFormat("%.17g", get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_STRING:
      return get(&Reflection::GetString, &Reflection::GetRepeatedString);
    default:
      return "";
  }
}

std::string ExpectedOf(const FieldDescriptor& field) {
  if (field.is_map()) return "a mapping of names to texts";
  if (field.is_repeated()) return absl::StrCat("a list, each element ", KindName(field));
  return KindName(field);
}

}  // namespace tacho::config
