#include "proto/config/profile_defaults.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/config/config_field.h"

namespace tacho::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void UseBelow(absl::string_view profile, const std::string& prefix,
              const std::set<std::string>& given, Message* message) {
  const Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) continue;
    const std::string path = absl::StrCat(prefix, field.name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      UseBelow(profile, absl::StrCat(path, "."), given,
               message->GetReflection()->MutableMessage(message, &field));
      continue;
    }
    const std::string& text = ProfileDefault(field, profile);
    if (text.empty() || given.contains(path)) continue;
    TACHO_CHECK(SetFromText(text, /*quoted=*/false, field, message).ok());
  }
}

}  // namespace

const std::string& ProfileDefault(const FieldDescriptor& field, absl::string_view profile) {
  const v1::Key& key = KeyOf(field);
  static const std::string* const kNone = new std::string();
  if (profile == "fast") return key.fast();
  return profile == "quiet" ? key.quiet() : *kNone;
}

const FieldDescriptor* GivenListOf(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (KeyOf(*type.field(i)).given()) return type.field(i);
  }
  return nullptr;
}

void UseProfile(absl::string_view profile, Message* section) {
  const FieldDescriptor* const list = GivenListOf(*section->GetDescriptor());
  TACHO_CHECK(list != nullptr);
  const google::protobuf::Reflection& reflection = *section->GetReflection();
  std::set<std::string> given;
  for (int i = 0; i < reflection.FieldSize(*section, list); ++i) {
    given.insert(reflection.GetRepeatedString(*section, list, i));
  }
  UseBelow(profile, "", given, section);
}

}  // namespace tacho::config
