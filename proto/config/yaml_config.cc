#include "proto/config/yaml_config.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/nearest.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/config/config_field.h"
#include "proto/config/config_value.h"
#include "proto/config/profile_defaults.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace tacho::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Enough to mend a file in one go; a file of another kind altogether would print thousands.
constexpr size_t kMaxMistakes = 50;

// A configuration is written by hand: what is larger is not one, and parsing it costs memory.
constexpr size_t kMaxFileBytes = 4 << 20;

// yaml-cpp counts lines from 0 and gives -1 where it does not know.
int LineOf(const YAML::Mark& mark) { return std::max(mark.line + 1, 1); }
int LineOf(const YAML::Node& node) { return LineOf(node.Mark()); }

// The line at which `map` has the key `name`; nullopt if it has none, or is no mapping.
std::optional<int> LineOfKey(const YAML::Node& map, absl::string_view name) {
  if (!map.IsMap()) return std::nullopt;
  for (const auto& entry : map) {
    if (entry.first.IsScalar() && entry.first.Scalar() == name) return LineOf(entry.first);
  }
  return std::nullopt;
}

// The first byte that YAML allows nowhere in a file (1.2, section 5.1), as far as it is ASCII;
// yaml-cpp takes some for the end of the text, or for another encoding. npos if there is none.
size_t FindUnprintable(absl::string_view text) {
  const auto* const found = std::find_if(text.begin(), text.end(), [](char c) {
    const bool is_space = c == '\t' || c == '\n' || c == '\r';
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && !is_space;
  });
  return found == text.end() ? absl::string_view::npos : found - text.begin();
}

bool IsQuoted(const YAML::Node& scalar) { return scalar.Tag() != "?"; }

std::string KindOf(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  if (node.IsNull()) return "nothing";
  return absl::StrCat("'", node.Scalar(), "'");
}

std::string Joined(absl::string_view path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

// "did you mean seal_age?" if a key of `type` is near `key`, else all its keys.
std::string Suggestion(absl::string_view key, const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) {
    if (!KeyOf(*type.field(i)).given()) names.push_back(type.field(i)->name());
  }
  if (const auto nearest = NearestNames(key, names, 1); !nearest.empty()) {
    return absl::StrCat("did you mean ", nearest.front(), "?");
  }
  return absl::StrCat("known here: ", absl::StrJoin(names, ", "));
}

class Mistakes {
 public:
  explicit Mistakes(absl::string_view file_name) : file_name_(file_name) {}

  void Add(int line, absl::string_view path, absl::string_view what) {
    const absl::string_view key = path.empty() ? "the file" : path;
    found_.emplace_back(line, absl::StrCat(file_name_, ":", line, ": ", key, ": ", what));
  }

  absl::Status ToStatus() {
    if (found_.empty()) return absl::OkStatus();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (size_t i = 0; i < std::min(found_.size(), kMaxMistakes); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : "\n", found_[i].second);
    }
    if (found_.size() > kMaxMistakes) {
      absl::StrAppend(&text, "\nand ", found_.size() - kMaxMistakes, " more");
    }
    return absl::InvalidArgumentError(text);
  }

 private:
  const std::string file_name_;
  std::vector<std::pair<int, std::string>> found_;
};

// Fills one message tree from one YAML document. A schema must not be recursive: every nested
// message exists, with its defaults, whether the file names it or not.
class Reader {
 public:
  explicit Reader(Mistakes* mistakes) : mistakes_(*mistakes) {}

  // `node` may be null (the file does not mention the message): defaults only. `line` is where
  // mistakes about what is missing are reported.
  void ReadMessage(const YAML::Node& node, int line, const std::string& path, Message* message) {
    if (!inheriting_) ApplyDefaults(line, path, message);
    std::set<const FieldDescriptor*> seen;
    std::vector<InheritingList> lists;
    if (node.IsMap()) {
      ReadKeys(node, path, message, &seen, &lists);
    } else if (!node.IsNull()) {
      mistakes_.Add(line, path, absl::StrCat("is ", KindOf(node), "; expected a mapping of keys"));
      return;
    }
    if (!inheriting_) ReadUnnamedMessages(line, path, seen, message);
    ListGiven(path, message);
    for (const InheritingList& list : lists) ReadInheritingList(list, message);
    CheckRequired(node, line, path, *message);
  }

 private:
  // A list whose elements begin as copies of the fields beside it, wherever those are in the file.
  struct InheritingList {
    YAML::Node node;
    int line = 0;
    std::string path;
    const FieldDescriptor* field = nullptr;
  };

  void ReadInheritingList(const InheritingList& list, Message* message) {
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    if (!list.node.IsSequence() && !list.node.IsNull()) {
      return WrongType(list.node, list.line, list.path, *list.field);
    }
    int index = 0;
    for (const YAML::Node& element : list.node) {
      Message* const added = reflection.AddMessage(message, list.field);
      ApplyAllDefaults(LineOf(element), list.path, added);
      CopyFieldsOfSameName(*message, added);
      CopyGiven(*message, added);
      inheriting_ = true;
      ReadMessage(element, LineOf(element), absl::StrCat(list.path, "[", index++, "]"), added);
      inheriting_ = false;
    }
  }

  // What the file gives beside the list, it gives for each element.
  static void CopyGiven(const Message& from, Message* to) {
    const FieldDescriptor* const source = GivenListOf(*from.GetDescriptor());
    const FieldDescriptor* const list = GivenListOf(*to->GetDescriptor());
    if (source == nullptr || list == nullptr) return;
    for (int i = 0; i < from.GetReflection()->FieldSize(from, source); ++i) {
      to->GetReflection()->AddString(to, list,
                                     from.GetReflection()->GetRepeatedString(from, source, i));
    }
  }

  // Adds the keys below `path` that the file gave so far, and that profiles have defaults for.
  void ListGiven(const std::string& path, Message* message) {
    const FieldDescriptor* const list = GivenListOf(*message->GetDescriptor());
    if (list == nullptr) return;
    const std::string prefix = path.empty() ? "" : absl::StrCat(path, ".");
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    std::set<std::string> listed;  // Those of its parent.
    for (int i = 0; i < reflection.FieldSize(*message, list); ++i) {
      listed.insert(reflection.GetRepeatedString(*message, list, i));
    }
    for (auto key = given_.lower_bound(prefix);
         key != given_.end() && absl::StartsWith(*key, prefix); ++key) {
      const std::string name = key->substr(prefix.size());
      if (!listed.contains(name)) reflection.AddString(message, list, name);
    }
  }

  static void CopyFieldsOfSameName(const Message& from, Message* to) {
    const Descriptor& type = *to->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const FieldDescriptor* source = from.GetDescriptor()->FindFieldByName(field.name());
      if (source == nullptr || source->is_repeated() || field.is_repeated()) continue;
      if (source->type() != field.type() || source->message_type() != field.message_type())
        continue;
      CopyField(from, *source, field, to);
    }
  }

  // `source` and `field` have the same type.
  static void CopyField(const Message& from, const FieldDescriptor& source,
                        const FieldDescriptor& field, Message* to) {
    const google::protobuf::Reflection& read = *from.GetReflection();
    const google::protobuf::Reflection& write = *to->GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return write.MutableMessage(to, &field)->CopyFrom(read.GetMessage(from, &source));
      case FieldDescriptor::CPPTYPE_STRING:
        return write.SetString(to, &field, read.GetString(from, &source));
      case FieldDescriptor::CPPTYPE_BOOL:
        return write.SetBool(to, &field, read.GetBool(from, &source));
      case FieldDescriptor::CPPTYPE_INT32:
        return write.SetInt32(to, &field, read.GetInt32(from, &source));
      case FieldDescriptor::CPPTYPE_INT64:
        return write.SetInt64(to, &field, read.GetInt64(from, &source));
      case FieldDescriptor::CPPTYPE_UINT32:
        return write.SetUInt32(to, &field, read.GetUInt32(from, &source));
      case FieldDescriptor::CPPTYPE_UINT64:
        return write.SetUInt64(to, &field, read.GetUInt64(from, &source));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return write.SetDouble(to, &field, read.GetDouble(from, &source));
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_ENUM:
        break;  // No key has one of these types.
    }
  }

  // Also sets the defaults of the messages within.
  void ApplyAllDefaults(int line, const std::string& path, Message* message) {
    ApplyDefaults(line, path, message);
    const Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.message_type() == nullptr || field.is_repeated()) continue;
      ApplyAllDefaults(line, Joined(path, field.name()),
                       message->GetReflection()->MutableMessage(message, &field));
    }
  }

  void ApplyDefaults(int line, const std::string& path, Message* message) {
    const Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const std::string& text = KeyOf(field).default_value();
      if (text.empty()) continue;
      std::vector<absl::string_view> elements = {text};
      if (field.is_repeated()) elements = absl::StrSplit(text, ',');
      for (const absl::string_view element : elements) {
        const absl::Status set = SetFromText(element, /*quoted=*/false, field, message);
        if (!set.ok()) mistakes_.Add(line, Joined(path, field.name()), set.message());
      }
    }
  }

  void ReadKeys(const YAML::Node& map, const std::string& path, Message* message,
                std::set<const FieldDescriptor*>* seen, std::vector<InheritingList>* lists) {
    const Descriptor& type = *message->GetDescriptor();
    for (const auto& entry : map) {
      const YAML::Node& key = entry.first;
      const int line = LineOf(key);
      if (!key.IsScalar()) {
        mistakes_.Add(line, path, absl::StrCat("has ", KindOf(key), " as a key; expected a name"));
        continue;
      }
      const FieldDescriptor* field = type.FindFieldByName(key.Scalar());
      const std::string key_path = Joined(path, key.Scalar());
      if (field == nullptr || KeyOf(*field).given()) {
        mistakes_.Add(line, key_path,
                      absl::StrCat("unknown key; ", Suggestion(key.Scalar(), type)));
      } else if (!seen->insert(field).second) {
        mistakes_.Add(line, key_path, "is given twice; expected once");
      } else if (KeyOf(*field).inherits()) {
        lists->push_back({entry.second, line, key_path, field});
      } else {
        ReadField(entry.second, line, key_path, *field, message);
      }
    }
  }

  void ReadField(const YAML::Node& node, int line, const std::string& path,
                 const FieldDescriptor& field, Message* message) {
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    if (field.is_map()) return ReadMap(node, line, path, field, message);
    if (field.is_repeated()) return ReadList(node, line, path, field, message);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return ReadMessage(node, line, path, reflection.MutableMessage(message, &field));
    }
    ReadScalar(node, line, path, field, message);
  }

  void ReadScalar(const YAML::Node& node, int line, const std::string& path,
                  const FieldDescriptor& field, Message* message) {
    if (!node.IsScalar()) return WrongType(node, line, path, field);
    const absl::Status set = SetFromText(node.Scalar(), IsQuoted(node), field, message);
    if (!set.ok()) mistakes_.Add(line, path, set.message());
    const v1::Key& key = KeyOf(field);
    if (!key.fast().empty() || !key.quiet().empty()) given_.insert(path);
  }

  void ReadList(const YAML::Node& node, int line, const std::string& path,
                const FieldDescriptor& field, Message* message) {
    const google::protobuf::Reflection& reflection = *message->GetReflection();
    if (!node.IsSequence() && !node.IsNull()) return WrongType(node, line, path, field);
    reflection.ClearField(message, &field);
    int index = 0;
    for (const YAML::Node& element : node) {
      const std::string element_path = absl::StrCat(path, "[", index++, "]");
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        ReadMessage(element, LineOf(element), element_path, reflection.AddMessage(message, &field));
      } else {
        ReadScalar(element, LineOf(element), element_path, field, message);
      }
    }
  }

  void ReadMap(const YAML::Node& node, int line, const std::string& path,
               const FieldDescriptor& field, Message* message) {
    if (!node.IsMap() && !node.IsNull()) return WrongType(node, line, path, field);
    const Descriptor& entry_type = *field.message_type();
    std::set<std::string> seen;
    for (const auto& pair : node) {
      const YAML::Node& key = pair.first;
      if (!key.IsScalar()) {
        mistakes_.Add(LineOf(key), path,
                      absl::StrCat("has ", KindOf(key), " as a key; expected a name"));
        continue;
      }
      const std::string key_path = Joined(path, key.Scalar());
      if (!seen.insert(key.Scalar()).second) {
        mistakes_.Add(LineOf(key), key_path, "is given twice; expected once");
        continue;
      }
      Message* entry = message->GetReflection()->AddMessage(message, &field);
      ReadScalar(key, LineOf(key), key_path, *entry_type.map_key(), entry);
      ReadScalar(pair.second, LineOf(key), key_path, *entry_type.map_value(), entry);
    }
  }

  // Messages that the file leaves out have their defaults all the same.
  void ReadUnnamedMessages(int line, const std::string& path,
                           const std::set<const FieldDescriptor*>& named, Message* message) {
    const Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool is_message =
          field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated();
      if (!is_message || named.count(&field) > 0) continue;
      ReadMessage(YAML::Node(), line, Joined(path, field.name()),
                  message->GetReflection()->MutableMessage(message, &field));
    }
  }

  void CheckRequired(const YAML::Node& node, int line, const std::string& path,
                     const Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool is_string = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      if (!KeyOf(field).required() || !is_string || field.is_repeated()) continue;
      if (!FormatField(message, field, 0).empty()) continue;
      mistakes_.Add(LineOfKey(node, field.name()).value_or(line), Joined(path, field.name()),
                    absl::StrCat("is required and empty; expected ", ExpectedOf(field)));
    }
  }

  void WrongType(const YAML::Node& node, int line, const std::string& path,
                 const FieldDescriptor& field) {
    mistakes_.Add(line, path, absl::StrCat("is ", KindOf(node), "; expected ", ExpectedOf(field)));
  }

  Mistakes& mistakes_;
  // The message being read has its values already, and the file replaces those that it names.
  bool inheriting_ = false;
  std::set<std::string> given_;  // Paths of keys whose default depends on the profile.
};

// Notes where documents start, and nothing else.
class DocumentStarts : public YAML::EventHandler {
 public:
  const YAML::Mark& last() const { return last_; }

  void OnDocumentStart(const YAML::Mark& mark) override { last_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  YAML::Mark last_;
};

// The line where text goes on after the first document of `text`; nullopt if it does not.
// YAML::Load ignores such text, and YAML::LoadAll never returns where it is no document (",").
std::optional<int> LineAfterDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  parser.HandleNextDocument(starts);
  if (!parser) return std::nullopt;
  parser.HandleNextDocument(starts);
  return LineOf(starts.last());
}

// The only document of `text`; a null node if there is none.
YAML::Node ParseDocument(const std::string& text, Mistakes* mistakes) {
  try {
    if (const std::optional<int> line = LineAfterDocument(text)) {
      mistakes->Add(*line, "",
                    "does not end with its first document; expected one mapping of keys");
    }
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    mistakes->Add(LineOf(error.mark), "", absl::StrCat("is not YAML: ", error.msg));
    return {};
  }
}

}  // namespace

absl::Status ParseYaml(absl::string_view text, absl::string_view file_name, Message* config) {
  config->Clear();
  Mistakes mistakes(file_name);
  if (text.size() > kMaxFileBytes) {
    mistakes.Add(1, "", absl::StrCat("is larger than ", FormatBytes(kMaxFileBytes)));
    return mistakes.ToStatus();
  }
  if (!IsUtf8(text)) {
    mistakes.Add(1, "", "is not UTF-8");
    return mistakes.ToStatus();
  }
  if (const size_t at = FindUnprintable(text); at != absl::string_view::npos) {
    const auto line = std::count(text.begin(), text.begin() + at, '\n') + 1;
    mistakes.Add(
        static_cast<int>(line), "",
        absl::StrFormat("has the control character 0x%02x, which YAML does not allow; in a "
                        "quoted text write \\x%02x",
                        text[at], text[at]));
    return mistakes.ToStatus();
  }
  const YAML::Node document = ParseDocument(std::string(text), &mistakes);
  TACHO_RETURN_IF_ERROR(mistakes.ToStatus());
  Reader(&mistakes).ReadMessage(document, LineOf(document), "", config);
  return mistakes.ToStatus();
}

absl::Status LoadYamlFile(const std::string& path, Message* config) {
  errno = 0;
  std::ifstream file(path);
  std::string text(kMaxFileBytes + 1, '\0');  // One more, so that ParseYaml sees what is too large.
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) {
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat("cannot read ", path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseYaml(text, path, config);
}

}  // namespace tacho::config
