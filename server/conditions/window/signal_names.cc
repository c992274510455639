#include "server/conditions/window/signal_names.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "absl/strings/match.h"
#include "proto/base/check.h"
#include "proto/names/normalised_name.h"
#include "tacho/config/v1/conditions_signals.pb.h"

namespace tacho::server::conditions {
namespace {

// The default of this signal with this name; its factor is what a configured name inherits.
double FactorOf(Signal signal, absl::string_view normalised) {
  for (const DefaultName& name : DefaultNames()) {
    if (name.signal == signal && name.name == normalised) return name.factor;
  }
  return 1;
}

const google::protobuf::FieldDescriptor& FieldOf(Signal signal) {
  const auto* field =
      config::v1::ConditionSignals::descriptor()->FindFieldByNumber(static_cast<int>(signal) + 1);
  TACHO_CHECK(field != nullptr);
  return *field;
}

}  // namespace

absl::string_view SignalName(Signal signal) { return FieldOf(signal).name(); }

std::string NormalisedName(absl::string_view metric) {
  return ::tacho::NormalisedName(std::string_view(metric.data(), metric.size()));
}

SignalNames::SignalNames(const std::map<Signal, std::vector<std::string>>& configured) {
  for (const auto& [signal, names] : configured) {
    uint32_t rank = 0;
    for (const std::string& name : names) {
      const SignalMatch match = {
          .signal = signal, .factor = FactorOf(signal, NormalisedName(name)), .rank = rank++};
      Add(name, match);
    }
  }
  std::array<uint32_t, static_cast<size_t>(Signal::kCount)> ranks = {};
  for (const DefaultName& name : DefaultNames()) {
    if (configured.count(name.signal) > 0) continue;
    uint32_t& rank = ranks[static_cast<size_t>(name.signal)];
    Add(name.name, {.signal = name.signal, .factor = name.factor, .rank = rank++});
  }
}

void SignalNames::Add(absl::string_view name, const SignalMatch& match) {
  const size_t star = name.find('*');
  if (star == absl::string_view::npos) {
    exact_.try_emplace(NormalisedName(name), match);
    return;
  }
  // A separator beside the '*' is part of the name: "lr-*" is no "lrx".
  std::string before = NormalisedName(name.substr(0, star));
  std::string after = NormalisedName(name.substr(star + 1));
  if (star > 0 && !absl::ascii_isalnum(static_cast<unsigned char>(name[star - 1]))) before += '_';
  if (star + 1 < name.size() && !absl::ascii_isalnum(static_cast<unsigned char>(name[star + 1]))) {
    after.insert(0, 1, '_');
  }
  patterns_.push_back({std::move(before), std::move(after), match});
}

std::optional<SignalMatch> SignalNames::Find(absl::string_view metric) const {
  const std::string name = NormalisedName(metric);
  if (const auto found = exact_.find(name); found != exact_.end()) return found->second;
  for (const Pattern& pattern : patterns_) {
    if (name.size() >= pattern.before.size() + pattern.after.size() &&
        absl::StartsWith(name, pattern.before) && absl::EndsWith(name, pattern.after)) {
      return pattern.match;
    }
  }
  return std::nullopt;
}

SignalNames ConfiguredNames(const config::v1::ConditionSignals& config) {
  std::map<Signal, std::vector<std::string>> configured;
  const auto& reflection = *config.GetReflection();
  for (size_t i = 0; i < static_cast<size_t>(Signal::kCount); ++i) {
    const auto signal = static_cast<Signal>(i);
    const auto& field = FieldOf(signal);
    for (int k = 0; k < reflection.FieldSize(config, &field); ++k) {
      configured[signal].push_back(reflection.GetRepeatedString(config, &field, k));
    }
  }
  return SignalNames(configured);
}

}  // namespace tacho::server::conditions
