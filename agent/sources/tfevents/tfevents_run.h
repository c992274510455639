// The event files of one run directory: what has been read of each, and how its rows are stored.
//
// Files are read in the order of their names, each to its present end before the next is begun, so
// that attempts come out the same whether the files are read while they grow or years later.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/tfevents/tfevents_chunk.h"
#include "agent/sources/tfevents/tfevents_context.h"
#include "client/tfevents/position.h"
#include "client/tfevents/rows.h"

namespace tacho::agent {

// How long a file may look damaged, or like another one, before that is believed. A network file
// system may show zeros where data are still on their way; a client's caches are a minute old at
// most.
inline constexpr absl::Duration kTfeventsPatience = absl::Minutes(2);

// A file's size and time of change, to see without opening it whether there is something to read.
struct TfeventsFileStamp {
  uint64_t size = 0;
  int64_t changed = 0;  // In units of the file system's clock.

  friend bool operator==(const TfeventsFileStamp&, const TfeventsFileStamp&) = default;
};

class TfeventsRun {
 public:
  // `directory`, below `root`, is where the files lie; checkpoints have keys that begin with
  // "tfevents/file/" or "tfevents/tags/" and end with `key`. The attempt of `source` only counts
  // if it is fixed.
  TfeventsRun(BeneathDirectory* root, std::string directory, std::string key, v1::Source source,
              bool fixed_attempt, TfeventsContext* context);

  // Takes note of a file as it is at present. Its checkpoint is read when it is new.
  void SeeFile(const std::string& name, const TfeventsFileStamp& stamp, const RowSink& sink);
  // Forgets files that have not been seen since the previous call, and their checkpoints. False if
  // none is left.
  bool ForgetUnseen(RowSink* sink);
  // Forgets all files and their checkpoints.
  void Forget(RowSink* sink);

  // Whether there is something to read, as far as can be told without opening files.
  bool HasWork() { return FindWork() != files_.end(); }

  enum class Turn {
    kMore,     // Something was read, and there may be more.
    kIdle,     // Nothing more for now.
    kRefused,  // The sink has no room. Try again later; nothing is lost.
  };
  // Reads and stores one chunk of one file. Stops early, in good order, at `deadline`.
  Turn ReadSome(absl::Time now, absl::Time deadline, RowSink* sink);

 private:
  struct File {
    client::TfeventsPosition position;
    TfeventsFileStamp stamp;  // When it was last seen.
    TfeventsFileStamp read;   // When it was last read to its end.
    bool read_once = false;
    bool seen = true;
    bool waiting = false;  // Cannot be read on before it is seen again.
    std::string said;      // The last trouble with it, so that it is reported once.
    // Since when it looks damaged, or like another one, at this place.
    absl::Time doubted = absl::InfiniteFuture();
    uint64_t doubted_at = 0;

    bool HasMore() const {
      return !waiting && (!read_once || position.chunk_end != 0 || !(stamp == read));
    }
  };
  using Files = std::map<std::string, File>;

  Files::iterator FindWork();
  client::TfeventsAttemptRule RuleFor(const std::string& name) const;
  Turn ReadChunk(const std::string& name, File* file, absl::Time now, absl::Time deadline,
                 RowSink* sink);
  // Whether what was found at `offset` has stayed so for long enough to be believed.
  static bool IsCertain(uint64_t offset, absl::Time now, File* file);
  Turn StartAnew(File* file);
  Turn Finish(const std::string& name, const TfeventsChunk& chunk, File* file);
  void SaveOtherTags(RowSink* sink);
  std::string FileKey(const std::string& name) const;
  std::string TagsKey() const;
  std::string PathOf(const std::string& name) const;  // Below the root.

  BeneathDirectory* const root_;
  const std::string directory_;
  const std::string key_;
  const v1::Source source_;
  const bool fixed_attempt_;
  TfeventsContext* const context_;
  Files files_;
  // Remembered from files that are gone.
  uint32_t forgotten_attempt_ = 0;
  std::optional<int64_t> forgotten_highest_;
  client::TfeventsOtherTags other_tags_;
  bool loaded_ = false;
  size_t saved_other_tags_ = 0;
};

}  // namespace tacho::agent
