// Pushes come from whoever may write. The first byte says of which form the body is; the path ends
// at the first line feed. What is read has labels that belong to the group, each series once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "proto/base/check.h"
#include "proto/base/utf8.h"
#include "server/interop/formats/label_template.h"
#include "server/interop/formats/push_request.h"
#include "server/interop/push_groups.h"

namespace interop = tacho::server::interop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const auto group = interop::ReadPushPath(bytes.substr(0, end));
  if (!group.ok()) {
    TACHO_CHECK(!group.status().message().empty());
    return 0;
  }
  for (const auto& [name, value] : *group) TACHO_CHECK(!name.empty() && tacho::IsUtf8(value));
  const absl::string_view body = end < bytes.size() ? bytes.substr(end + 1) : "";
  const auto form = static_cast<interop::PushForm>(data[0] % 3);
  const auto lines = interop::ReadPushedLines(body, form, *group, 1'000);
  if (!lines.ok()) {
    TACHO_CHECK(!lines.status().message().empty());
    return 0;
  }
  TACHO_CHECK(lines->series.size() == lines->write.series.size());
  TACHO_CHECK(lines->series.size() == lines->write.samples.size());
  absl::flat_hash_set<std::string> keys;
  for (const auto& series : lines->series) {
    TACHO_CHECK(keys.insert(series.key).second);
    const auto labels = interop::LabelsOfKey(series.key);
    TACHO_CHECK(labels.ok());
    for (const auto& [name, value] : *group) {
      const std::string* const has = interop::FindLabel(*labels, name);
      TACHO_CHECK(has != nullptr && *has == value);
    }
  }
  // A push again, and then an end, balance the book.
  interop::PushGroups groups({});
  for (const auto change : {interop::PushChange::kNames, interop::PushChange::kGroup}) {
    const auto plan = groups.Begin(*group, change, lines->series, 1);
    TACHO_CHECK(plan.ok() && plan->ended.empty());
    groups.Settled(*plan, lines->series, absl::UnixEpoch());
  }
  const auto last = groups.Begin(*group, interop::PushChange::kEnd, {}, 2);
  TACHO_CHECK(last.ok() && last->ended.size() == lines->series.size());
  groups.Settled(*last, {}, absl::UnixEpoch());
  TACHO_CHECK(groups.size() == 0 && groups.bytes() == 0);
  return 0;
}
