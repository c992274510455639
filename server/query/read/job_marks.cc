#include "server/query/read/job_marks.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace tacho::server::query {
namespace {

std::string ValueOr(const AttributeMap& attributes, const char* name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? "" : found->second;
}

}  // namespace

bool IsMark(absl::string_view attribute) {
  return attribute == kGroupAttribute || attribute == kNoteAttribute ||
         absl::StartsWith(attribute, kTagPrefix);
}

AttributeMap MergedAttributes(const std::vector<storage::AttemptInfo>& attempts) {
  AttributeMap merged;
  for (const storage::AttemptInfo& attempt : attempts) {
    for (const auto& [name, value] : attempt.attributes) merged[name] = value;
  }
  return merged;
}

v1::JobMarks MarksOf(const AttributeMap& merged) {
  v1::JobMarks marks;
  for (const auto& [name, value] : merged) {
    absl::string_view tag = name;
    if (absl::ConsumePrefix(&tag, kTagPrefix) && !tag.empty()) marks.add_tags(std::string(tag));
  }
  marks.set_group(ValueOr(merged, kGroupAttribute));
  marks.set_note(ValueOr(merged, kNoteAttribute));
  return marks;
}

}  // namespace tacho::server::query
