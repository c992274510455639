#include "server/conditions/window/configured_names.h"

#include <map>
#include <string>
#include <vector>

namespace tacho::server::conditions {

SignalNames ConfiguredNames(const config::v1::ConditionSignals& config) {
  std::map<Signal, std::vector<std::string>> configured;
  const auto& type = *config.GetDescriptor();
  const auto& reflection = *config.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const auto& field = *type.field(i);
    const auto signal = ParseSignal(field.name());
    if (!signal) continue;
    for (int k = 0; k < reflection.FieldSize(config, &field); ++k) {
      configured[*signal].push_back(reflection.GetRepeatedString(config, &field, k));
    }
  }
  return SignalNames(configured);
}

}  // namespace tacho::server::conditions
