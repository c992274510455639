// Collects facts about this machine from the configuration, the environment, files of the pod and
// the metadata server. Each fact keeps its origin, so that diagnose can show it.
#include "agent/sources/identity/host_facts.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/fetch/bounded_file.h"
#include "agent/sources/identity/fact_files.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

struct Place {
  const char* label;
  const char* where;
};

// In the order in which series have them when there is no room for all.
constexpr const char* kOrder[] = {"zone",
                                  "machine_type",
                                  "accelerator_type",
                                  "tpu_topology",
                                  "tpu_name",
                                  "tpu_slice",
                                  "tpu_worker",
                                  "node",
                                  "namespace",
                                  "pod",
                                  "jobset",
                                  "slurm_job",
                                  "slurm_partition",
                                  "node_pool",
                                  "cluster",
                                  "instance_id",
                                  "instance_name",
                                  "project",
                                  "preemptible"};

// If several variables give one label, the first that is set counts.
constexpr Place kVariables[] = {{"node", "NODE_NAME"},
                                {"node", "SLURMD_NODENAME"},
                                {"pod", "POD_NAME"},
                                {"namespace", "POD_NAMESPACE"},
                                {"jobset", "JOBSET_NAME"},
                                {"accelerator_type", "TPU_ACCELERATOR_TYPE"},
                                {"tpu_topology", "TPU_TOPOLOGY"},
                                {"tpu_name", "TPU_NAME"},
                                {"tpu_worker", "TPU_WORKER_ID"},
                                {"tpu_slice", "MEGASCALE_SLICE_ID"},
                                {"slurm_job", "SLURM_JOB_ID"},
                                {"slurm_partition", "SLURM_JOB_PARTITION"},
                                {"cluster", "SLURM_CLUSTER_NAME"}};

constexpr Place kPodLabels[] = {{"jobset", "jobset.sigs.k8s.io/jobset-name"}};

constexpr Place kInstance[] = {{"instance_id", "instance/id"},
                               {"zone", "instance/zone"},
                               {"machine_type", "instance/machine-type"},
                               {"instance_name", "instance/name"},
                               {"project", "project/project-id"},
                               {"cluster", "instance/attributes/cluster-name"},
                               {"preemptible", "instance/scheduling/preemptible"}};

// Attributes that anybody may set for anything, and that mean this on a TPU VM.
constexpr Place kTpuAttributes[] = {{"tpu_worker", "instance/attributes/agent-worker-number"},
                                    {"tpu_name", "instance/attributes/instance-id"}};

constexpr Place kTpuEnv[] = {{"accelerator_type", "ACCELERATOR_TYPE"},
                             {"tpu_topology", "TOPOLOGY"},
                             {"tpu_name", "NODE_ID"},
                             {"tpu_worker", "WORKER_ID"},
                             {"tpu_slice", "MEGASCALE_SLICE_ID"},
                             {"zone", "ZONE"},
                             {"preemptible", "PREEMPTIBLE"}};

constexpr Place kNodeLabels[] = {{"accelerator_type", "cloud.google.com/gke-tpu-accelerator"},
                                 {"accelerator_type", "cloud.google.com/gke-accelerator"},
                                 {"tpu_topology", "cloud.google.com/gke-tpu-topology"},
                                 {"node_pool", "cloud.google.com/gke-nodepool"}};

constexpr char kTpuEnvPath[] = "instance/attributes/tpu-env";
constexpr char kNodeLabelsPath[] = "instance/attributes/kube-labels";

template <size_t kSize>
void AddNamed(const Place (&places)[kSize], const std::map<std::string, std::string>& values,
              absl::string_view where, HostFacts* facts) {
  for (const Place& place : places) {
    const auto found = values.find(place.where);
    if (found == values.end()) continue;
    AddFact(place.label, found->second, absl::StrCat(where, " ", place.where), facts);
  }
}

// Nothing, if the file is not there.
std::string TextOf(const std::string& directory, const char* name) {
  constexpr uint64_t kMaxBytes = uint64_t{256} << 10;  // As Kubernetes bounds annotations.
  if (directory.empty()) return "";
  const auto text = ReadBoundedFile(absl::StrCat(directory, "/", name), kMaxBytes);
  return text.ok() ? *text : "";
}

// Asks for one thing after the other, until something fails.
class Asker {
 public:
  Asker(const MetadataServer& server, absl::Duration budget)
      : server_(server), deadline_(MonotonicNow() + budget) {}

  // Nothing, if it is not there or is not asked for any more.
  std::string Text(const char* path) {
    if (status_.ok() && MonotonicNow() > deadline_) {
      status_ = absl::DeadlineExceededError(
          absl::StrCat("metadata server ", server_.authority(), ": answers too slowly"));
    }
    if (!status_.ok()) return "";
    absl::StatusOr<std::string> text = server_.Get(path);
    if (text.ok()) return *std::move(text);
    if (!absl::IsNotFound(text.status())) status_ = text.status();
    return "";
  }

  template <size_t kSize>
  void AddEach(const Place (&places)[kSize], HostFacts* facts) {
    for (const Place& place : places) {
      AddFact(place.label, Text(place.where), place.where, facts);
    }
  }

  const absl::Status& status() const { return status_; }

 private:
  const MetadataServer& server_;
  const absl::Time deadline_;
  absl::Status status_;
};

bool IsWords(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isprint(c); });
}

}  // namespace

void AddFact(absl::string_view label, absl::string_view untrusted, absl::string_view from,
             HostFacts* facts) {
  absl::string_view text = absl::StripAsciiWhitespace(untrusted);
  // "projects/123/zones/europe-west4-b", "projects/123/machineTypes/ct5p-hightpu-4t"
  if (label == "zone" || label == "machine_type") text = text.substr(text.rfind('/') + 1);
  if (text.empty() || text.size() > kMaxFactBytes || !IsWords(text)) return;
  // One place says TRUE, another 'true'. A machine that is not preemptible has no label.
  const std::string value =
      label == "preemptible" ? absl::AsciiStrToLower(text) : std::string(text);
  if (label == "preemptible" && value != "true") return;
  facts->try_emplace(std::string(label), HostFact{value, std::string(from)});
}

void AddFactsOfEnvironment(const client::EnvironmentGetter& environment, HostFacts* facts) {
  if (!environment) return;
  for (const Place& place : kVariables) {
    const char* const value = environment(place.where);
    if (value != nullptr) AddFact(place.label, value, place.where, facts);
  }
}

void AddFactsOfPod(const std::string& pod_info, const std::string& service_account,
                   HostFacts* facts) {
  const auto add = [&](const char* label, const std::string& directory, const char* name) {
    AddFact(label, TextOf(directory, name), absl::StrCat(directory, "/", name), facts);
  };
  add("pod", pod_info, "name");
  add("namespace", pod_info, "namespace");
  AddNamed(kPodLabels, ParsePodLabels(TextOf(pod_info, "labels")), pod_info + "/labels", facts);
  add("namespace", service_account, "namespace");
}

MetadataFacts AskMetadata(const MetadataServer& server, absl::Duration budget) {
  MetadataFacts found;
  Asker asker(server, budget);
  asker.AddEach(kInstance, &found.facts);
  const auto tpu_env = ParseTpuEnv(asker.Text(kTpuEnvPath));
  const Place accelerator[] = {{"accelerator_type", "instance/attributes/accelerator-type"}};
  asker.AddEach(accelerator, &found.facts);
  if (!tpu_env.empty() || found.facts.contains("accelerator_type")) {
    asker.AddEach(kTpuAttributes, &found.facts);
  }
  AddNamed(kTpuEnv, tpu_env, "tpu-env", &found.facts);
  AddNamed(kNodeLabels, ParseNodeLabels(asker.Text(kNodeLabelsPath)), "kube-labels", &found.facts);
  const auto ports = tpu_env.find("TPU_RUNTIME_METRICS_PORTS");
  if (ports != tpu_env.end()) found.tpu_metrics_ports = ports->second;
  found.status = asker.status();
  return found;
}

std::vector<std::pair<std::string, std::string>> LabelsOf(const HostFacts& facts, size_t max) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const auto& [label, fact] : facts) {
    if (fact.from == kConfigured) labels.emplace_back(label, fact.value);
  }
  for (const char* label : kOrder) {
    const auto found = facts.find(label);
    if (found == facts.end() || found->second.from == kConfigured) continue;
    labels.emplace_back(label, found->second.value);
  }
  labels.resize(std::min(labels.size(), max));
  return labels;
}

}  // namespace tacho::agent
