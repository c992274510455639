#include "agent/spool/spool_division.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kShardPrefix[] = "shard-";

// RocksDB's. It is the first to go when a spool is removed (SpoolJournal::Remove()).
bool HasSpool(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "CURRENT", error);
}

}  // namespace

std::string ShardPath(absl::string_view path, uint32_t shard, uint32_t shards) {
  return absl::StrCat(path, "/", kShardPrefix, shard, "-of-", shards);
}

std::vector<FoundSpool> FindSpools(const std::string& path) {
  std::vector<FoundSpool> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kShardPrefix)) continue;
    const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(rest, "-of-");
    FoundSpool one{.path = entry.path().string()};
    if (absl::SimpleAtoi(numbers.first, &one.shard) &&
        absl::SimpleAtoi(numbers.second, &one.shards) && one.shard < one.shards &&
        one.path == ShardPath(path, one.shard, one.shards) && HasSpool(entry.path())) {
      found.push_back(std::move(one));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundSpool& a, const FoundSpool& b) { return a.path < b.path; });
  if (HasSpool(path)) found.insert(found.begin(), FoundSpool{.path = path});
  return found;
}

}  // namespace tacho::agent
