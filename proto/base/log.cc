#include "proto/base/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace tacho::log {
namespace {

// Messages that are limited are constants of the program: far fewer than this.
constexpr size_t kMaxKinds = 256;

bool IsJournal(int descriptor) {
  struct stat status {};
  const char* const stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe)
  return stream != nullptr && fstat(descriptor, &status) == 0 &&
         absl::StrCat(status.st_dev, ":", status.st_ino) == stream;
}

// The priorities of syslog(3).
absl::string_view JournalPriority(Level level) {
  constexpr absl::string_view kPriorities[] = {"<7>", "<6>", "<4>", "<3>"};
  return kPriorities[static_cast<int>(level)];
}

void WriteAll(int descriptor, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // There is nowhere left to report it.
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

class Log::Core {
 public:
  explicit Core(LogOptions options) : options_(std::move(options)), configured_(options_.level) {}
  ~Core() { TellLeftOut(true); }

  bool Wants(Level level) ABSL_LOCKS_EXCLUDED(mutex_) { return level >= levels().in_force; }

  Levels levels() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (override_until_ != absl::InfinitePast() && options_.now() >= override_until_) {
      override_until_ = absl::InfinitePast();
    }
    const bool overridden = override_until_ != absl::InfinitePast();
    return {overridden ? override_ : configured_, configured_, override_until_};
  }

  void SetLevel(Level level) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    configured_ = level;
  }

  void Override(Level level, absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    override_ = level;
    override_until_ =
        duration <= absl::ZeroDuration() ? absl::InfinitePast() : options_.now() + duration;
  }

  // Whether a line with this message may be written, and how many of its kind were left out before.
  bool Admit(Level level, absl::string_view message, int lines_per_minute, uint64_t* left_out)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = options_.now();
    auto known = kinds_.find(message);
    if (known == kinds_.end()) {
      if (kinds_.size() >= kMaxKinds) message = "messages of many kinds";
      known = kinds_.try_emplace(std::string(message)).first;
    }
    Kind& kind = known->second;
    kind.level = level;
    if (kind.IsOver(now)) kind.Begin(now);
    if (kind.lines >= lines_per_minute) {
      ++kind.left_out;
      ++left_out_;
      return false;
    }
    ++kind.lines;
    *left_out = std::exchange(kind.left_out, 0);
    return true;
  }

  // Reports how many lines were left out, for the kinds whose minute is over or for all kinds.
  void TellLeftOut(bool all) ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const LeftOut& untold : TakeLeftOut(all)) {
      const Field count("left_out", untold.lines);
      Write(untold.level, untold.message, {&count, 1});
    }
  }

  void Write(Level level, absl::string_view message, std::span<const Field> fields)
      ABSL_LOCKS_EXCLUDED(write_mutex_) {
    ++lines_[static_cast<int>(level)];
    const std::string line = FormatLine(options_.format, options_.now(), level, message, fields);
    absl::MutexLock lock(&write_mutex_);
    if (options_.write) options_.write(level, line);
  }

  LogCounts counts() const {
    LogCounts counts;
    for (int level = 0; level < 4; ++level) counts.lines[level] = lines_[level];
    counts.left_out = left_out_;
    return counts;
  }

 private:
  struct LeftOut {
    std::string message;
    Level level = Level::kInfo;
    uint64_t lines = 0;
  };
  std::vector<LeftOut> TakeLeftOut(bool all) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = options_.now();
    std::vector<LeftOut> untold;
    for (auto& [message, kind] : kinds_) {
      if (kind.left_out == 0 || !(all || kind.IsOver(now))) continue;
      untold.push_back({message, kind.level, std::exchange(kind.left_out, 0)});
    }
    return untold;
  }

  struct Kind {
    bool IsOver(absl::Time now) const {
      // A clock that was set back must not silence the log until it has caught up.
      return now - begin >= absl::Minutes(1) || now < begin;
    }
    void Begin(absl::Time now) {
      begin = now;
      lines = 0;
    }

    absl::Time begin = absl::InfinitePast();
    Level level = Level::kInfo;
    int lines = 0;
    uint64_t left_out = 0;
  };

  const LogOptions options_;
  absl::Mutex mutex_;
  Level configured_ ABSL_GUARDED_BY(mutex_);
  Level override_ ABSL_GUARDED_BY(mutex_) = Level::kInfo;
  absl::Time override_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::flat_hash_map<std::string, Kind> kinds_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> lines_[4] = {};
  std::atomic<uint64_t> left_out_ = 0;
  absl::Mutex write_mutex_;  // Held while writing, so that no two lines mix.
};

Log::Log(LogOptions options) : core_(std::make_shared<Core>(std::move(options))) {}

void Log::Debug(absl::string_view message, Fields fields) const {
  Write(Level::kDebug, message, fields);
}
void Log::Info(absl::string_view message, Fields fields) const {
  Write(Level::kInfo, message, fields);
}
void Log::Warn(absl::string_view message, Fields fields) const {
  Write(Level::kWarn, message, fields);
}
void Log::Error(absl::string_view message, Fields fields) const {
  Write(Level::kError, message, fields);
}

void Log::Write(Level level, absl::string_view message, Fields fields) const {
  if (core_ == nullptr || !core_->Wants(level)) return;
  core_->Write(level, message, {fields.begin(), fields.size()});
}

void Log::Limited(Level level, absl::string_view message, Fields fields,
                  int lines_per_minute) const {
  if (core_ == nullptr || !core_->Wants(level)) return;
  uint64_t left_out = 0;
  if (!core_->Admit(level, message, lines_per_minute, &left_out)) return;
  std::vector<Field> all(fields);
  if (left_out > 0) all.emplace_back("left_out", left_out);
  core_->Write(level, message, all);
  core_->TellLeftOut(false);
}

void Log::SetLevel(Level level) const {
  if (core_ != nullptr) core_->SetLevel(level);
}

void Log::Override(Level level, absl::Duration duration) const {
  if (core_ != nullptr) core_->Override(level, duration);
}

Log::Levels Log::levels() const { return core_ == nullptr ? Levels() : core_->levels(); }

LogCounts Log::counts() const { return core_ == nullptr ? LogCounts() : core_->counts(); }

std::function<void(Level, absl::string_view)> StandardError() {
  return [journal = IsJournal(STDERR_FILENO)](Level level, absl::string_view line) {
    WriteAll(STDERR_FILENO, journal ? absl::StrCat(JournalPriority(level), line) : line);
  };
}

Log StandardLog(absl::string_view format, absl::string_view level) {
  LogOptions options;
  options.format = FormatNamed(format);
  options.level = LevelNamed(level).value_or(Level::kInfo);
  options.write = StandardError();
  return Log(std::move(options));
}

}  // namespace tacho::log
