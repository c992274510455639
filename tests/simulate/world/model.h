// What must be stored, kept outside of agents and collectors: each row and event that a source has
// made, and how far its agent was told that it is safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/simulate/schedule/schedule.h"

namespace tacho::simulate {

inline constexpr int kColumns = 3;
// Sources from this one on belong to a job of their own, which comes and goes.
inline constexpr int kShortSource = 7;
// The rows that a trainer writes into a ring; they have a job of their own too.
inline constexpr int kRingSource = 8;
std::string JobOf(int agent, int source);
std::string MetricOf(int source, int column);
// The source and the column of such a name; false if it is another.
bool ParseMetric(absl::string_view name, int* source, int* column);
// Whether rows with the times that the host's clock shows now must be taken.
bool IsClockRight(HostId host);

// The value of a column of a row: bits that follow from where it belongs, NaNs and infinities among
// them, so that a value that turns up elsewhere is wrong.
double ValueOf(uint64_t agent, uint64_t source, uint64_t number, int column);

// For the thread that has the baton: nothing in it waits, so no lock is needed.
class Model {
 public:
  // Rows of a source count from 1; the number is also the step. Source 0 makes events.
  struct Row {
    int64_t time_ns = 0;
    uint64_t sequence = 0;    // In its agent's spool, when it was appended last; 0: not yet.
    bool right_time = false;  // Its agent's clock was right: no collector may refuse it.
    bool acknowledged = false;
    bool forgotten = false;  // It was in a spool that is gone.
    // Its spool has dropped it for want of room, or what was trimmed at the same time.
    bool may_be_dropped = false;
    bool in_ring = false;    // A trainer has written it, and its machine has not lost its power.
    unsigned seen = 0;       // The columns that a query has returned, as bits.
    uint32_t published = 0;  // How often a collector has stored it.
  };
  using Source = std::pair<int, int>;  // (agent, source)

  // The row that a source is to spool: the one that it had made before, if a crash took it from the
  // spool again, or a new one of this time.
  Row& Make(const Source& source, uint64_t number, int64_t time_ns, bool right_time);
  void Appended(const Source& source, uint64_t number, uint64_t sequence);
  // A trainer has written it into a ring.
  void Recorded(const Source& source, uint64_t number);
  // How many rows the source has made.
  uint64_t Made(const Source& source) const;
  // That have made any row.
  std::vector<Source> Sources() const;
  // An agent's spool is another one now: what was only in the old one is gone, and nobody can know.
  void SpoolReplaced(int agent);
  // An agent's machine has lost its rings: what its spool has not taken is gone.
  void ForgetRings(int agent);
  // What an agent's spool does not keep any more is acknowledged.
  void Trimmed(int agent, uint64_t begin);
  // An agent's spool has dropped messages of these sequences, [begin, end), and counted them. Some
  // of them may have been trimmed instead.
  void Dropped(int agent, uint64_t begin, uint64_t end);
  // A sequence that was not synced is gone, and will be another row's.
  void ForgetUnsynced(int agent, uint64_t end);

  // What a query has found. Returns what is wrong with it, or nothing.
  struct Found {
    std::map<Source, std::map<uint64_t, int>> numbers;  // The columns that have each row, as bits.
  };
  std::string FoundSample(const Source& source, uint64_t number, int column, int64_t time_ns,
                          double value, Found* found);
  // What is wrong with a sample, whether or not it was found before; nothing if nothing is.
  std::string WrongSample(const Source& source, uint64_t number, int column, int64_t time_ns,
                          double value) const;
  // The rows of these times, [begin_ns, end_ns), in which a query has returned the column: later
  // queries must return them too.
  std::set<uint64_t> Returned(const Source& source, int column, int64_t begin_ns,
                              int64_t end_ns) const;
  std::string FoundEvent(const Source& source, uint64_t number, int64_t time_ns, Found* found);
  // Compares with what had to be there: what was `acknowledged` when the view was opened, and what
  // was seen before.
  struct Compared {
    std::string wrong;  // In words; empty if nothing is.
    // Samples and events that had to be there and are not. Somebody must have counted them.
    uint64_t missing = 0;              // Of clocks that were right,
    uint64_t missing_wrong_times = 0;  // and of clocks that were not.
    std::string example;               // Of the former.
    std::string not_dropped;           // One of the former that no spool has dropped.
  };
  using Chosen = std::map<Source, std::vector<bool>>;  // Whether each row is, from the first on.
  Compared Compare(const Found& found, const Chosen& required);
  Chosen Acknowledged() const;
  // All that a spool or a ring has taken, and what a source has passed over: its next row was
  // taken, and it was not.
  Chosen Everything() const;

  // A collector has stored a row. Returns what is wrong with that.
  std::string Published(const Source& source, uint64_t number);

  // Retention has reached rows of earlier times: those before `may` may be gone, and samples before
  // `must` are, but for those of clocks that were wrong.
  void Expire(int64_t may, int64_t must) {
    may_be_gone_before_ns_ = may;
    must_be_gone_before_ns_ = must;
  }

  // A collector's disk has lost something that it had called synced: what was stored or returned
  // may be gone.
  void ForgetStored();

  uint64_t rows() const;
  uint64_t acknowledged_rows() const;

 private:
  std::map<Source, std::vector<Row>> rows_;
  std::map<Source, std::set<int64_t>> times_;
  int64_t may_be_gone_before_ns_ = INT64_MIN;
  int64_t must_be_gone_before_ns_ = INT64_MIN;
};

}  // namespace tacho::simulate
