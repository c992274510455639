// Walks directories for logs. A file that nobody named is taken only if its content says what it
// is, because a run's directory holds source, settings and pictures too.
#include "client/import/file_search.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tfevents/run_name.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

namespace fs = std::filesystem;

// More is mostly a data set or a home directory, named by mistake.
constexpr size_t kMaxFiles = 100'000;

class FileSearch {
 public:
  FileSearch(std::optional<FileFormat> format, const ReadOptions& options, PassedOver* passed_over)
      : format_(format), options_(options), passed_over_(*passed_over) {}

  // A path that the user named.
  absl::Status Add(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return AddDirectory(path);
    TACHO_ASSIGN_OR_RETURN(const std::string head, ReadHead(path));
    const auto format = format_ ? format_ : DetectFormatOfBytes(head);
    if (!format) return UnknownFormat(path, head);
    if (*format == FileFormat::kEventFiles) {
      const fs::path parent = fs::path(path).parent_path();
      runs_[parent.string()].paths.push_back(path);
    } else {
      AddFile(*format, path, "");
    }
    return absl::OkStatus();
  }

  std::vector<FoundRun> Take() {
    for (auto& [directory, run] : runs_) {
      run.format = FileFormat::kEventFiles;
      std::sort(run.paths.begin(), run.paths.end());
      run.paths.erase(std::unique(run.paths.begin(), run.paths.end()), run.paths.end());
      found_.push_back(std::move(run));
    }
    return std::move(found_);
  }

 private:
  absl::Status AddDirectory(const std::string& directory) {
    const size_t logs_before = logs_;
    PassedOver passed_over;  // Below this directory.
    passed_here_ = &passed_over;
    TACHO_RETURN_IF_ERROR(Walk(directory, client::kRootRun));
    if (logs_ > logs_before) return absl::OkStatus();
    if (format_ == FileFormat::kEventFiles) {
      return absl::InvalidArgumentError(absl::StrCat("no event files are below ", directory,
                                                     " (their names contain '",
                                                     client::kEventFileMark, "')"));
    }
    std::string text = absl::StrCat(
        "no file below ", directory, " is ",
        format_ ? FormatTitle(*format_)
                : "a log of a known format (" + absl::StrJoin(FormatNames(), ", ") + ")");
    if (!passed_over.first.empty()) {
      const auto& [path, why] = passed_over.first.front();
      absl::StrAppend(&text, "; it has ", passed_over.files,
                      passed_over.files == 1 ? " other file, " : " other files, like ", path, ": ",
                      why);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(text, ". Name a file itself to read it all the same"));
  }

  void PassOver(const std::string& path, absl::string_view why) {
    passed_over_.Add(path, why);
    passed_here_->Add(path, why);
  }

  // `run`: what the directory is called from the one that the user named.
  absl::Status Walk(const std::string& directory, const std::string& run) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (auto at = fs::directory_iterator(directory, error);
         !error && at != fs::directory_iterator(); at.increment(error)) {
      entries.push_back(*at);
    }
    if (error && run != client::kRootRun) {
      PassOver(directory, absl::StrCat("cannot be read: ", error.message()));
      return absl::OkStatus();
    }
    if (error) {
      return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read ", directory));
    }
    std::sort(entries.begin(), entries.end());
    for (const fs::directory_entry& entry : entries) {
      TACHO_RETURN_IF_ERROR(Look(directory, run, entry));
    }
    return absl::OkStatus();
  }

  absl::Status Look(const std::string& directory, const std::string& run,
                    const fs::directory_entry& entry) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    std::error_code error;
    // A link to a directory could lead in a circle.
    if (entry.is_directory(error) && !entry.is_symlink(error)) {
      return Walk(path, client::RunBelow(run, name));
    }
    if (!entry.is_regular_file(error)) return absl::OkStatus();
    if (++files_ > kMaxFiles) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there are more than ", kMaxFiles, " files, at ", path, ": import them in parts"));
    }
    if (client::IsEventFileName(name)) {
      if (!format_ || *format_ == FileFormat::kEventFiles) AddEventFile(directory, run, path);
      return absl::OkStatus();
    }
    AddIfLog(directory, run, entry);
    return absl::OkStatus();
  }

  // Once, however many of the paths lead to it.
  void AddFile(FileFormat format, const std::string& path, const std::string& name) {
    ++logs_;
    if (seen_.insert(path).second) found_.push_back({format, {path}, name});
  }

  void AddEventFile(const std::string& directory, const std::string& run, const std::string& path) {
    ++logs_;
    FoundRun& found = runs_[directory];
    if (found.paths.empty()) found.name = run;
    found.paths.push_back(path);
  }

  void AddIfLog(const std::string& directory, const std::string& run,
                const fs::directory_entry& entry) {
    const std::string path = entry.path().string();
    if (format_ == FileFormat::kEventFiles) return PassOver(path, "no event file by name");
    const absl::StatusOr<std::string> head = ReadHead(path);
    if (!head.ok()) return PassOver(path, head.status().message());
    const auto format = DetectFormatOfBytes(*head);
    if (!format) return PassOver(path, "no log of a known format");
    if (format_ && *format_ != *format) {
      return PassOver(path, absl::StrCat("it is ", FormatTitle(*format)));
    }
    if (!IsSurelyLog(*format, *head, options_)) {
      return PassOver(path, absl::StrCat(FormatTitle(*format), " without a step or time"));
    }
    if (*format == FileFormat::kEventFiles) return AddEventFile(directory, run, path);
    AddFile(*format, path, client::RunBelow(run, entry.path().stem().string()));
  }

  const std::optional<FileFormat> format_;
  const ReadOptions& options_;
  PassedOver& passed_over_;            // Counts those of all paths.
  PassedOver* passed_here_ = nullptr;  // Counts those of the directory that is walked.
  std::vector<FoundRun> found_;
  std::set<std::string> seen_;            // Paths in found_.
  std::map<std::string, FoundRun> runs_;  // The runs of event files, by directory.
  size_t files_ = 0;
  size_t logs_ = 0;  // Log files found; one that two paths lead to counts twice.
};

}  // namespace

void PassedOver::Add(const std::string& path, absl::string_view why) {
  ++files;
  if (first.size() < kMaxNamed) first.emplace_back(path, std::string(why));
}

absl::StatusOr<std::vector<FoundRun>> FindRuns(const std::vector<std::string>& paths,
                                               std::optional<FileFormat> format,
                                               const ReadOptions& options,
                                               PassedOver* passed_over) {
  FileSearch search(format, options, passed_over);
  for (const std::string& path : paths) {
    if (absl::Status status = search.Add(path); !status.ok()) return status;
  }
  return search.Take();
}

}  // namespace tacho::importer
