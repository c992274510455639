#include "proto/config/config_diff.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/config/config_field.h"

namespace tacho::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

bool FieldEquals(const Message& before, const Message& after, const FieldDescriptor& field) {
  MessageDifferencer differencer;
  return differencer.CompareWithFields(before, after, {&field}, {&field});
}

void Collect(const Message& before, const Message& after, const std::string& prefix,
             std::vector<std::string>* keys) {
  const google::protobuf::Descriptor& type = *before.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (KeyOf(field).reloadable()) continue;
    const std::string path = absl::StrCat(prefix, field.name());
    const bool is_message =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated();
    if (is_message) {
      Collect(before.GetReflection()->GetMessage(before, &field),
              after.GetReflection()->GetMessage(after, &field), absl::StrCat(path, "."), keys);
    } else if (!FieldEquals(before, after, field)) {
      keys->push_back(path);
    }
  }
}

}  // namespace

std::vector<std::string> KeysThatNeedRestart(const Message& before, const Message& after) {
  std::vector<std::string> keys;
  Collect(before, after, "", &keys);
  return keys;
}

}  // namespace tacho::config
