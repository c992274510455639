#include "storage/shard/shard_count.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "rapidjson/document.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/json_members.h"

namespace tacho::storage {
namespace {

constexpr char kKind[] = "cluster";
constexpr uint64_t kFormat = 1;

absl::StatusOr<uint32_t> ReadShardCount(Bucket& bucket, const BeforeRetry& before_retry) {
  TACHO_ASSIGN_OR_RETURN(const StoredObject object,
                         GetUntilAnswered(bucket, kClusterKey, before_retry));
  const auto shards = DecodeShardCount(object.body);
  if (shards.ok()) return *shards;
  return absl::Status(shards.status().code(),
                      absl::StrCat(kClusterKey, ": ", shards.status().message()));
}

absl::Status Compare(uint32_t there, uint32_t shards) {
  if (there == shards) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the bucket is that of a cluster of ", there, " collectors (", kClusterKey, "), and ",
      shards == 1 ? std::string("this collector is in none")
                  : absl::StrCat("cluster.members names ", shards),
      ": set cluster.members to all ", there,
      ", or another bucket.url. The number of a cluster's collectors does not change"));
}

}  // namespace

std::string EncodeShardCount(uint32_t shards) {
  return absl::StrCat("{\"kind\":\"", kKind, "\",\"format\":", kFormat, ",\"shards\":", shards,
                      "}");
}

absl::StatusOr<uint32_t> DecodeShardCount(absl::string_view text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError()) return absl::DataLossError("it is no JSON");
  JsonMembers in(document, "the object");
  const std::string kind = in.Text("kind");
  const uint64_t format = in.Number("format", UINT64_MAX);
  if (kind == kKind && format > kFormat) {
    return absl::UnimplementedError(absl::StrCat("it has the format ", format,
                                                 ", which a newer version has written; this one "
                                                 "knows ",
                                                 kFormat, ": upgrade the collector"));
  }
  const uint64_t shards = in.Number("shards", kMaxShard + 1);
  TACHO_RETURN_IF_ERROR(in.status());
  if (kind != kKind || format != kFormat || shards < 2) {
    return absl::DataLossError("it does not say the number of a cluster's shards");
  }
  return static_cast<uint32_t>(shards);
}

absl::Status CheckShardCount(Bucket& bucket, uint32_t shards, const BeforeRetry& before_retry) {
  TACHO_CHECK(shards >= 1 && shards <= kMaxShard + 1);
  for (int tries = 1;; ++tries) {
    const auto there = ReadShardCount(bucket, before_retry);
    if (there.ok()) return Compare(*there, shards);
    if (!absl::IsNotFound(there.status())) return there.status();
    if (shards == 1) return absl::OkStatus();
    // A store alone is shard 0, and leaves no number.
    const auto alone = GetUntilAnswered(bucket, ManifestKey(0), before_retry);
    if (alone.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the bucket is that of one collector with all jobs (it has ", ManifestKey(0),
                       " and no ", kClusterKey, "), and cluster.members names ", shards,
                       " collectors: give the cluster another bucket.url"));
    }
    if (!absl::IsNotFound(alone.status())) return alone.status();
    const auto put = bucket.PutNew(kClusterKey, EncodeShardCount(shards));
    if (put.ok()) return absl::OkStatus();
    // Somebody was faster, perhaps an earlier try of this.
    if (absl::IsAlreadyExists(put.status())) continue;
    if (!absl::IsUnavailable(put.status())) return put.status();
    TACHO_RETURN_IF_ERROR(before_retry(tries));
  }
}

}  // namespace tacho::storage
