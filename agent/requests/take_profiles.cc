// Profiles of trainers. The calls run side by side on gRPC's threads: a trace of ten seconds of
// eight trainers takes ten seconds, and shows them at the same time.
#include "agent/requests/take_profiles.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "agent/requests/trainers.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "interop/profiler_service.grpc.pb.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "tacho_";
constexpr size_t kMaxNameBytes = 100;
constexpr int kMaxTools = 32;

// What may be a part of a file's name.
std::string NamePart(absl::string_view text) {
  std::string name(text.substr(0, kMaxNameBytes));
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(byte) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return name;
}

uint32_t PortOf(const Trainer& trainer, uint32_t fallback) {
  uint32_t port = fallback;
  for (const client::RingAttribute& attribute : trainer.attributes) {
    uint32_t recorded = 0;
    if (attribute.key != kProfilerPort) continue;
    if (absl::SimpleAtoi(attribute.value, &recorded) && recorded <= 65535) port = recorded;
  }
  return port;
}

// One call, from its start to its answer.
struct Capture {
  v1::TaskProfile* profile = nullptr;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<tensorflow::ProfilerService::Stub> stub;
  grpc::ClientContext context;
  tensorflow::ProfileRequest request;
  tensorflow::ProfileResponse response;
  grpc::Status status;
};

void Start(uint32_t port, uint32_t duration_ms, uint64_t max_bytes, absl::Time until,
           absl::BlockingCounter* left, Capture* capture) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(max_bytes));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The server has no TLS, and is on this machine.
  capture->channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                               grpc::InsecureChannelCredentials(), arguments);
  capture->stub = tensorflow::ProfilerService::NewStub(capture->channel);
  capture->request.set_duration_ms(duration_ms);
  capture->request.set_emit_xspace(true);
  tensorflow::ProfileOptions* const options = capture->request.mutable_opts();
  options->set_version(1);
  options->set_duration_ms(duration_ms);
  options->set_host_tracer_level(2);
  options->set_device_tracer_level(1);
  options->set_enable_hlo_proto(true);
  capture->context.set_deadline(absl::ToChronoTime(absl::Now() + (until - MonotonicNow())));
  capture->stub->async()->Profile(&capture->context, &capture->request, &capture->response,
                                  [capture, left](const grpc::Status& status) {
                                    capture->status = status;
                                    left->DecrementCount();
                                  });
}

absl::Status WriteFile(const fs::path& path, absl::string_view bytes) {
  const fs::path part = path.string() + ".part";
  {
    std::ofstream out(part, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) return absl::UnavailableError(absl::StrCat("cannot write ", part.string()));
  }
  std::error_code error;
  fs::rename(part, path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot rename ", part.string(), ": ", error.message()));
}

// Stores what came, and says so in the profile.
absl::Status Store(const fs::path& run, const std::string& name, uint64_t max_bytes,
                   Capture* capture) {
  const tensorflow::ProfileResponse& response = capture->response;
  if (!capture->status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the profiler server: ", capture->status.error_message()));
  }
  uint64_t bytes = response.xspace().size();
  for (const auto& tool : response.tool_data()) bytes += tool.data().size();
  if (bytes == 0) {
    return absl::NotFoundError(
        "the profiler server returned an empty trace: was anything running?");
  }
  if (bytes > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the trace has ", bytes, " bytes; requests.profiles.max_bytes allows ", max_bytes));
  }
  std::error_code error;
  fs::create_directories(run, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot create ", run.string(), ": ", error.message()));
  }
  fs::path stored;
  for (int i = 0; i < std::min(response.tool_data_size(), kMaxTools); ++i) {
    const auto& tool = response.tool_data(i);
    stored = run / absl::StrCat(name, ".", NamePart(tool.name()));
    if (absl::Status status = WriteFile(stored, tool.data()); !status.ok()) return status;
  }
  if (!response.xspace().empty()) {
    stored = run / absl::StrCat(name, ".xplane.pb");
    if (absl::Status status = WriteFile(stored, response.xspace()); !status.ok()) return status;
  }
  capture->profile->set_path(stored.string());
  capture->profile->set_bytes(bytes);
  return absl::OkStatus();
}

}  // namespace

void RemoveOldProfiles(const std::string& directory, uint64_t max_bytes, uint32_t max_count) {
  struct Run {
    fs::file_time_type time;
    fs::path path;
    uint64_t bytes = 0;
  };
  std::vector<Run> runs;
  std::error_code error;
  for (fs::directory_iterator entry(fs::path(directory) / "plugins" / "profile", error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const bool ours = absl::StartsWith(entry->path().filename().string(), kPrefix);
    if (!ours || entry->is_symlink(ignored) || !entry->is_directory(ignored)) continue;
    Run run{.time = entry->last_write_time(ignored), .path = entry->path()};
    for (fs::directory_iterator file(run.path, ignored); !ignored && file != end;
         file.increment(ignored)) {
      std::error_code gone;
      const uint64_t size = file->file_size(gone);
      if (!gone) run.bytes += size;
    }
    runs.push_back(std::move(run));
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.time > b.time; });
  uint64_t bytes = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    bytes += runs[i].bytes;
    if (i < max_count && bytes <= max_bytes) continue;
    fs::remove_all(runs[i].path, error);
  }
}

v1::AgentFindings TakeProfiles(const ProfilesOptions& options, const v1::AgentRequest& request,
                               absl::Time until) {
  v1::AgentFindings findings;
  const auto trainers = FindTrainers(options.rings, request);
  if (!trainers.ok()) {
    findings.set_refusal(std::string(trainers.status().message()));
    return findings;
  }
  std::vector<std::pair<const Trainer*, v1::TaskProfile*>> to_ask;
  for (const Trainer& trainer : *trainers) {
    v1::TaskProfile* const profile = findings.add_profiles();
    profile->set_task(trainer.info.task);
    if (PortOf(trainer, options.config.port()) != 0) {
      to_ask.emplace_back(&trainer, profile);
      continue;
    }
    profile->set_trouble(
        "no port of a profiler server is known: record the attribute profiler_port, or set "
        "requests.profiles.port in the agent's configuration");
  }
  if (to_ask.empty()) return findings;
  const uint64_t max_bytes = std::min<uint64_t>(options.config.max_bytes(), kMaxTraceBytes);
  std::deque<Capture> captures(to_ask.size());
  absl::BlockingCounter left(static_cast<int>(to_ask.size()));
  for (size_t i = 0; i < to_ask.size(); ++i) {
    captures[i].profile = to_ask[i].second;
    Start(PortOf(*to_ask[i].first, options.config.port()), request.profile().duration_ms(),
          max_bytes / to_ask.size(), until, &left, &captures[i]);
  }
  left.Wait();  // The calls have a deadline.
  const std::string time =
      absl::FormatTime("%Y-%m-%d_%H-%M-%S", options.now(), absl::UTCTimeZone());
  const fs::path run =
      fs::path(options.config.directory()) / "plugins" / "profile" /
      absl::StrCat(kPrefix, NamePart(request.job()), "_", request.attempt(), "_", time);
  for (Capture& capture : captures) {
    const std::string name = absl::StrCat(NamePart(options.host), "_task", capture.profile->task());
    const absl::Status stored = Store(run, name, max_bytes, &capture);
    if (!stored.ok()) capture.profile->set_trouble(std::string(stored.message()));
    capture.response.Clear();
  }
  RemoveOldProfiles(options.config.directory(), options.config.max_bytes(),
                    options.config.max_count());
  return findings;
}

}  // namespace tacho::agent
