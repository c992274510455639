#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/config/config_field.h"
#include "proto/config/profile_defaults.h"
#include "proto/config/yaml_config.h"

namespace tacho::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kIndent = 2;
constexpr size_t kCommentWidth = 98;  // Columns; longer help continues on the next line.

// Whether YAML surely reads `text` back as the same text without quotes. False in cases of doubt:
// quotes never hurt.
bool IsPlain(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (text.empty() || lower == "null" || text.back() == ':') return false;
  if (!absl::ascii_isalnum(static_cast<unsigned char>(text.front())) && text.front() != '/') {
    return false;
  }
  for (const char c : text) {
    const bool is_safe = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                         absl::string_view("_./:-").find(c) != absl::string_view::npos;
    if (!is_safe) return false;
  }
  return true;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

std::string ScalarText(const Message& message, const FieldDescriptor& field, int index) {
  const std::string text = FormatField(message, field, index);
  const bool is_string = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return is_string && !IsPlain(text) ? Quoted(text) : text;
}

// "What it does. Default 10m, at least 1s, at most 6h."
std::string HelpOf(const FieldDescriptor& field) {
  const v1::Key& key = KeyOf(field);
  std::vector<std::string> facts;
  if (!key.default_value().empty()) facts.push_back(absl::StrCat("default ", key.default_value()));
  for (const char* profile : {"fast", "quiet"}) {
    const std::string& text = ProfileDefault(field, profile);
    if (!text.empty()) facts.push_back(absl::StrCat(text, " in profile ", profile));
  }
  if (key.default_value().empty() && key.required()) facts.push_back("required");
  if (!key.min().empty()) facts.push_back(absl::StrCat("at least ", key.min()));
  if (!key.max().empty()) facts.push_back(absl::StrCat("at most ", key.max()));
  if (key.one_of_size() > 0) facts.push_back(absl::StrJoin(key.one_of(), " | "));
  if (key.reloadable()) facts.push_back("reloaded on SIGHUP");
  if (facts.empty()) return key.help();
  return absl::StrCat(key.help(), " (", absl::StrJoin(facts, "; "), ")");
}

class Printer {
 public:
  std::string Take() { return std::move(out_); }

  void PrintMessage(const Message& message, size_t indent) {
    const Descriptor& type = *message.GetDescriptor();
    const FieldDescriptor* const list = GivenListOf(type);
    if (list == nullptr) {
      for (int i = 0; i < type.field_count(); ++i) PrintField(message, *type.field(i), indent);
      return;
    }
    const Section outer = std::exchange(section_, {.profiled = true, .given = {}, .path = {}});
    for (int i = 0; i < message.GetReflection()->FieldSize(message, list); ++i) {
      section_.given.insert(message.GetReflection()->GetRepeatedString(message, list, i));
    }
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i) != list) PrintField(message, *type.field(i), indent);
    }
    section_ = outer;
  }

 private:
  // The innermost message with a list of given keys, and the message of it that is being printed.
  struct Section {
    bool profiled = false;
    std::set<std::string> given;
    std::vector<std::string> path;
  };

  // Whether the value is left to the profile: read back, the key must not be a given one.
  bool LeftToProfile(const Message& message, const FieldDescriptor& field) const {
    const v1::Key& key = KeyOf(field);
    if (!section_.profiled || (key.fast().empty() && key.quiet().empty())) return false;
    std::vector<std::string> path = section_.path;
    path.push_back(field.name());
    if (section_.given.contains(absl::StrJoin(path, "."))) return false;
    const std::unique_ptr<Message> fresh(message.New());
    return SetFromText(key.default_value(), /*quoted=*/false, field, fresh.get()).ok() &&
           FormatField(message, field, 0) == FormatField(*fresh, field, 0);
  }

  void PrintField(const Message& message, const FieldDescriptor& field, size_t indent) {
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_message && indent == 0 && !out_.empty()) out_.push_back('\n');
    Comment(HelpOf(field), indent);
    if (field.is_map()) return PrintMap(message, field, indent);
    if (field.is_repeated()) return PrintList(message, field, indent);
    if (is_message) {
      Line(indent, field.name(), ":");
      section_.path.push_back(field.name());
      PrintMessage(message.GetReflection()->GetMessage(message, &field), indent + kIndent);
      return section_.path.pop_back();
    }
    Line(indent, LeftToProfile(message, field) ? "# " : "", field.name(), ": ",
         ScalarText(message, field, 0));
  }

  void PrintMap(const Message& message, const FieldDescriptor& field, size_t indent) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const Descriptor& entry_type = *field.message_type();
    Line(indent, field.name(), size == 0 ? ": {}" : ":");
    for (int i = 0; i < size; ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      Line(indent + kIndent, ScalarText(entry, *entry_type.map_key(), 0), ": ",
           ScalarText(entry, *entry_type.map_value(), 0));
    }
  }

  void PrintList(const Message& message, const FieldDescriptor& field, size_t indent) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (size == 0 && is_message) CommentKeys(*field.message_type(), indent);
    Line(indent, field.name(), size == 0 ? ": []" : ":");
    for (int i = 0; i < size; ++i) {
      if (is_message) {
        Line(indent + kIndent, "-");
        PrintMessage(reflection.GetRepeatedMessage(message, &field, i), indent + 2 * kIndent);
      } else {
        Line(indent + kIndent, "- ", ScalarText(message, field, i));
      }
    }
  }

  // Lists the keys that an element may have. An empty list has no example to learn them from.
  void CommentKeys(const Descriptor& type, size_t indent) {
    Comment("Each element has:", indent);
    for (int i = 0; i < type.field_count(); ++i) {
      if (KeyOf(*type.field(i)).given()) continue;
      Comment(absl::StrCat("  ", type.field(i)->name(), ": ", HelpOf(*type.field(i))), indent);
    }
  }

  void Comment(absl::string_view help, size_t indent) {
    std::string line = std::string(indent, ' ') + "#";
    const size_t empty = line.size();
    for (const absl::string_view word : absl::StrSplit(help, ' ')) {
      if (line.size() > empty && line.size() + 1 + word.size() > kCommentWidth) {
        Line(0, line);
        line.resize(empty);
      }
      absl::StrAppend(&line, " ", word);
    }
    if (line.size() > empty) Line(0, line);
  }

  template <typename... Parts>
  void Line(size_t indent, const Parts&... parts) {
    absl::StrAppend(&out_, std::string(indent, ' '), parts..., "\n");
  }

  std::string out_;
  Section section_;
};

}  // namespace

std::string PrintYaml(const Message& config) {
  Printer printer;
  printer.PrintMessage(config, 0);
  return printer.Take();
}

}  // namespace tacho::config
