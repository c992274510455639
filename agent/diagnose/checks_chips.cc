// Chips as the system shows them, without opening any: device files, PCI and driver versions.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "agent/diagnose/context.h"
#include "agent/sources/chips/chip_holders.h"
#include "agent/sources/host/host_text.h"
#include "agent/sources/tpu/tpu_chips.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 4096;

std::vector<std::string> EntriesOf(const std::string& directory, std::error_code* error) {
  std::vector<std::string> names;
  fs::directory_iterator entry(directory, *error);
  for (; !*error && entry != fs::directory_iterator() && names.size() < kMaxEntries;
       entry.increment(*error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string WordIn(const std::string& path) {
  const auto text = ReadProcFile(path);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

// NVIDIA's display and 3D controllers.
int CountGpus(const std::string& sys, std::error_code* error) {
  int gpus = 0;
  const std::string root = sys + "/bus/pci/devices";
  for (const std::string& name : EntriesOf(root, error)) {
    const std::string device = absl::StrCat(root, "/", name);
    if (WordIn(device + "/vendor") == "0x10de" &&
        absl::StartsWith(WordIn(device + "/class"), "0x03")) {
      ++gpus;
    }
  }
  return gpus;
}

bool IsNumbered(absl::string_view name, absl::string_view prefix) {
  return absl::StartsWith(name, prefix) && name.size() > prefix.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

std::vector<std::string> DeviceFiles(const std::string& dev) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& name : EntriesOf(dev, &error)) {
    if (IsNumbered(name, "accel") || IsNumbered(name, "nvidia")) {
      files.push_back(absl::StrCat(dev, "/", name));
    }
  }
  for (const std::string& name : EntriesOf(dev + "/vfio", &error)) {
    if (IsNumbered(name, "")) files.push_back(absl::StrCat(dev, "/vfio/", name));
  }
  return files;
}

// "4 × TPU v5, 8 NVIDIA GPUs"
std::string KindsOf(const std::vector<TpuChip>& tpus, int gpus) {
  std::map<std::string, int> kinds;
  for (const TpuChip& chip : tpus) ++kinds[chip.generation->kind];
  std::vector<std::string> texts;
  for (const auto& [kind, count] : kinds) texts.push_back(absl::StrCat(count, " ", kind));
  if (gpus > 0) texts.push_back(absl::StrCat(gpus, " NVIDIA"));
  return absl::StrJoin(texts, ", ");
}

Finding CheckPresence(const std::string& sys, const std::vector<TpuChip>& tpus,
                      const std::vector<std::string>& files, const std::string& dev) {
  std::error_code error;
  const int gpus = CountGpus(sys, &error);
  const std::string kinds = KindsOf(tpus, gpus);
  Finding finding{.message = absl::StrCat(kinds, " on PCI, ", files.size(), " device files"),
                  .figures = {{"tpus", absl::StrCat(tpus.size())},
                              {"gpus", absl::StrCat(gpus)},
                              {"device_files", absl::StrJoin(files, " ")}}};
  if (error) {
    finding.severity = Severity::kInfo;
    finding.message =
        absl::StrCat("cannot read the PCI devices (", sys, "/bus/pci: ", error.message(), "); ",
                     files.size(), " device files");
  } else if (kinds.empty() && files.empty()) {
    finding.severity = Severity::kInfo;
    finding.message = "this machine has neither TPUs nor NVIDIA GPUs";
  } else if (files.empty()) {
    finding.severity = Severity::kFailed;
    absl::StrAppend(&finding.message,
                    "; no driver has taken the chips, or the container has no device files");
    finding.remedy = absl::StrCat("load the driver; give a container the devices below ", dev);
  }
  return finding;
}

// Lists the processes that have TPUs open: a trainer that is meant to, or a leftover process that
// keeps the next trainer from starting.
std::vector<Finding> CheckHolders(const std::vector<TpuChip>& tpus, const std::string& proc) {
  std::set<std::string> devices;
  for (const TpuChip& chip : tpus) devices.insert(chip.devices.begin(), chip.devices.end());
  if (devices.empty()) return {};
  HolderWatch watch(proc);
  const ChipHolders& holders = watch.Look(absl::Now(), devices);
  std::vector<Finding> findings;
  for (const ChipHolder& holder : holders.holders) {
    findings.push_back({.subject = "holders",
                        .severity = Severity::kInfo,
                        .message = absl::StrCat("process ", holder.pid, " has open ",
                                                absl::StrJoin(holder.devices, ", "))});
  }
  if (findings.empty()) {
    findings.push_back({.subject = "holders",
                        .message = holders.complete ? "no process has a TPU open"
                                                    : "no process of this user has a TPU open; the "
                                                      "agent cannot look at those of others"});
  }
  return findings;
}

std::vector<Finding> CheckChips(const std::string& sys, const std::string& proc,
                                const std::string& dev) {
  const std::vector<TpuChip> tpus = FindTpuChips(sys, dev);
  const std::vector<std::string> files = DeviceFiles(dev);
  std::vector<Finding> findings = {CheckPresence(sys, tpus, files, dev)};
  std::vector<std::string> closed;
  for (const std::string& file : files) {
    if (::access(file.c_str(), R_OK | W_OK) != 0) {
      closed.push_back(absl::StrCat(file, " (", std::generic_category().message(errno), ")"));
    }
  }
  if (!closed.empty()) {
    findings.push_back(
        {.subject = "permissions",
         .severity = Severity::kWarning,
         .message = absl::StrCat("the agent may not open ", absl::StrJoin(closed, ", ")),
         .remedy = "add the agent's user to the group of these files; trainers need them too"});
  }
  for (Finding& finding : CheckHolders(tpus, proc)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> CheckDrivers(const std::string& sys, const std::string& proc) {
  std::vector<Finding> findings;
  const std::string nvidia = WordIn(sys + "/module/nvidia/version");
  if (!nvidia.empty()) {
    findings.push_back({.subject = "nvidia",
                        .message = absl::StrCat("kernel module ", nvidia),
                        .figures = {{"version", nvidia}}});
  }
  std::error_code error;
  const std::vector<std::string> gpus = EntriesOf(proc + "/driver/nvidia/gpus", &error);
  if (!error) {
    findings.push_back({.subject = "nvidia",
                        .message = absl::StrCat("the driver has ", gpus.size(), " GPUs"),
                        .figures = {{"gpus", absl::StrCat(gpus.size())}}});
  }
  for (const char* module : {"accel", "gasket", "tpu_common", "vfio_pci"}) {
    if (!fs::exists(absl::StrCat(sys, "/module/", module), error)) continue;
    const std::string version = WordIn(absl::StrCat(sys, "/module/", module, "/version"));
    findings.push_back({.subject = module,
                        .message = version.empty() ? "the kernel module is loaded"
                                                   : absl::StrCat("kernel module ", version)});
  }
  if (findings.empty()) {
    findings.push_back({.severity = Severity::kInfo, .message = "no chip driver is loaded"});
  }
  return findings;
}

}  // namespace

std::vector<Check> ChipChecks(const DiagnoseContext& context) {
  const config::v1::Agent::Host& host = context.config.sources().host();
  return {
      {.name = "chips",
       .deadline = context.timeout,
       .run = [sys = host.sys(), proc = host.proc(),
               dev = context.dev] { return CheckChips(sys, proc, dev); },
       .remedy = "the driver of a chip hangs: look at the kernel log, then restart the machine"},
      {.name = "drivers",
       .deadline = context.timeout,
       .run = [sys = host.sys(), proc = host.proc()] { return CheckDrivers(sys, proc); },
       .remedy = "the driver of a chip hangs: look at the kernel log, then restart the machine"}};
}

}  // namespace tacho::agent
