#include "agent/spool/spool_division.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kShardPrefix[] = "shard-";
constexpr char kSplitPrefix[] = "-split-";

// RocksDB's. It is the first to go when a spool is removed (SpoolJournal::Remove()).
bool HasSpool(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "CURRENT", error);
}

}  // namespace

std::string SplitName(const JobDivision& division) {
  if (division.split_jobs.empty()) return "";
  // Names have no zero bytes. Two lists with one name are as likely as a disk that lies.
  const std::string all = absl::StrJoin(division.split_jobs, absl::string_view("\0", 1));
  return absl::StrCat(kSplitPrefix, absl::Hex(ShardOfJob(all, UINT32_MAX), absl::kZeroPad8));
}

std::string ShardPath(absl::string_view path, uint32_t shard, const JobDivision& division) {
  return absl::StrCat(path, "/", kShardPrefix, shard, "-of-", division.shards, SplitName(division));
}

std::vector<FoundSpool> FindSpools(const std::string& path) {
  std::vector<FoundSpool> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kShardPrefix)) continue;
    FoundSpool one{.path = entry.path().string()};
    const size_t split = std::min(rest.find(kSplitPrefix), rest.size());
    one.split = std::string(rest.substr(split));
    rest = rest.substr(0, split);
    const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(rest, "-of-");
    if (absl::SimpleAtoi(numbers.first, &one.shard) &&
        absl::SimpleAtoi(numbers.second, &one.shards) && one.shard < one.shards &&
        name == absl::StrCat(kShardPrefix, one.shard, "-of-", one.shards, one.split) &&
        HasSpool(entry.path())) {
      found.push_back(std::move(one));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const FoundSpool& a, const FoundSpool& b) { return a.path < b.path; });
  if (HasSpool(path)) found.insert(found.begin(), FoundSpool{.path = path});
  return found;
}

}  // namespace tacho::agent
