#include "tests/proto/compatibility.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::proto_test {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::EnumValueDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorSet;
using google::protobuf::MethodDescriptorProto;
using google::protobuf::ServiceDescriptorProto;

// Everything of a set by its full name.
struct Index {
  std::map<std::string, const DescriptorProto*> messages;
  std::map<std::string, const EnumDescriptorProto*> enums;
  std::map<std::string, const ServiceDescriptorProto*> services;
};

void AddMessage(const std::string& scope, const DescriptorProto& message, Index* index) {
  const std::string name = absl::StrCat(scope, ".", message.name());
  index->messages[name] = &message;
  for (const auto& nested : message.nested_type()) AddMessage(name, nested, index);
  for (const auto& nested : message.enum_type()) {
    index->enums[absl::StrCat(name, ".", nested.name())] = &nested;
  }
}

Index IndexOf(const FileDescriptorSet& set) {
  Index index;
  for (const auto& file : set.file()) {
    for (const auto& message : file.message_type()) AddMessage(file.package(), message, &index);
    for (const auto& type : file.enum_type()) {
      index.enums[absl::StrCat(file.package(), ".", type.name())] = &type;
    }
    for (const auto& service : file.service()) {
      index.services[absl::StrCat(file.package(), ".", service.name())] = &service;
    }
  }
  return index;
}

// Messages exclude the end of a reserved range, enums include it.
bool IsReserved(const DescriptorProto& message, int32_t number) {
  for (const auto& range : message.reserved_range()) {
    if (range.start() <= number && number < range.end()) return true;
  }
  return false;
}

bool IsReserved(const EnumDescriptorProto& type, int32_t number) {
  for (const auto& range : type.reserved_range()) {
    if (range.start() <= number && number <= range.end()) return true;
  }
  return false;
}

template <typename Type>
bool IsNameReserved(const Type& type, const std::string& name) {
  for (const std::string& reserved : type.reserved_name()) {
    if (reserved == name) return true;
  }
  return false;
}

// The oneof that the source names; "" for none and for the one that `optional` makes.
std::string OneofOf(const DescriptorProto& message, const FieldDescriptorProto& field) {
  if (!field.has_oneof_index() || field.proto3_optional()) return "";
  return message.oneof_decl(field.oneof_index()).name();
}

class Comparison {
 public:
  Comparison(const FileDescriptorSet& before, const FileDescriptorSet& now)
      : before_(IndexOf(before)), now_(IndexOf(now)) {}

  std::vector<std::string> Run() {
    ForEach(before_.messages, now_.messages, &Comparison::CompareMessages);
    ForEach(before_.enums, now_.enums, &Comparison::CompareEnums);
    ForEach(before_.services, now_.services, &Comparison::CompareServices);
    return std::move(breaks_);
  }

 private:
  template <typename Type, typename Compare>
  void ForEach(const std::map<std::string, const Type*>& before,
               const std::map<std::string, const Type*>& now, Compare compare) {
    for (const auto& [name, type] : before) {
      const auto found = now.find(name);
      if (found == now.end()) {
        Break(name, "was removed or renamed");
      } else {
        (this->*compare)(name, *type, *found->second);
      }
    }
  }

  void CompareMessages(const std::string& name, const DescriptorProto& before,
                       const DescriptorProto& now) {
    std::map<int32_t, const FieldDescriptorProto*> fields;
    for (const auto& field : now.field()) fields[field.number()] = &field;
    for (const auto& field : before.field()) {
      const std::string field_name = absl::StrCat(name, ".", field.name());
      const auto found = fields.find(field.number());
      if (found == fields.end()) {
        CheckRemoved(field_name, field.number(), field.name(), now);
        continue;
      }
      CompareFields(field_name, field, *found->second);
      if (OneofOf(before, field) != OneofOf(now, *found->second)) {
        Break(field_name, "moved into or out of a oneof");
      }
    }
    CheckReservations(name, before, now);
    for (const auto& range : before.reserved_range()) {
      if (!IsReserved(now, range.start()) || !IsReserved(now, range.end() - 1)) {
        Break(name, absl::StrCat("gave up reserved numbers from ", range.start()));
      }
    }
  }

  void CompareFields(const std::string& name, const FieldDescriptorProto& before,
                     const FieldDescriptorProto& now) {
    if (before.name() != now.name()) {
      Break(name, absl::StrCat("was renamed to ", now.name(), ", or its number was used again"));
    }
    if (before.type() != now.type() || before.type_name() != now.type_name()) {
      Break(name, "changed its type");
    }
    if (before.label() != now.label() || before.proto3_optional() != now.proto3_optional()) {
      Break(name, "changed its label");
    }
    // Unset is packed in proto3.
    const auto is_packed = [](const FieldDescriptorProto& field) {
      return !field.options().has_packed() || field.options().packed();
    };
    if (is_packed(before) != is_packed(now)) Break(name, "changed its packing");
  }

  void CompareEnums(const std::string& name, const EnumDescriptorProto& before,
                    const EnumDescriptorProto& now) {
    std::map<int32_t, const EnumValueDescriptorProto*> values;
    for (const auto& value : now.value()) values[value.number()] = &value;
    for (const auto& value : before.value()) {
      const std::string value_name = absl::StrCat(name, ".", value.name());
      const auto found = values.find(value.number());
      if (found == values.end()) {
        CheckRemoved(value_name, value.number(), value.name(), now);
      } else if (found->second->name() != value.name()) {
        Break(value_name, absl::StrCat("was renamed to ", found->second->name(),
                                       ", or its number was used again"));
      }
    }
    CheckReservations(name, before, now);
    for (const auto& range : before.reserved_range()) {
      if (!IsReserved(now, range.start()) || !IsReserved(now, range.end())) {
        Break(name, absl::StrCat("gave up reserved numbers from ", range.start()));
      }
    }
  }

  void CompareServices(const std::string& name, const ServiceDescriptorProto& before,
                       const ServiceDescriptorProto& now) {
    std::map<std::string, const MethodDescriptorProto*> methods;
    for (const auto& method : now.method()) methods[method.name()] = &method;
    for (const auto& method : before.method()) {
      const std::string method_name = absl::StrCat(name, ".", method.name());
      const auto found = methods.find(method.name());
      if (found == methods.end()) {
        Break(method_name, "was removed or renamed");
        continue;
      }
      const MethodDescriptorProto& other = *found->second;
      if (method.input_type() != other.input_type() ||
          method.output_type() != other.output_type()) {
        Break(method_name, "changed its request or response");
      }
      if (method.client_streaming() != other.client_streaming() ||
          method.server_streaming() != other.server_streaming()) {
        Break(method_name, "changed its streaming");
      }
    }
  }

  template <typename Type>
  void CheckRemoved(const std::string& full_name, int32_t number, const std::string& name,
                    const Type& now) {
    if (!IsReserved(now, number)) {
      Break(full_name, absl::StrCat("was removed and its number ", number, " is not reserved"));
    }
    if (!IsNameReserved(now, name)) Break(full_name, "was removed and its name is not reserved");
  }

  template <typename Type>
  void CheckReservations(const std::string& name, const Type& before, const Type& now) {
    for (const std::string& reserved : before.reserved_name()) {
      if (!IsNameReserved(now, reserved)) {
        Break(name, absl::StrCat("gave up the reserved name ", reserved));
      }
    }
  }

  void Break(const std::string& name, const std::string& what) {
    breaks_.push_back(absl::StrCat(name, " ", what));
  }

  const Index before_;
  const Index now_;
  std::vector<std::string> breaks_;
};

}  // namespace

std::vector<std::string> FindBreaks(const FileDescriptorSet& before, const FileDescriptorSet& now) {
  return Comparison(before, now).Run();
}

}  // namespace tacho::proto_test
