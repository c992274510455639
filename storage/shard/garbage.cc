#include "storage/shard/garbage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/segment.h"

namespace tacho::storage {
namespace {

// Every key that begins with the prefix.
absl::StatusOr<std::vector<std::string>> ListAll(Bucket& bucket, absl::string_view prefix,
                                                 const BeforeRetry& before_retry) {
  std::vector<std::string> keys;
  std::string from;
  int tries = 1;
  for (;;) {
    const absl::StatusOr<ObjectPage> page = bucket.List(prefix, from);
    if (absl::IsUnavailable(page.status())) {
      TACHO_RETURN_IF_ERROR(before_retry(tries++));
      continue;
    }
    if (!page.ok()) return page.status();
    tries = 1;
    for (const ListedObject& object : page->objects) keys.push_back(object.key);
    if (!page->next.has_value()) return keys;
    from = *page->next;
  }
}

absl::Status At(absl::string_view key, const absl::Status& status) {
  return {status.code(), absl::StrCat(key, ": ", status.message())};
}

// The keys of the blocks that a list names.
absl::StatusOr<std::vector<std::string>> BlocksIn(Bucket& bucket, const StoredFile& list,
                                                  const BeforeRetry& before_retry) {
  TACHO_ASSIGN_OR_RETURN(const StoredObject object,
                         GetUntilAnswered(bucket, list.key, before_retry));
  const absl::StatusOr<std::vector<Block>> blocks = DecodeBlockList(object.body);
  if (!blocks.ok()) return At(list.key, blocks.status());
  std::vector<std::string> keys;
  for (const Block& block : *blocks) keys.push_back(block.file.key);
  return keys;
}

// Adds the files of a manifest, and those in its lists.
absl::Status AddNeeded(Bucket& bucket, const Manifest& manifest, const BeforeRetry& before_retry,
                       std::set<std::string>* needed) {
  needed->merge(FilesOf(manifest));
  for (const auto& [day, list] : manifest.closed_days) {
    TACHO_ASSIGN_OR_RETURN(const std::vector<std::string> blocks,
                           BlocksIn(bucket, list, before_retry));
    needed->insert(blocks.begin(), blocks.end());
  }
  return absl::OkStatus();
}

bool IsBlockOf(absl::string_view key, int64_t day) {
  const std::optional<ObjectName> name = ParseObjectKey(key);
  return name.has_value() && name->kind == ObjectKind::kBlock && name->day == day;
}

// Whether both manifests have the same list for this day.
bool SameList(const Manifest& other, int64_t day, const StoredFile& list) {
  const auto found = other.closed_days.find(day);
  return found != other.closed_days.end() && found->second == list;
}

absl::Status AddSaved(Bucket& bucket, const std::string& key, const BeforeRetry& before_retry,
                      std::set<std::string>* needed) {
  const absl::StatusOr<StoredObject> object = GetUntilAnswered(bucket, key, before_retry);
  if (absl::IsNotFound(object.status())) return absl::OkStatus();  // Given up meanwhile.
  if (!object.ok()) return object.status();
  const absl::StatusOr<Manifest> saved = DecodeManifest(object->body);
  if (!saved.ok()) return At(key, saved.status());
  return AddNeeded(bucket, *saved, before_retry, needed);
}

// Whether the replay of the manifest may read this number.
bool IsReplayed(const Manifest& manifest, const ObjectName& name) {
  return std::any_of(manifest.logs.begin(), manifest.logs.end(), [&](const LogStart& log) {
    return log.epoch == name.epoch && name.number >= log.first;
  });
}

// A name does not tell a segment from a seal, and only the former may go.
absl::StatusOr<bool> IsSegment(Bucket& bucket, const std::string& key,
                               const BeforeRetry& before_retry) {
  const absl::StatusOr<StoredObject> object = GetUntilAnswered(bucket, key, before_retry);
  if (absl::IsNotFound(object.status())) return false;
  if (!object.ok()) return object.status();
  return LooksLikeSegment(object->body);
}

}  // namespace

std::set<std::string> FilesOf(const Manifest& manifest) {
  std::set<std::string> keys;
  for (const StateFile& state : manifest.state) keys.insert(state.file.key);
  for (const auto& [day, blocks] : manifest.open_days) {
    for (const Block& block : blocks) keys.insert(block.file.key);
  }
  for (const auto& [day, list] : manifest.closed_days) keys.insert(list.key);
  return keys;
}

std::vector<std::string> SupersededFiles(Bucket& bucket, const Manifest& before,
                                         const Manifest& after, const BeforeRetry& before_retry) {
  std::set<std::string> files = FilesOf(before);
  for (const auto& [day, list] : before.closed_days) {
    if (SameList(after, day, list)) continue;
    const auto blocks = BlocksIn(bucket, list, before_retry);
    if (!blocks.ok()) continue;
    for (const std::string& key : *blocks) {
      // Only the list of its own day names a block; any other has to be looked at by a sweep.
      if (IsBlockOf(key, day)) files.insert(key);
    }
  }
  for (const std::string& key : FilesOf(after)) files.erase(key);
  for (const auto& [day, list] : after.closed_days) {
    if (SameList(before, day, list)) continue;
    const auto blocks = BlocksIn(bucket, list, before_retry);
    if (blocks.ok()) {
      for (const std::string& key : *blocks) files.erase(key);
    } else {
      std::erase_if(files, [day = day](const std::string& key) { return IsBlockOf(key, day); });
    }
  }
  return {files.begin(), files.end()};
}

absl::StatusOr<std::vector<std::string>> FindOrphans(Bucket& bucket, const Manifest& current,
                                                     const std::vector<int64_t>& saved_days,
                                                     const BeforeRetry& before_retry) {
  TACHO_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                         ListAll(bucket, ShardPrefix(current.shard), before_retry));
  std::set<std::string> needed;
  TACHO_RETURN_IF_ERROR(AddNeeded(bucket, current, before_retry, &needed));
  for (const int64_t day : saved_days) {
    TACHO_RETURN_IF_ERROR(
        AddSaved(bucket, SavedManifestKey(current.shard, day), before_retry, &needed));
  }
  std::vector<std::string> orphans;
  for (const std::string& key : keys) {
    const std::optional<ObjectName> name = ParseObjectKey(key);
    // Whoever wrote a key that is no name of ours has to judge it.
    if (!name.has_value() || name->kind == ObjectKind::kManifest ||
        name->kind == ObjectKind::kSavedManifest) {
      continue;
    }
    if (name->epoch >= current.epoch || IsReplayed(current, *name) || needed.contains(key))
      continue;
    if (name->kind == ObjectKind::kSegment) {
      TACHO_ASSIGN_OR_RETURN(const bool is_segment, IsSegment(bucket, key, before_retry));
      if (!is_segment) continue;
    }
    orphans.push_back(key);
  }
  return orphans;
}

size_t DeleteObjects(Bucket& bucket, const std::vector<std::string>& keys) {
  return static_cast<size_t>(std::count_if(
      keys.begin(), keys.end(), [&](const std::string& key) { return bucket.Delete(key).ok(); }));
}

}  // namespace tacho::storage
