// Makes the windows that detectors see: committed rows and events in, JobWindows out.
//
// Its contents and their limits:
//   - For a task: its newest step, and the points of each series with a meaning (signal_names.h),
//     of the newest attempt. For chips and hosts: the same, from whichever job recorded them, for
//     `host_window`. For a job: the newest kMaxEvents events of its attempt, and the newest
//     beginning and end of each of its first 65,536 tasks that have some.
//   - A series has at most `points` points of 24 bytes (track_points.h selects them), and fewer
//     where many series share `job_bytes` or `total_bytes`, but at least kMinPoints. If even that
//     is too much, new series are left out and counted; their tasks keep their newest step and
//     times. So a job of 10,000 tasks with 6 series each has 46 points of each in 64 MiB; beyond
//     87,000 series, further ones have none.
//   - The lowest task of a job keeps up to 8 times as many points as the others, because its curves
//     stand for the whole job; but not where `total_bytes` leaves no series more than kMinPoints.
//   - When `total_bytes` are used up, a series with more than kMinPoints thins out its own points;
//     for a series with fewer, all others are thinned out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/conditions/window/signal_names.h"
#include "server/conditions/window/window.h"
#include "server/ingest/agent_ledger.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/event.h"
#include "storage/model/series.h"

namespace tacho::server::conditions {

struct WindowLimits {
  size_t points = 2048;
  uint64_t job_bytes = 64u << 20;
  uint64_t total_bytes = 256u << 20;  // Never exceeded.
  absl::Duration host_window = absl::Hours(6);
  size_t max_jobs = 5000;  // Further jobs are left out and counted.
};

// One thread at a time.
class WindowBuilder {
 public:
  static constexpr size_t kMinPoints = 32;
  static constexpr size_t kMaxEvents = 1024;
  static constexpr size_t kMaxTracksOfSignal = 16;  // For one task, chip or host.

  struct Stats {
    size_t jobs = 0;
    uint64_t tracks = 0;
    uint64_t bytes = 0;            // Allocated for points.
    uint64_t tracks_left_out = 0;  // Series without room.
    uint64_t jobs_left_out = 0;    // Batches and events of jobs without room.
  };

  WindowBuilder(SignalNames names, const WindowLimits& limits);
  ~WindowBuilder();

  void SetLimits(const WindowLimits& limits) { limits_ = limits; }
  // Older rows and events do not start a window: imported history is not judged.
  void SetOldest(int64_t time_ns) { oldest_ns_ = time_ns; }

  // Adds rows of one layout as they were appended, late and repeated ones included. Many at once
  // cost less: the points of a series lie together, those of a row do not.
  void AddRows(const storage::Layout& layout, std::span<const storage::RowsEntry> entries);
  // Adds samples of one series and attempt, ascending by time, when the store fills a window.
  void AddSamples(const storage::Series& series, uint32_t attempt, absl::Span<const Point> points);
  // The pace of rows that AddSamples() got of this series: they come series by series, so that the
  // order of rows is lost.
  void TakePace(const storage::Series& series, uint32_t attempt, RowPace pace);
  // Rows of the job were missed.
  void BreakPaces(absl::string_view job);
  void AddEvent(const storage::Event& event);
  // The meaning of the series; nullopt: none, and AddSamples() ignores it.
  std::optional<SignalMatch> Meaning(const storage::Series& series);
  // Whether the signal belongs to chips or hosts.
  static bool IsHostSignal(Signal signal);

  bool Knows(absl::string_view job) const { return jobs_.contains(job); }
  std::vector<std::string> Jobs() const;  // By name.
  // The newest attempt, and the time of its newest row or event.
  uint32_t AttemptOf(absl::string_view job) const;
  int64_t LastSeenNs(absl::string_view job) const;

  // Calls `visit` with the window of a job, complete but for attributes, baselines and
  // straggles_elsewhere: the visitor sets those, and they stay.
  void Visit(absl::string_view job, int64_t now_ns, const ingest::AgentLedger* agents,
             absl::FunctionRef<void(JobWindow&)> visit);

  void Forget(absl::string_view job);
  // Removes chips and hosts that have sent nothing since.
  void ForgetHostsBefore(int64_t time_ns);

  Stats stats() const;

 private:
  struct Target;
  struct LayoutTargets;
  struct HostState;
  struct JobState;

  // nullptr: the job is new, and too old or without room.
  JobState* FindOrAddJob(absl::string_view job, int64_t newest_ns);
  // Whether rows of this attempt count. Starts it if it is newer.
  bool EnterAttempt(uint32_t attempt, JobState* job);
  TaskWindow* FindOrAddTask(std::optional<uint32_t> task, absl::string_view host, JobState* job);
  LayoutTargets* TargetsOf(const storage::Layout& layout, JobState* job, TaskWindow* task);
  Target MakeTarget(const storage::Series& series, const SignalMatch& match, JobState* job,
                    TaskWindow* task);
  Tracks* HostTracks(const storage::Series& series, Signal signal);
  Track* FindOrAddTrack(const storage::Series& series, const SignalMatch& match, uint64_t* of_job,
                        Tracks* tracks);
  // `coming`: the expected number of points, this one included.
  void Add(const Target& target, size_t most, size_t coming, const Point& point);
  // The values of its column.
  void AddColumn(const Target& target, size_t most, size_t coming, const storage::RowsEntry& rows);
  size_t PointsOf(const JobState* job, const TaskWindow* task) const;
  // Makes room for one more point in full `points`: allocates for all that are `coming` if there is
  // room, else thins these points out, or those of all series if these have too few.
  void MakeRoom(size_t most, size_t coming, std::vector<Point>* points);
  void ShrinkAll();
  void Rebalance(JobState* job);
  void ShrinkTracks(size_t most, Tracks* tracks);
  void Uncount(const Tracks& tracks, uint64_t* of_job);
  static void SortTasks(JobState* job);
  // Counts the intervals between rows whose events must be there by now.
  static void SettlePaces(JobWindow* window);
  // Requires hosts in the window.
  static void FindEnds(int64_t now_ns, JobState* job);
  // Whether a task of a job, some of whose tasks have ended, may still run.
  static bool MayLive(int64_t now_ns, const JobState& job);
  // Notes an event that begins or ends a numbered task. Returns whether it ends one.
  static bool NoteEnd(const storage::Event& event, JobState* job);
  void BorrowHosts(int64_t now_ns, const ingest::AgentLedger* agents, JobWindow* window);
  void ReturnHosts(JobWindow* window);

  const SignalNames names_;
  // Cached results of names_: a fleet has the same names on every host.
  absl::flat_hash_map<std::string, std::optional<SignalMatch>> meanings_;
  WindowLimits limits_;
  int64_t oldest_ns_ = INT64_MIN;
  std::map<std::string, std::unique_ptr<JobState>, std::less<>> jobs_;
  std::map<std::string, std::unique_ptr<HostState>, std::less<>> hosts_;
  // For the layouts of jobs that are not judged, such as that of the hosts.
  std::unique_ptr<JobState> elsewhere_;
  // Changes whenever a Track may move.
  uint64_t epoch_ = 1;
  uint64_t tracks_ = 0;
  uint64_t bytes_ = 0;
  uint64_t tracks_left_out_ = 0;
  uint64_t jobs_left_out_ = 0;
};

}  // namespace tacho::server::conditions
