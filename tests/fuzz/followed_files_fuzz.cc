// Files that the agent follows while others write them: logs of JSON lines and event files, whole
// and in two pieces, through the sources that read them.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/sources/text/json_lines_source.h"
#include "agent/sources/tfevents/tfevents_source.h"
#include "tests/agent/recording_sink.h"

namespace {

namespace fs = std::filesystem;
using tacho::agent::testing::RecordingSink;

class Files {
 public:
  Files() : root_(fs::temp_directory_path() / absl::StrCat("followed_files_", ::getpid())) {
    fs::create_directories(root_ / "run");
  }
  ~Files() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string root() const { return root_.string(); }
  std::string file() const { return (root_ / "run" / "events.out.tfevents.1").string(); }
  void Append(absl::string_view bytes) const {
    std::ofstream(file(), std::ios::app | std::ios::binary) << bytes;
  }
  void Clear() const { std::ofstream(file(), std::ios::trunc); }

 private:
  const fs::path root_;
};

std::unique_ptr<tacho::agent::Source> MakeLines(const std::string& file) {
  tacho::config::v1::JsonLines config;
  config.set_poll_interval(1'000'000'000);
  auto* const one = config.add_files();
  one->set_path(file);
  one->set_job("job");
  one->set_step_field("step");
  one->set_time_field("time");
  return *tacho::agent::JsonLinesSource::Create(config, {.host = "h"});
}

std::unique_ptr<tacho::agent::Source> MakeEvents(const std::string& root) {
  tacho::config::v1::Agent::Tfevents config;
  config.set_poll_interval(1'000'000'000);
  auto* const directory = config.add_directories();
  directory->set_path(root);
  directory->set_run_pattern("(?P<job>.*)");
  directory->set_job("{job}");
  return *tacho::agent::TfeventsSource::Create(config, {.host = "h"});
}

void Poll(tacho::agent::Source* source, absl::Time* now, RecordingSink* sink) {
  *now += absl::Seconds(2);
  for (int turn = 0; turn < 100 && source->Poll(*now, sink) <= *now; ++turn) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Files files;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t cut = bytes.size() * data[0] / 256;
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  files.Clear();
  RecordingSink sink;
  for (const bool lines : {true, false}) {
    files.Clear();
    auto source = lines ? MakeLines(files.file()) : MakeEvents(files.root());
    files.Append(bytes.substr(0, cut));
    Poll(source.get(), &now, &sink);
    source = lines ? MakeLines(files.file()) : MakeEvents(files.root());  // A restart.
    files.Append(bytes.substr(cut));
    Poll(source.get(), &now, &sink);
    const size_t read = sink.samples.size();
    Poll(source.get(), &now, &sink);
    if (sink.samples.size() != read) std::abort();  // Nothing new was there.
  }
  return 0;
}
