// Decides what each file of an import stands for: a run, a task, an attempt or a host.
#include "client/import/units.h"

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/import/input_file.h"
#include "client/import/readers.h"
#include "client/import/text_source.h"
#include "proto/base/status_macros.h"
#include "re2/re2.h"

namespace tacho::importer {
namespace {

namespace fs = std::filesystem;

// Names that occur more than once get a number.
void NumberNames(std::vector<Unit>* units) {
  std::map<std::string, size_t> seen;
  for (Unit& unit : *units) {
    const size_t times = ++seen[unit.name];
    if (times > 1) absl::StrAppend(&unit.name, "-", times);
  }
}

// Names the units by the parts in which their paths differ, without the ends of file names.
void NameUnits(std::vector<Unit>* units) {
  std::vector<fs::path> paths;
  for (const Unit& unit : *units) {
    const fs::path path = fs::path(unit.paths[0]).lexically_normal();
    paths.push_back(unit.format == FileFormat::kEventFiles ? path.parent_path() : path);
  }
  if (paths.empty()) return;
  fs::path common = paths[0].parent_path();
  for (const fs::path& path : paths) {
    // A run directory above others is itself what they have in common.
    while (
        !common.empty() && common != common.root_path() &&
        !absl::StartsWith(absl::StrCat(path.string(), "/"), absl::StrCat(common.string(), "/"))) {
      common = common.parent_path();
    }
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    fs::path name = common.empty() ? paths[i] : paths[i].lexically_relative(common);
    if ((*units)[i].format != FileFormat::kEventFiles) name.replace_extension();
    std::string text = name.string();
    if (text == "." || text.empty()) text = paths[i].filename().string();
    (*units)[i].name = text;
  }
}

// Sets the options that the groups of the pattern find in the unit's name. False if it does not
// match.
absl::StatusOr<bool> ApplyPattern(const RE2& pattern, Unit* unit) {
  const auto& groups = pattern.NamedCapturingGroups();
  std::vector<re2::StringPiece> found(static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1);
  const re2::StringPiece name(unit->name);
  if (!pattern.Match(name, 0, name.size(), RE2::ANCHOR_BOTH, found.data(),
                     static_cast<int>(found.size()))) {
    return false;
  }
  for (const auto& [group, index] : groups) {
    const re2::StringPiece piece = found[static_cast<size_t>(index)];
    if (piece.data() == nullptr) continue;
    const std::string text(piece.data(), piece.size());
    uint32_t number = 0;
    if (group == "host") {
      unit->options.host = text;
    } else if (!absl::SimpleAtoi(text, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("--run-pattern: '", text, "' in '", unit->name,
                                                     "' is no number of a ", group));
    } else if (group == "task") {
      unit->options.task = number;
    } else {
      unit->options.attempt = number;
      unit->options.fixed_attempt = true;
    }
  }
  return true;
}

absl::Status ApplyPatterns(const std::string& text, std::vector<Unit>* units) {
  const RE2 pattern(text, RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run-pattern '", text, "': ", pattern.error()));
  }
  for (const auto& [group, index] : pattern.NamedCapturingGroups()) {
    if (group == "attempt" || group == "task" || group == "host") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--run-pattern has the group '", group, "': expected attempt, task or host"));
  }
  std::vector<Unit> matching;
  for (Unit& unit : *units) {
    TACHO_ASSIGN_OR_RETURN(const bool matches, ApplyPattern(pattern, &unit));
    if (matches) matching.push_back(std::move(unit));
  }
  if (matching.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--run-pattern '", text,
                                                   "' matches no run; the "
                                                   "first is '",
                                                   units->front().name, "'"));
  }
  *units = std::move(matching);
  return absl::OkStatus();
}

void TellApart(UnitOptions::Each each, std::vector<Unit>* units) {
  if (units->size() < 2) return;
  for (size_t i = 0; i < units->size(); ++i) {
    Unit& unit = (*units)[i];
    const auto number = static_cast<uint32_t>(i);
    switch (each) {
      case UnitOptions::Each::kRun:
        unit.options.labels.emplace_back("run", unit.name);
        break;
      case UnitOptions::Each::kTask:
        unit.options.task = unit.options.task.value_or(0) + number;
        break;
      case UnitOptions::Each::kAttempt:
        unit.options.attempt += number;
        unit.options.fixed_attempt = true;
        break;
      case UnitOptions::Each::kHost:
        unit.options.host = unit.name;
        break;
    }
  }
}

// Counts what has been read of a file.
class CountedSource : public ByteSource {
 public:
  CountedSource(std::unique_ptr<InputFile> file, absl::FunctionRef<void(uint64_t)> progress)
      : file_(std::move(file)), progress_(progress) {}
  size_t Read(char* buffer, size_t size) override {
    const size_t got = file_->Read(buffer, size);
    progress_(got);
    return got;
  }
  absl::Status status() const override { return file_->status(); }

 private:
  const std::unique_ptr<InputFile> file_;
  const absl::FunctionRef<void(uint64_t)> progress_;
};

absl::Status ReadFile(const Unit& unit, OpenSource open, RecordSink* sink) {
  switch (unit.format) {
    case FileFormat::kCsv:
      return ReadCsv(open, unit.options, sink);
    case FileFormat::kJsonLines:
      return ReadJsonLines(open, unit.options, sink);
    case FileFormat::kMlperf:
      return ReadMlperfLog(open, unit.options, sink);
    case FileFormat::kTrainerState:
      return ReadTrainerState(open, unit.options, sink);
    case FileFormat::kMegatron:
      return ReadMegatron(open, unit.options, sink);
    case FileFormat::kStepLog:
      return ReadStepLog(open, unit.options, sink);
    case FileFormat::kMonitor:
      return ReadMonitor(open, unit.options, sink);
    case FileFormat::kSmi:
      return ReadSmi(open, unit.options, sink);
    case FileFormat::kEventFiles:
      break;
  }
  return absl::InternalError("a format without a reader");
}

}  // namespace

absl::StatusOr<std::vector<Unit>> FindUnits(const std::vector<std::string>& paths,
                                            const UnitOptions& options, PassedOver* passed_over) {
  PassedOver unwanted;
  TACHO_ASSIGN_OR_RETURN(auto runs, FindRuns(paths, options.format, options.read,
                                             passed_over == nullptr ? &unwanted : passed_over));
  std::vector<Unit> units;
  for (FoundRun& run : runs) {
    Unit& unit = units.emplace_back();
    unit.format = run.format;
    unit.paths = std::move(run.paths);
    unit.name = std::move(run.name);
  }
  // Below one directory, names are those from it; of several paths, they have to tell them apart.
  std::error_code ignored;
  if (paths.size() != 1 || !fs::is_directory(paths[0], ignored)) NameUnits(&units);
  NumberNames(&units);
  for (Unit& unit : units) {
    unit.options = options.read;
    unit.options.fixed_attempt = options.attempt_given;
    for (const std::string& path : unit.paths) {
      std::error_code error;
      const auto size = fs::file_size(path, error);
      if (!error) unit.bytes += size;
    }
  }
  if (!options.run_pattern.empty()) {
    TACHO_RETURN_IF_ERROR(ApplyPatterns(options.run_pattern, &units));
  } else {
    TellApart(options.each, &units);
  }
  return units;
}

absl::Status ReadUnit(const Unit& unit, absl::FunctionRef<void(uint64_t bytes)> progress,
                      RecordSink* sink) {
  if (unit.format == FileFormat::kEventFiles) {
    return ReadEventFiles(unit.paths, unit.options, progress, sink);
  }
  const std::string& path = unit.paths[0];
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<ByteSource>> {
    TACHO_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
    return std::make_unique<TextSource>(std::make_unique<CountedSource>(std::move(file), progress));
  };
  absl::Status status = ReadFile(unit, open, sink);
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return {status.code(), absl::StrCat(path, ": ", status.message())};
}

}  // namespace tacho::importer
