#include "client/environment_identity.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <system_error>

#include "client/ring/ring_text.h"

namespace tacho::client {
namespace {

constexpr size_t kShownBytes = 64;

class Finder {
 public:
  explicit Finder(const EnvironmentGetter& environment) : environment_(environment) {}

  const std::string& trouble() const { return trouble_; }

  std::string Text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }
  bool Has(const char* name) const { return !Text(name).empty(); }

  // nullopt if it is absent; sets `trouble` if it is no number.
  std::optional<uint32_t> Number(const char* name) {
    const std::string text = Text(name);
    if (text.empty()) return std::nullopt;
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    Fail(std::string(name) + "=\"" + CleanText(text, kShownBytes) +
         "\" is no number from 0 to 4294967295");
    return std::nullopt;
  }

  std::optional<uint32_t> First(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (Has(name)) return Number(name);
    }
    return std::nullopt;
  }

  // index + group * size, all of which are there or known to be 0.
  std::optional<uint32_t> Combine(uint32_t index, uint32_t group, uint32_t size) {
    const uint64_t combined = uint64_t{group} * size + index;
    if (combined <= UINT32_MAX) return static_cast<uint32_t>(combined);
    Fail("the task's number is beyond 4294967295: set TACHO_TASK");
    return std::nullopt;
  }

  void Fail(std::string what) {
    if (trouble_.empty()) trouble_ = std::move(what);
  }

 private:
  const EnvironmentGetter& environment_;
  std::string trouble_;
};

std::string SlurmJob(const Finder& find) {
  const std::string id = find.Text("SLURM_JOB_ID");
  if (id.empty()) return "";
  const std::string name = find.Text("SLURM_JOB_NAME");
  return (name.empty() ? "slurm" : name) + "-" + id;
}

std::string FindJob(const Finder& find) {
  for (const char* name : {"TACHO_JOB", "JOBSET_NAME"}) {
    if (find.Has(name)) return find.Text(name);
  }
  if (std::string slurm = SlurmJob(find); !slurm.empty()) return slurm;
  std::string run = find.Text("TORCHELASTIC_RUN_ID");
  if (!run.empty() && run != "none") return run;
  return find.Text("TPU_NAME");
}

std::optional<uint32_t> KubernetesTask(Finder* find) {
  const std::optional<uint32_t> index = find->Number("JOB_COMPLETION_INDEX");
  const std::optional<uint32_t> job = find->First({"JOB_GLOBAL_INDEX", "JOB_INDEX"});
  if (!index) return std::nullopt;
  if (!job) {
    // Each slice of a TPU job is a Job of its own that counts from 0: the TPU's variables know.
    return find->Has("MEGASCALE_SLICE_ID") ? std::nullopt : index;
  }
  const std::optional<uint32_t> pods = find->Number("PROCESSES_IN_JOB");
  if (*job != 0 && !pods) {
    find->Fail(
        "JOB_INDEX or JOB_GLOBAL_INDEX is not 0, and without PROCESSES_IN_JOB the task's number is "
        "not known: set that or TACHO_TASK");
  }
  return find->Combine(*index, *job, pods.value_or(0));
}

std::optional<uint32_t> TpuTask(Finder* find) {
  const std::optional<uint32_t> worker = find->Number("TPU_WORKER_ID");
  if (!worker) return std::nullopt;
  const uint32_t slice = find->Number("MEGASCALE_SLICE_ID").value_or(0);
  const std::string hosts = find->Text("TPU_WORKER_HOSTNAMES");
  if (slice != 0 && hosts.empty()) {
    find->Fail(
        "MEGASCALE_SLICE_ID is not 0, and without TPU_WORKER_HOSTNAMES the task's number is not "
        "known: set that or TACHO_TASK");
  }
  const auto commas = std::count(hosts.begin(), hosts.end(), ',');
  return find->Combine(*worker, slice, static_cast<uint32_t>(commas) + 1);
}

uint32_t FindTask(Finder* find) {
  if (find->Has("TACHO_TASK")) return find->Number("TACHO_TASK").value_or(0);
  if (find->Has("RANK") && (find->Has("TORCHELASTIC_RUN_ID") || find->Has("WORLD_SIZE"))) {
    return find->Number("RANK").value_or(0);
  }
  if (const auto task = KubernetesTask(find)) return *task;
  if (const auto task = find->Number("SLURM_PROCID")) return *task;
  return TpuTask(find).value_or(0);
}

uint32_t FindAttempt(Finder* find) {
  return find
      ->First({"TACHO_ATTEMPT", "JOBSET_RESTART_ATTEMPT", "SLURM_RESTART_COUNT",
               "TORCHELASTIC_RESTART_COUNT"})
      .value_or(0);
}

}  // namespace

AttemptIdentity FindIdentity(const std::string& job, std::optional<uint32_t> task,
                             std::optional<uint32_t> attempt,
                             const EnvironmentGetter& environment) {
  Finder find(environment);
  AttemptIdentity identity;
  identity.job = job.empty() ? FindJob(find) : job;
  identity.task = task ? *task : FindTask(&find);
  identity.attempt = attempt ? *attempt : FindAttempt(&find);
  identity.trouble = find.trouble();
  return identity;
}

}  // namespace tacho::client
