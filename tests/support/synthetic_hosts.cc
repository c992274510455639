// The chips and hosts of a synthetic fleet, sampled by time.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/synthetic_noise.h"
#include "tests/support/synthetic_window.h"

namespace tacho::testing {
namespace {

using server::conditions::Signal;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kHbm = 80 * kGiB;
constexpr double kHostMemory = 512 * kGiB;
constexpr double kClockMax = 1.98e9;
constexpr double kPowerLimit = 700;
// NVML's clocksEventReasons: HwThermalSlowdown.
constexpr double kThermal = 0x40;

}  // namespace

double SyntheticFleet::BusyAt(uint32_t task, double seconds) const {
  const Steps& steps = StepsOf(task);
  const auto found = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
    return step.done && step.end <= seconds;
  });
  if (found == steps.end() || seconds < found->start) return 0;
  const auto index = static_cast<size_t>(found - steps.begin());
  if (Find(FaultKind::kMissingTask, task, seconds) != nullptr) return 0;
  if (Find(FaultKind::kDataStall, task, seconds) != nullptr) return 0;
  if (Find(FaultKind::kHang, task, seconds) != nullptr) return 0;
  if (!found->done || found->stall > 0) return 1;  // Spins in the collective.
  if (index == 0 && seconds < found->start + options_.compile_seconds) return 0;
  const double step = found->end - found->start;
  double idle = DataWait(task, index, found->start);
  // Sampled over more than a step: what a checkpoint takes is idle for as long as it lasts.
  if (seconds >= found->end - found->checkpoint) {
    return options_.first_task_saves && task != 0 ? 1 : 0;
  }
  idle /= std::max(1e-9, step - found->checkpoint - found->eval);
  const double noise = SyntheticUniform(options_.seed, NoiseStream::kChip, task, index);
  double busy = std::clamp(1 - idle - 0.02 * noise, 0.0, 1.0);
  if (Find(FaultKind::kLowUse, task, seconds) != nullptr) {
    busy *= Amount(FaultKind::kLowUse, task, seconds);
  }
  return busy;
}

std::optional<double> SyntheticFleet::SilentSince(uint32_t host, double now) const {
  const uint32_t task = host * options_.tasks_per_host;
  const Fault* const cut = Find(FaultKind::kSilentAgent, task, now);
  const Fault* const silent = cut != nullptr ? cut : Find(FaultKind::kHostDies, task, now);
  if (silent == nullptr) return std::nullopt;
  return silent->at_seconds;
}

server::ingest::AgentState SyntheticFleet::AgentOf(uint32_t host, double now) const {
  const uint32_t task = host * options_.tasks_per_host;
  server::ingest::AgentState agent;
  agent.id = absl::StrCat("agent-", SyntheticHost(host));
  agent.connected = Find(FaultKind::kSilentAgent, task, now) == nullptr;
  agent.last_heard_ns = Time(SilentSince(host, now).value_or(now));
  agent.clock_offset_seconds = Amount(FaultKind::kClockSkew, task, now);
  for (const Fault& fault : faults_) {
    if (fault.kind != FaultKind::kDataLoss || !Hits(fault, task)) continue;
    if (fault.at_seconds > now || fault.at_seconds < now - options_.window_seconds) continue;
    agent.lost_rows += static_cast<uint64_t>(fault.amount);
    agent.last_loss_ns = Time(fault.at_seconds);
  }
  return agent;
}

void SyntheticFleet::SampleHost(uint32_t host, double seconds,
                                server::conditions::Tracks* tracks) const {
  const uint32_t task = host * options_.tasks_per_host;
  const auto add = [&](Signal signal, double value) {
    Add(signal, {.time_ns = Time(seconds), .value = value}, tracks);
  };
  double leaked = 0;
  for (const Fault& fault : faults_) {
    if (fault.kind != FaultKind::kHostLeak || !Hits(fault, task) || seconds < fault.at_seconds) {
      continue;
    }
    leaked += fault.amount * (std::min(seconds, fault.until_seconds) - fault.at_seconds);
  }
  const auto index = static_cast<uint64_t>(seconds);
  const double noise = SyntheticGauss(options_.seed, NoiseStream::kCpu, host, index);
  add(Signal::kHostMemoryTotal, kHostMemory);
  add(Signal::kHostMemoryAvailable,
      std::max(0.0, 0.7 * kHostMemory - leaked + 0.001 * kHostMemory * noise));
  const bool stuck = Find(FaultKind::kHang, task, seconds) != nullptr;
  add(Signal::kHostCpuBusy, std::clamp((stuck ? 0.01 : 0.3) + 0.005 * noise, 0.0, 1.0));
}

void SyntheticFleet::SampleChip(uint32_t host, uint32_t chip, double seconds, double* idle_since,
                                server::conditions::Tracks* tracks) const {
  const uint32_t task = host * options_.tasks_per_host;
  const auto add = [&](Signal signal, double value) {
    Add(signal, {.time_ns = Time(seconds), .value = value}, tracks);
  };
  // How much a fault that grows with time has added on the first chip since it began.
  const auto grown = [&](FaultKind kind) {
    double sum = 0;
    for (const Fault& fault : faults_) {
      if (fault.kind != kind || chip != 0 || !Hits(fault, task) || seconds < fault.at_seconds) {
        continue;
      }
      sum += fault.amount * (std::min(seconds, fault.until_seconds) - fault.at_seconds);
    }
    return sum;
  };
  double busy = BusyAt(task, seconds);
  if (chip == 0 && Find(FaultKind::kIdleChip, task, seconds) != nullptr) busy = 0;
  if (busy > 0) *idle_since = seconds;
  const double throttle = Amount(FaultKind::kThrottle, task, seconds);
  const double noise = SyntheticGauss(options_.seed, NoiseStream::kChip, host * 64 + chip,
                                      static_cast<uint64_t>(seconds));
  add(Signal::kChipBusy, busy);
  add(Signal::kChipTensorBusy, 0.55 * busy);
  add(Signal::kChipIdleSeconds, seconds - *idle_since);
  add(Signal::kHbmTotal, kHbm);
  add(Signal::kHbmUsed,
      std::min(kHbm, 0.8 * kHbm + grown(FaultKind::kHbmLeak) + 0.002 * kHbm * std::abs(noise)));
  add(Signal::kChipPower, (120 + 480 * busy) * (1 - throttle) + 3 * noise);
  add(Signal::kChipPowerLimit, kPowerLimit);
  add(Signal::kChipTemperature, 45 + 20 * busy + (throttle > 0 ? 27 : 0) + 0.5 * noise);
  add(Signal::kChipClock, kClockMax * (1 - throttle));
  add(Signal::kChipClockMax, kClockMax);
  add(Signal::kThrottleReasons, throttle > 0 ? kThermal : 0);
  add(Signal::kEccCorrected, 0);
  add(Signal::kEccUncorrected, std::floor(grown(FaultKind::kEcc) / 60));
  add(Signal::kXid, std::floor(grown(FaultKind::kXid) / 60));
  add(Signal::kLinkErrors, std::floor(grown(FaultKind::kLinkErrors) / 60));
  add(Signal::kRemappedRows, std::floor(grown(FaultKind::kRemappedRows) / 60));
}

void SyntheticFleet::FillHost(uint32_t host, double now,
                              server::conditions::JobWindow* window) const {
  server::conditions::HostWindow out;
  out.host = SyntheticHost(host);
  out.agent = AgentOf(host, now);
  const double until = SilentSince(host, now).value_or(now);
  const double from =
      std::max({0.0, now - options_.window_seconds,
                now - options_.sample_seconds * static_cast<double>(options_.max_points)});
  for (double t = std::ceil(from / options_.sample_seconds) * options_.sample_seconds; t <= until;
       t += options_.sample_seconds) {
    SampleHost(host, t, &out.tracks);
  }
  window->hosts.push_back(std::move(out));
}

void SyntheticFleet::FillChips(uint32_t host, double now,
                               server::conditions::JobWindow* window) const {
  const double until = SilentSince(host, now).value_or(now);
  const double from =
      std::max({0.0, now - options_.window_seconds,
                now - options_.sample_seconds * static_cast<double>(options_.max_points)});
  for (uint32_t chip = 0; chip < options_.chips_per_host; ++chip) {
    server::conditions::ChipWindow out{
        .host = SyntheticHost(host), .chip = absl::StrCat(chip), .tracks = {}};
    double idle_since = from;
    for (double t = std::ceil(from / options_.sample_seconds) * options_.sample_seconds; t <= until;
         t += options_.sample_seconds) {
      SampleChip(host, chip, t, &idle_since, &out.tracks);
    }
    window->chips.push_back(std::move(out));
  }
}

}  // namespace tacho::testing
