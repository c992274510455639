// Keys of every column family but the journal. docs/storage_format.md draws them with examples.
//
// Invariant: byte order of the keys is the order in which they are read, so that one metric of one
// job, one series of it, and a time range of that are each one contiguous range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::storage {

// The column family of journal.h, in a store and in an agent's spool.
inline constexpr char kJournalFamily[] = "journal";

// --- Partitions: one column family a day ---------------------------------------------------------

inline constexpr int64_t kDayNs = int64_t{86'400} * 1'000'000'000;

// Days since the Unix epoch, rounded down.
int64_t DayOf(int64_t time_ns);
// "day.20778", and back; nullopt if the name is not a partition's.
std::string PartitionName(int64_t day);
std::optional<int64_t> ParsePartitionName(absl::string_view name);

// Which write a frame was: of two frames with the same sample the one with the higher position
// wins.
using FramePosition = uint64_t;  // Journal position of the frame's last row.

// 'T' | job be32 | layout be64 | first time | position be64
std::string TimeColumnKey(JobId job, LayoutId layout, int64_t first_time_ns,
                          FramePosition position);

// 'V' | job be32 | metric be32 | series be64 | first time | position be64
struct ValueColumnKey {
  JobId job = 0;
  MetricId metric = 0;
  SeriesId series = 0;
  int64_t first_time_ns = 0;
  FramePosition position = 0;

  std::string Encode() const;
  static std::optional<ValueColumnKey> Decode(absl::string_view bytes);
  // What the keys of one series begin with.
  static std::string SeriesPrefix(const Series& series);
};

// What all column keys of one job begin with.
std::string JobPrefix(char kind, JobId job);

// --- "index" -------------------------------------------------------------------------------------

std::string JobKey(JobId job);                      // 'J' | job be32
std::string MetricKey(JobId job, MetricId metric);  // 'M' | job be32 | metric be32
std::string SeriesKey(JobId job, SeriesId first);   // 'S' | job be32 | series be64
std::string LayoutKey(JobId job, LayoutId layout);  // 'L' | job be32 | layout be64
std::string NextIdsKey();                           // 'N'

// --- "state" -------------------------------------------------------------------------------------

std::string SealedKey(JobId job, LayoutId layout);  // 'P' | job be32 | layout be64
std::string JobSummaryKey(JobId job);               // 'J' | job be32
// 'A' | job be32 | attempt be32
std::string AttemptKey(JobId job, uint32_t attempt);
// 'B' | job be32 | attempt be32
std::string AttributesKey(JobId job, uint32_t attempt);
// 'K' | job be32 | 0, or 1 and task be32 | host
std::string TaskKey(JobId job, std::optional<uint32_t> task, absl::string_view host);
std::string CommitCountKey();  // 'C'
// 'O' | agent id | generation be64
std::string OriginKey(absl::string_view agent_id, uint64_t generation);
std::string OwnerKey(absl::string_view agent_id);    // 'U' | agent id
std::string ForwardKey(absl::string_view receiver);  // 'F' | name of the receiver

// --- "events" ------------------------------------------------------------------------------------

// job be32 | time | number be64
std::string EventKey(JobId job, int64_t time_ns, uint64_t number);

// The first key after all that begin with `prefix`; needs a byte below 0xff in it.
std::string PrefixEnd(std::string prefix);

}  // namespace tacho::storage
