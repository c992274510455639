// Damages every byte of every file of a small store or spool, and cuts every file at every length,
// and judges what becomes of each. Ends with a table by kind of file; the exit status is 0 only if
// no answer was wrong, nothing crashed, and the end of what was recorded was lost without a word
// only where a log was damaged (docs/reliability.md).
//
//   tacho-damage-campaign [--slice N] [--slices M] [--jobs J] [--seed S] [--dir D]
//   [--only KIND] [--without KIND]
//
// Each try is made in a process that may die of it: it names the try before, and is replaced.
// --slices M --slice N makes only every M-th try, from the N-th on. Another seed flips other bits.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/crash/damage_victims.h"
#include "tests/support/flags.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string dir = "/tmp/tacho-damage";
  std::string only;  // Kinds of files; empty: all.
  std::string without;
  uint64_t slice = 0;
  uint64_t slices = 1;
  uint64_t jobs = 1;
  uint64_t seed = 0;
};

// A try that takes longer hangs. Most take some milliseconds.
constexpr absl::Duration kPatience = absl::Minutes(2);

// What a worker reports. The try that is named when it dies is the one that it died of.
struct Report {
  uint64_t index = 0;
  uint8_t outcome = 0;  // kBegins, or an Outcome.
  uint32_t text_bytes = 0;
};
constexpr uint8_t kBegins = 255;

// Columns of the table: every Outcome, then these two.
constexpr size_t kCrashed = 5;
constexpr size_t kHung = 6;
constexpr size_t kColumns = 7;

struct Try {
  std::string path;
  enum class How { kFlip, kCut, kRemove } how = How::kFlip;
  size_t at = 0;
};
absl::string_view NameOf(Try::How how) {
  return how == Try::How::kFlip ? "a bit flipped" : how == Try::How::kCut ? "truncated" : "removed";
}

class Plan {
 public:
  Plan(const DamageImage& image, const Flags& flags) {
    for (const auto& [path, kind] : image.kinds) {
      if (kind == flags.without || (!flags.only.empty() && kind != flags.only)) continue;
      const auto file = image.files.find(path);
      if (file != image.files.end()) files_.emplace_back(path, file->second.size());
    }
    for (const auto& [path, size] : files_) tries_ += 2 * size + 1;
  }
  uint64_t tries() const { return tries_; }
  Try At(uint64_t index) const {
    for (const auto& [path, size] : files_) {
      if (index < size) return {path, Try::How::kFlip, index};
      if (index < 2 * size) return {path, Try::How::kCut, index - size};
      if (index == 2 * size) return {path, Try::How::kRemove, 0};
      index -= 2 * size + 1;
    }
    return {};
  }

 private:
  std::vector<std::pair<std::string, size_t>> files_;
  uint64_t tries_ = 0;
};

void WriteAll(int fd, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written <= 0) ::_exit(3);  // The campaign is gone.
    at += written;
    size -= static_cast<size_t>(written);
  }
}

struct Worker {
  pid_t pid = -1;
  int fd = -1;
  uint64_t next = 0;  // Its next try; it makes every step-th.
  bool busy = false;  // With the try before `next`.
  std::string in;     // Read, not yet taken.
  absl::Time heard;
};

class Campaign {
 public:
  explicit Campaign(Flags flags) : flags_(std::move(flags)) {}

  int Run() {
    if (!MakeImage()) {
      std::cout << "FAILED: what is to be damaged could not be made\n";
      return 1;
    }
    const Plan plan(image_, flags_);
    step_ = flags_.slices * flags_.jobs;
    workers_.resize(flags_.jobs);
    for (uint64_t j = 0; j < flags_.jobs; ++j) {
      workers_[j].next = flags_.slice + j * flags_.slices;
      Start(plan, &workers_[j]);
    }
    while (AnyRuns()) Attend(plan);
    return Finish();
  }

 private:
  // In a process of its own: a process with threads must not fork the workers.
  bool MakeImage() {
    fs::create_directories(flags_.dir);
    const std::string file = absl::StrCat(flags_.dir, "/image.", ::getpid());
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::ofstream(file, std::ios::binary) << EncodeImage(MakeVictim()->Make());
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) return false;
    std::ifstream in(file, std::ios::binary);
    image_ = DecodeImage(std::string(std::istreambuf_iterator<char>(in), {}));
    fs::remove(file);
    return !image_.kinds.empty();
  }

  void Start(const Plan& plan, Worker* worker) {
    worker->in.clear();
    worker->busy = false;
    worker->heard = absl::Now();
    if (worker->next >= plan.tries()) return;
    int ends[2];
    if (::pipe(ends) != 0) ::abort();
    worker->pid = ::fork();
    if (worker->pid == 0) {
      ::close(ends[0]);
      Work(plan, worker->next, ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    worker->fd = ends[0];
  }

  void Work(const Plan& plan, uint64_t from, int fd) {
    const auto victim = MakeVictim();
    victim->Load(image_);
    for (uint64_t index = from; index < plan.tries(); index += step_) {
      const Report begins{index, kBegins, 0};
      WriteAll(fd, &begins, sizeof(begins));
      const Judgement judgement = victim->Judge(Damaged(plan.At(index)));
      const std::string text = judgement.text.substr(0, 400);
      const Report done{index, static_cast<uint8_t>(judgement.outcome),
                        static_cast<uint32_t>(text.size())};
      WriteAll(fd, &done, sizeof(done));
      WriteAll(fd, text.data(), text.size());
    }
  }

  tacho::testing::PowerCutEnv::Files Damaged(const Try& what) const {
    auto files = image_.files;
    std::string& bytes = files[what.path];
    if (what.how == Try::How::kFlip) {
      bytes[what.at] = static_cast<char>(bytes[what.at] ^ (1 << ((what.at + flags_.seed) % 8)));
    } else {
      bytes.resize(what.at);
    }
    if (what.how == Try::How::kRemove) files.erase(what.path);
    return files;
  }

  bool AnyRuns() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.pid > 0; });
  }

  void Attend(const Plan& plan) {
    std::vector<pollfd> polls;
    std::vector<Worker*> polled;
    for (Worker& worker : workers_) {
      if (worker.pid <= 0) continue;
      polls.push_back({worker.fd, POLLIN, 0});
      polled.push_back(&worker);
    }
    ::poll(polls.data(), polls.size(), 1000);
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents != 0) {
        Hear(plan, polled[i]);
      } else if (absl::Now() - polled[i]->heard > kPatience) {
        End(plan, polled[i], kHung);
      }
    }
  }

  void Hear(const Plan& plan, Worker* worker) {
    char bytes[65536];
    const ssize_t size = ::read(worker->fd, bytes, sizeof(bytes));
    if (size <= 0) return End(plan, worker, kCrashed);
    worker->heard = absl::Now();
    worker->in.append(bytes, static_cast<size_t>(size));
    Report report;
    size_t at = 0;
    while (worker->in.size() - at >= sizeof(report)) {
      std::memcpy(&report, worker->in.data() + at, sizeof(report));
      if (worker->in.size() - at - sizeof(report) < report.text_bytes) break;
      const std::string text = worker->in.substr(at + sizeof(report), report.text_bytes);
      at += sizeof(report) + report.text_bytes;
      worker->busy = report.outcome == kBegins;
      worker->next = report.index + step_;
      if (!worker->busy) Count(plan.At(report.index), report.outcome, text);
    }
    worker->in.erase(0, at);
  }

  // The worker has ended, or is ended.
  void End(const Plan& plan, Worker* worker, size_t how) {
    ::kill(worker->pid, SIGKILL);
    int status = 0;
    ::waitpid(worker->pid, &status, 0);
    ::close(worker->fd);
    worker->pid = -1;
    if (worker->busy) {
      Count(plan.At(worker->next - step_), how, absl::StrCat("wait status ", status));
    } else if (how == kCrashed && status != 0) {
      ++astray_;
    }
    if (worker->next < plan.tries()) Start(plan, worker);
  }

  void Count(const Try& what, size_t column, const std::string& text) {
    const std::pair key(image_.kinds.at(what.path), std::string(NameOf(what.how)));
    ++tallies_[key][column];
    ++totals_[column];
    const bool told = column == static_cast<size_t>(Outcome::kRefused) ||
                      column == static_cast<size_t>(Outcome::kContained);
    if (told && !NamesWhatIsDamaged(text)) Note(&unnamed_, what, text);
    // RocksDB takes a log that is cut, and a record whose length reaches behind the end, for the
    // torn end that a crash leaves.
    const bool tail_lost = column == static_cast<size_t>(Outcome::kTailLost);
    if (tail_lost && key.first != "log") Note(&faults_, what, text);
    if (column >= static_cast<size_t>(Outcome::kWrong)) Note(&faults_, what, text);
  }

  static void Note(std::vector<std::string>* notes, const Try& what, const std::string& text) {
    notes->push_back(absl::StrCat(what.path, ", ", NameOf(what.how), " at ", what.at, ": ", text));
  }

  int Finish() {
    std::map<std::string, size_t> bytes;
    for (const auto& [path, kind] : image_.kinds) bytes[kind] += image_.files.at(path).size();
    std::cout << "| file | bytes | damage | tries | refused | contained | harmless | tail lost | "
                 "wrong | crashed | hung |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    uint64_t tries = 0;
    for (const auto& [key, counts] : tallies_) {
      uint64_t sum = 0;
      std::string cells;
      for (const uint64_t count : counts) {
        sum += count;
        absl::StrAppend(&cells, " ", count, " |");
      }
      tries += sum;
      std::cout << absl::StrFormat("| %s | %d | %s | %d |%s\n", key.first, bytes[key.first],
                                   key.second, sum, cells);
    }
    for (const auto* notes : {&unnamed_, &faults_}) {
      if (notes->empty()) continue;
      std::cout << notes->size() << (notes == &faults_ ? " faults" : " errors name no file")
                << ", the first of them:\n";
      for (size_t i = 0; i < notes->size() && i < 20; ++i) std::cout << "  " << (*notes)[i] << "\n";
    }
    std::cout << absl::StrFormat(
        "report {\"tries\": %d, \"refused\": %d, \"contained\": %d, \"harmless\": %d, "
        "\"tail_lost\": %d, \"wrong\": %d, \"crashed\": %d, \"hung\": %d, \"unnamed\": %d}\n",
        tries, totals_[0], totals_[1], totals_[2], totals_[3], totals_[4], totals_[kCrashed],
        totals_[kHung], unnamed_.size());
    const bool good = faults_.empty() && unnamed_.empty() && astray_ == 0 && tries > 0;
    std::cout << (good ? "no wrong answer, no crash\n" : "FAILED\n");
    return good ? 0 : 1;
  }

  const Flags flags_;
  DamageImage image_;
  uint64_t step_ = 1;
  std::vector<Worker> workers_;
  std::map<std::pair<std::string, std::string>, std::array<uint64_t, kColumns>> tallies_;
  std::array<uint64_t, kColumns> totals_ = {};
  std::vector<std::string> unnamed_;
  std::vector<std::string> faults_;
  uint64_t astray_ = 0;  // Workers that died between two tries.
};

bool Parse(int argc, char** argv, Flags* flags) {
  const bool good = testing::ParseFlags(argc, argv,
                                        {{"dir", &flags->dir},
                                         {"only", &flags->only},
                                         {"without", &flags->without},
                                         {"slice", &flags->slice},
                                         {"slices", &flags->slices},
                                         {"jobs", &flags->jobs},
                                         {"seed", &flags->seed}});
  return good && flags->jobs > 0 && flags->slice < flags->slices;
}

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  if (!tacho::crash::Parse(argc, argv, &flags)) {
    std::cerr << "tacho-damage-campaign [--slice N] [--slices M] [--jobs J] "
                 "[--seed S] [--dir D] [--only KIND] [--without KIND]\n";
    return 2;
  }
  return tacho::crash::Campaign(std::move(flags)).Run();
}
