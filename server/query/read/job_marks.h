// Tags, group and note of a job, which are attributes with reserved names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/model/job.h"
#include "tacho/v1/marks.pb.h"

namespace tacho::server::query {

inline constexpr absl::string_view kTagPrefix = "tag.";
inline constexpr char kGroupAttribute[] = "group";
inline constexpr char kNoteAttribute[] = "note";

using AttributeMap = std::map<std::string, std::string>;

// Whether an attribute of this name is a mark, which belongs to the job whatever its attempt.
bool IsMark(absl::string_view attribute);
// As JobOutline::merged_attributes.
AttributeMap MergedAttributes(const std::vector<storage::AttemptInfo>& attempts);
// The marks among merged attributes.
v1::JobMarks MarksOf(const AttributeMap& merged);
inline bool HasMarks(const v1::JobMarks& marks) {
  return marks.tags_size() > 0 || !marks.group().empty() || !marks.note().empty();
}

}  // namespace tacho::server::query
