#include "proto/base/job_shard.h"

#include <openssl/evp.h>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace tacho {

uint32_t ShardOfJob(absl::string_view job, uint32_t shards) {
  if (shards <= 1) return 0;
  unsigned char digest[EVP_MAX_MD_SIZE];
  TACHO_CHECK(EVP_Digest(job.data(), job.size(), digest, nullptr, EVP_sha256(), nullptr) == 1);
  uint64_t first = 0;
  for (int at = 0; at < 8; ++at) first = first << 8 | digest[at];
  return static_cast<uint32_t>(first % shards);
}

uint32_t ShardOfHost(absl::string_view job, absl::string_view host, uint32_t shards) {
  return ShardOfJob(absl::StrCat(job, absl::string_view("\0", 1), host), shards);
}

}  // namespace tacho
