// Reads JSON objects strictly: every member that is asked for must be there, and no other. Whoever
// changes a text and writes it back would lose what it did not understand.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rapidjson/document.h"

namespace tacho::storage {

// One object. After the first mistake everything read is 0 or empty. Call status() at the end.
class JsonMembers {
 public:
  // `where` names the object in messages. Both must outlive this.
  JsonMembers(const rapidjson::Value& object, absl::string_view where)
      : object_(object), where_(where) {
    if (!object.IsObject()) Fail("", "is no object");
  }

  uint64_t Number(const char* name, uint64_t most) {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr) return 0;
    if (value->IsUint64() && value->GetUint64() <= most) return value->GetUint64();
    Fail(name, absl::StrCat("is no whole number from 0 to ", most));
    return 0;
  }

  std::string Text(const char* name) {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr) return {};
    if (value->IsString()) return {value->GetString(), value->GetStringLength()};
    Fail(name, "is no text");
    return {};
  }

  // Any 64 bits, as HexOf() writes them: many readers of JSON keep only 53 bits of a number.
  uint64_t Hex(const char* name) {
    uint64_t number = 0;
    const std::string text = Text(name);
    if (!status_.ok()) return 0;
    if (absl::SimpleHexAtoi(text, &number) && HexOf(number) == text) return number;
    Fail(name, "is not sixteen hexadecimal digits");
    return 0;
  }
  static std::string HexOf(uint64_t number) {
    return absl::StrCat(absl::Hex(number, absl::kZeroPad16));
  }

  // Bytes in base64.
  std::string Bytes(const char* name) {
    std::string bytes;
    const std::string text = Text(name);
    // The decoder forgives spaces and missing padding. What is written has neither.
    if (!absl::Base64Unescape(text, &bytes) || absl::Base64Escape(bytes) != text) {
      Fail(name, "is no base64");
      bytes.clear();
    }
    return bytes;
  }

  // An array or an object; null after a mistake.
  const rapidjson::Value* Array(const char* name) {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr || value->IsArray()) return value;
    Fail(name, "is no array");
    return nullptr;
  }
  const rapidjson::Value* Object(const char* name) {
    const rapidjson::Value* value = Find(name);
    if (value == nullptr || value->IsObject()) return value;
    Fail(name, "is no object");
    return nullptr;
  }

  // Whether the member is there. Then it is read next.
  bool Has(const char* name) const { return status_.ok() && object_.HasMember(name); }

  // DATA_LOSS with the first mistake, or with "there is more in it".
  absl::Status status() {
    // A name that is there twice is read once, so the counts differ then, too.
    if (status_.ok() && object_.MemberCount() != read_) {
      Fail("", "has a member that this format does not have, or one twice");
    }
    return status_;
  }

 private:
  const rapidjson::Value* Find(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.FindMember(name);
    if (found == object_.MemberEnd()) {
      Fail(name, "is missing");
      return nullptr;
    }
    ++read_;
    return &found->value;
  }

  void Fail(absl::string_view name, absl::string_view what) {
    if (!status_.ok()) return;
    status_ =
        absl::DataLossError(name.empty() ? absl::StrCat(where_, " ", what)
                                         : absl::StrCat("'", name, "' of ", where_, " ", what));
  }

  const rapidjson::Value& object_;
  const absl::string_view where_;
  absl::Status status_;
  size_t read_ = 0;
};

}  // namespace tacho::storage
